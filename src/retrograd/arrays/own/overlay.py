"""Our kernels in the place of those of ``kernels/``, by module and name; what they do not take goes to these."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.state import local
from . import pending
from .elementwise import Formula
from .launching import Launcher
from .pending import Pending

#: Activations and their derivatives, as expressions: Note [Kernels of our own]. Numbers come after arrays.
_GATE = "(W)1 / ((W)1 + exp(-{}))"
_MASS = "((W)0.5 * ((W)1 + erf(a * (W)0.70710678118654752440)))"
_TANH = "tanh((W)0.79788456080286535588 * (a + (W)0.044715 * a * a * a))"
FORMULAS: dict[str, tuple[str, int, int]] = {
    "relu": ("a < 0 ? (W)0 : a", 1, 0),
    "threshold_backward": ("b <= p ? (W)0 : a", 2, 1),
    "sigmoid": (_GATE.format("a"), 1, 0),
    "sigmoid_backward": ("a * b * ((W)1 - b)", 2, 0),
    "tanh_backward": ("a * ((W)1 - b * b)", 2, 0),
    "silu": ("a / ((W)1 + exp(-a))", 1, 0),
    "silu_backward": (f"a * ({_GATE.format('b')}) * ((W)1 + b * ((W)1 - {_GATE.format('b')}))", 2, 0),
    "gelu": (f"a * {_MASS}", 1, 0),
    "gelu tanh": (f"(W)0.5 * a * ((W)1 + {_TANH})", 1, 0),
    "gelu_backward": (
        f"b * ({_MASS} + a * (W)0.39894228040143267794 * exp((W)-0.5 * a * a))", 2, 0,
    ),
    "gelu_backward tanh": (
        f"b * ((W)0.5 * ((W)1 + {_TANH}) + (W)0.5 * a * ((W)1 - {_TANH} * {_TANH}) * (W)0.79788456080286535588 * "
        "((W)1 + (W)0.134145 * a * a))", 2, 0,
    ),
    "added product": ("a + times(b, c)", 3, 0),
    "leaky_relu": ("a > 0 ? a : a * p", 1, 1),
}  # fmt: skip


class Around:
    """A kernel that is asked before the one whose name it has, and may hand on to it."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make


class Formulas:
    """The activations of one device."""

    def __init__(self, launcher: Launcher) -> None:
        self._made: dict[str, Formula] = {
            name: Formula(launcher, name, expression, arrays, numbers)
            for name, (expression, arrays, numbers) in FORMULAS.items()
        }
        self.place: Any = launcher.place

    def __call__(self, name: str, arrays: tuple[Any, ...], out: Any = None, *numbers: float) -> Any:
        """The result; None if it is nothing for the kernel."""
        first = arrays[0]
        for x in arrays:
            if getattr(x, "place", None) is not self.place or x.dtype != first.dtype:
                return None
        return self._made[name].many(arrays, out, *numbers)


def _pointwise(name: str, count: int) -> Around:
    """An activation of `count` arrays, and of `out` where it takes that."""

    def make(original: Any) -> Any:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            formulas = args[0].place.formulas
            if formulas is not None and len(args) == count and (not kwargs or (len(kwargs) == 1 and "out" in kwargs)):
                found = formulas(name, args, kwargs.get("out"))
                if found is not None:
                    return found
            return original(*args, **kwargs)

        return kernel

    return Around(make)


def _arithmetic(ufunc: str) -> Around:
    """An operator of two arrays of one dtype, before anything else is looked at."""

    adds = ufunc == "add"

    def make(original: Any) -> Any:
        def kernel(*args: Any, **kwargs: Any) -> Any:
            if len(args) == 2 and not kwargs:
                a, b = args
                if a.__class__ is b.__class__ and a.dtype is b.dtype:
                    place = a.place
                    pair = place.pairs[ufunc]
                    if pair is not None:
                        made = pending.plus(a, b) if adds and b._raw.__class__ is Pending else None
                        if made is not None:
                            return made
                        made = pair(a, b)
                        if made is not None:
                            return made
            return original(*args, **kwargs)

        return kernel

    return Around(make)


@Around
def _threshold_backward(original: Any) -> Any:
    def threshold_backward(grad_output: Any, a: Any, threshold: Any) -> Any:
        formulas = a.place.formulas
        if formulas is not None and threshold.__class__ in (int, float):
            found = formulas("threshold_backward", (grad_output, a), None, threshold)
            if found is not None:
                return found
        return original(grad_output, a, threshold)

    return threshold_backward


@Around
def _gelu(original: Any) -> Any:
    def gelu(a: Any, approximate: str = "none", out: Any = None) -> Any:
        formulas = a.place.formulas
        if formulas is not None and approximate in ("none", "tanh"):
            found = formulas("gelu" if approximate == "none" else "gelu tanh", (a,), out)
            if found is not None:
                return found
        return original(a, approximate, out)

    return gelu


@Around
def _gelu_backward(original: Any) -> Any:
    def gelu_backward(grad_output: Any, a: Any, approximate: str = "none") -> Any:
        formulas = a.place.formulas
        if formulas is not None and approximate in ("none", "tanh"):
            found = formulas("gelu_backward" if approximate == "none" else "gelu_backward tanh", (a, grad_output))
            if found is not None:
                return found
        return original(grad_output, a, approximate)

    return gelu_backward


def _softmax(name: str) -> Around:
    def make(original: Any) -> Any:
        def softmax(a: Any, dim: int, dtype: Any = None) -> Any:
            rows = a.place.rows
            if rows is not None and (dtype is None or dtype == a.dtype):
                found = rows.softmax(name, a, dim)
                if found is not None:
                    return found
            return original(a, dim, dtype)

        return softmax

    return Around(make)


def _softmax_backward(name: str) -> Around:
    def make(original: Any) -> Any:
        def backward(grad: Any, result: Any, dim: int) -> Any:
            rows = grad.place.rows
            found = None if rows is None else rows.softmax_backward(name, grad, result, dim)
            return original(grad, result, dim) if found is None else found

        return backward

    return Around(make)


@Around
def _layer_norm(original: Any) -> Any:
    def layer_norm(a: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
        rows = a.place.rows
        found = None if rows is None else rows.layer_norm(a, tuple(normalized_shape), weight, bias, eps)
        return original(a, normalized_shape, weight, bias, eps) if found is None else found

    return layer_norm


@Around
def _native_layer_norm_backward(original: Any) -> Any:
    def native_layer_norm_backward(
        grad: Any, input: Any, normalized_shape: Any, mean: Any, rstd: Any, weight: Any, eps: float, edges: Any
    ) -> Any:
        rows = grad.place.rows
        if rows is not None:
            mask = [edge is not None for edge in edges]
            shape = tuple(normalized_shape)
            found = rows.layer_norm_backward(grad, input, shape, mean, rstd, weight, eps, mask)
            if found is not None:
                return found
        return original(grad, input, normalized_shape, mean, rstd, weight, eps, edges)

    return native_layer_norm_backward


@Around
def _batch_norm(original: Any) -> Any:
    def native_batch_norm(
        input: Any, weight: Any, bias: Any, running_mean: Any, running_var: Any, training: bool, momentum: float,
        eps: float,
    ) -> Any:  # fmt: skip
        channels = input.place.channels
        found = None
        if channels is not None:
            found = channels.forward(input, weight, bias, running_mean, running_var, training, momentum, eps)
        if found is None:
            found = original(input, weight, bias, running_mean, running_var, training, momentum, eps)
        return found

    return native_batch_norm


@Around
def _batch_norm_backward(original: Any) -> Any:
    def native_batch_norm_backward(
        grad: Any, input: Any, weight: Any, mean: Any, rstd: Any, training: bool, eps: float, edges: Sequence[Any]
    ) -> Any:
        channels = grad.place.channels
        found = None
        if channels is not None:
            mask = [edge is not None for edge in edges]
            found = channels.backward(grad, input, weight, mean, rstd, training, mask)
        return original(grad, input, weight, mean, rstd, training, eps, edges) if found is None else found

    return native_batch_norm_backward


@Around
def _embedding(original: Any) -> Any:
    def embedding(
        weight: Any, indices: Any, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
    ) -> Any:
        tables = weight.place.tables
        found = None if tables is None else tables.take(weight, indices)
        return original(weight, indices, padding_idx, scale_grad_by_freq, sparse) if found is None else found

    return embedding


@Around
def _embedding_backward(original: Any) -> Any:
    def embedding_backward(
        grad: Any, indices: Any, num_weights: int, padding_idx: int = -1, scale_grad_by_freq: bool = False
    ) -> Any:
        tables = grad.place.tables
        found = None
        if tables is not None:
            found = tables.backward(grad, indices, num_weights, padding_idx, scale_grad_by_freq)
        return original(grad, indices, num_weights, padding_idx, scale_grad_by_freq) if found is None else found

    return embedding_backward


@Around
def _nll_loss(original: Any) -> Any:
    def nll_loss(a: Any, target: Any, weight: Any = None, reduction: int = 1, ignore_index: int = -100) -> Any:
        rows = a.place.rows
        found = None if rows is None else rows.nll_loss(a, target, weight, reduction, ignore_index)
        return original(a, target, weight, reduction, ignore_index) if found is None else found

    return nll_loss


@Around
def _nll_loss_backward(original: Any) -> Any:
    def nll_loss_backward(
        grad: Any, input: Any, target: Any, weight: Any, reduction: int, ignore_index: int, total_weight: Any
    ) -> Any:
        rows = grad.place.rows
        found = None
        if rows is not None:
            found = rows.nll_loss_backward(grad, input, target, weight, reduction, ignore_index, total_weight)
        if found is None:
            found = original(grad, input, target, weight, reduction, ignore_index, total_weight)
        return found

    return nll_loss_backward


def _product(original: Any) -> Any:
    def product(a: Any, b: Any, *bias: Any) -> Any:
        place = a.place
        found = None
        if place.launcher is not None:
            if place.thread.adding is not None and not bias and pending.is_wanted(place, local.state.current_node):
                found = pending.product(place, a, b)
            if found is None:
                found = place.product(a, b)
        if found is None:
            return original(a, b, *bias)
        if bias and bias[0] is not None:
            return place.numpy.add(found, bias[0], found)
        return found

    return product


@Around
def _one_like(original: Any) -> Any:
    def one_like(a: Any) -> Any:
        place = a.place
        if place.filling is not None:
            found = place.filling.many((a,), None, 1.0)
            if found is not None:
                return found
        return original(a)

    return one_like


@Around
def _sum(original: Any) -> Any:
    def sum(a: Any, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Any:
        sums = a.place.sums
        if sums is not None and (dtype is None or dtype == a.dtype):
            found = sums(a, None if dim is None or (dim.__class__ in (tuple, list) and not dim) else dim, keepdim)
            if found is not None:
                return found
        return original(a, dim, keepdim, dtype)

    return sum


@Around
def _sum_all(original: Any) -> Any:
    def sum_all(a: Any, dtype: Any = None) -> Any:
        sums = a.place.sums
        found = sums(a, None, False) if sums is not None and (dtype is None or dtype == a.dtype) else None
        return original(a, dtype) if found is None else found

    return sum_all


@Around
def _attention(original: Any) -> Any:
    def attention(
        query: Any, key: Any, value: Any, dropout_p: float, is_causal: bool, attn_mask: Any = None,
        scale: float | None = None,
    ) -> Any:  # fmt: skip
        place = query.place
        if place.rows is not None and query.size and key.size:
            factor = scale if scale is not None else 1.0 / math.sqrt(query.shape[-1])
            found = place.attention.forward(query, key, value, is_causal, attn_mask, factor)
            if found is not None:
                return found
            if (
                attn_mask is None and query.shape[:-2] == key.shape[:-2] == value.shape[:-2]
                and query.dtype == key.dtype == value.dtype
            ):  # fmt: skip
                scores = place.product(query, key.swapaxes(-2, -1), None, factor)
                if scores is not None:
                    seen = query.shape[-2] if is_causal else 0
                    weights = place.rows.softmax("softmax", scores, -1, seen, True)
                    result = None if weights is None else place.product(weights, value)
                    if result is not None:
                        return result, weights
        return original(query, key, value, dropout_p, is_causal, attn_mask, scale)

    return attention


@Around
def _attention_backward(original: Any) -> Any:
    def attention_backward(
        grad: Any, query: Any, key: Any, value: Any, weights: Any, scale: float, edges: Sequence[Any],
        forward: Any = None,
    ) -> Any:  # fmt: skip
        place = grad.place
        if len(weights.shape) < len(query.shape):  # by blocks: one number a row
            result, mask, is_causal = forward
            return place.attention.backward(grad, query, key, value, result, weights, mask, is_causal, scale, edges)
        if place.rows is None or weights.dtype != query.dtype:
            return original(grad, query, key, value, weights, scale, edges)
        results: list[Any] = [None, None, None]
        if edges[2] is not None:
            results[2] = place.product(weights.swapaxes(-2, -1), grad)
        if edges[0] is not None or edges[1] is not None:
            scores = place.product(grad, value.swapaxes(-2, -1))
            scores = None if scores is None else place.rows.softmax_backward("softmax", scores, weights, -1)
            if scores is not None and edges[0] is not None:
                results[0] = place.product(scores, key, None, scale)
            if scores is not None and edges[1] is not None:
                results[1] = place.product(scores.swapaxes(-2, -1), query, None, scale)
        if any(edge is not None and one is None for edge, one in zip(edges, results)):
            return original(grad, query, key, value, weights, scale, edges)
        return tuple(results)

    return attention_backward


@Around
def _scatter(original: Any) -> Any:
    def scatter(grad: Any, weight: Any, bias: Any, input_size: Any, *rest: Any) -> Any:
        images = grad.place.images
        found = None if images is None else images.backward_input(grad, weight, bias, input_size, *rest)
        return original(grad, weight, bias, input_size, *rest) if found is None else found

    return scatter


def _of_images(name: str) -> Any:
    """A kernel that stands where the CPU has a compiled one, which may return None."""

    def kernel(first: Any, *rest: Any) -> Any:
        images = first.place.images
        return None if images is None else getattr(images, name)(first, *rest)

    return kernel


AROUND: dict[str, dict[str, Any]] = {
    "arithmetic": {
        "add": _arithmetic("add"), "sub": _arithmetic("subtract"), "mul": _arithmetic("multiply"),
        "div": _arithmetic("true_divide"),
    },
    "activation": {
        "relu": _pointwise("relu", 1), "sigmoid": _pointwise("sigmoid", 1), "silu": _pointwise("silu", 1),
        "sigmoid_backward": _pointwise("sigmoid_backward", 2), "tanh_backward": _pointwise("tanh_backward", 2),
        "silu_backward": _pointwise("silu_backward", 2), "threshold_backward": _threshold_backward, "gelu": _gelu,
        "gelu_backward": _gelu_backward,
    },
    "softmax": {
        "softmax": _softmax("softmax"), "log_softmax": _softmax("log_softmax"),
        "softmax_backward": _softmax_backward("softmax"), "log_softmax_backward": _softmax_backward("log_softmax"),
    },
    "normalization": {
        "layer_norm": _layer_norm, "native_layer_norm": _layer_norm,
        "native_layer_norm_backward": _native_layer_norm_backward, "native_batch_norm": _batch_norm,
        "native_batch_norm_backward": _batch_norm_backward,
    },
    "embedding": {
        "embedding": _embedding, "embedding_backward": _embedding_backward,
        "embedding_dense_backward": _embedding_backward,
    },
    "creation": {"one_like": _one_like},
    "losses": {"nll_loss": _nll_loss, "nll_loss_backward": _nll_loss_backward},
    "compiled_products": {
        "product": Around(_product), "convolution": _of_images("convolution"),
        "convolution_weight": _of_images("backward_weight"),
    },
    # Where the CPU's kernels ask for a compiled one for large images, ours are asked for all.
    "conv": {"_scatter": _scatter, "LARGE": -1},
    "pool": {"LARGE": -1, "_add_at_taps": lambda *operands: None},
    "products": {"_product": Around(_product), "_batched": Around(_product)},
    "reduce": {"sum": _sum, "sum_all": _sum_all},
    "attention": {"attention": _attention, "attention_backward": _attention_backward},
}  # fmt: skip

#: What kernels find of the compiled ones.
COMPILED: dict[str, Any] = {
    "max_pool2d": _of_images("max_pool"),
    "max_pool2d_backward": _of_images("max_pool_backward"),
}
