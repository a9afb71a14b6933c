"""Floating-point operations of a program, counted operator by operator: ``torch.utils.flop_counter``.

>>> import retrograd as torch
>>> from retrograd.utils.flop_counter import FlopCounterMode
>>> with FlopCounterMode(display=False) as counter:
...     y = torch.ones(2, 3) @ torch.ones(3, 4)
>>> counter.get_total_flops()
48

A product and a sum count as two. Operators that are no products of matrices, convolutions or attention count as
nothing, as in torch.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from .._generated.nodes import ConvolutionBackward0
from ..core.state import local
from ..kernels.einsum import parse_equation
from ..ops.overload import OpOverload, OpOverloadPacket, aten
from ..tensor import Tensor
from ..tensor.special import like_array
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

#: Packet -> ``formula(*shapes of tensors and other arguments, out_shape=...)``, by the packet's name.
flop_registry: dict[str, Callable[..., int]] = {}


def _shapes(values: Any) -> Any:
    if isinstance(values, Tensor):
        return values.shape
    if isinstance(values, (tuple, list)):
        return type(values)(_shapes(one) for one in values) if type(values) in (tuple, list) else values
    return values


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of shapes as one of tensors."""

    def of_tensors(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        named = {name: _shapes(value) for name, value in kwargs.items()}
        return formula(*[_shapes(value) for value in args], out_shape=_shapes(out_val), **named)

    return of_tensors


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Say how many operations an operator takes: of the shapes of its tensors, or of the tensors with `get_raw`.

    >>> import retrograd as torch
    >>> from retrograd.utils.flop_counter import register_flop_formula
    >>> @register_flop_formula(torch.ops.aten.cumsum)
    ... def cumsum_flop(input, dim, *args, out_shape=None, **kwargs):
    ...     return input.numel()
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for target in targets if isinstance(targets, (tuple, list)) else (targets,):
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            flop_registry[str(target)] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


# ------------------------------------------------------------------------------------------------------------- formulas


def mm_flop(a_shape: Any, b_shape: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """``a @ b`` of matrices."""
    return a_shape[0] * a_shape[1] * b_shape[-1] * 2


def addmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """``self + a @ b``; the sum with `self` is not counted."""
    return mm_flop(a_shape, b_shape)


def bmm_flop(a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Many products of matrices."""
    return a_shape[0] * a_shape[1] * a_shape[2] * b_shape[-1] * 2


def baddbmm_flop(self_shape: Any, a_shape: Any, b_shape: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """Many of them, and a sum that is not counted."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape: Any, w_shape: Any, out_shape: Any, transposed: bool = False) -> int:
    """A convolution: every element of the result (transposed: of the input) meets every weight of its group."""
    positions = math.prod((x_shape if transposed else out_shape)[2:])
    return x_shape[0] * positions * math.prod(w_shape) * 2


def conv_flop(
    x_shape: Any, w_shape: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, *args: Any,
    out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """A convolution, as it is called."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed)


def conv_backward_flop(
    grad_out_shape: Any, x_shape: Any, w_shape: Any, bias: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any, out_shape: Any = None, **kwargs: Any,
) -> int:  # fmt: skip
    """Its gradients: one more convolution each for the input and the weight."""
    each = conv_flop_count(x_shape, w_shape, grad_out_shape, transposed)
    return each * (bool(output_mask[0]) + bool(output_mask[1]))


def sdpa_flop_count(query_shape: Any, key_shape: Any, value_shape: Any) -> int:
    """Attention: the products of queries and keys, and of weights and values; heads may share keys and values."""
    *batch, queries, width = query_shape
    keys = key_shape[-2]
    assert len(query_shape) == len(key_shape) == len(value_shape), "queries, keys and values have as many dimensions"
    assert keys == value_shape[-2] and width == key_shape[-1], "as many values as keys, which are as wide as queries"
    for shape in (key_shape, value_shape):
        for heads, shared in zip(batch, shape[:-2], strict=True):
            assert shared and heads % shared == 0, "each batch or head of keys and values serves as many of the queries"
    return 2 * math.prod(batch) * queries * keys * (width + value_shape[-1])


def sdpa_flop(query_shape: Any, key_shape: Any, value_shape: Any, *args: Any, **kwargs: Any) -> int:
    """Attention, as it is called."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


def einsum_flop(equation: str, operands: Any, *args: Any, out_val: Any = None) -> int:
    """A sum of products, of two operands at a time from the left: every combination of their labels meets once."""
    arrays = [like_array(operand) for operand in operands]
    labels, output = parse_equation(equation, arrays)
    sizes: dict[int, int] = {}
    for names, array in zip(labels, arrays, strict=True):
        for name, size in zip(names, array.shape, strict=True):
            sizes[name] = max(size, sizes.get(name, 1))  # dimensions of one are as many as they meet
    flops, result = 0, set(labels[0])
    for at in range(1, len(labels)):
        together = result | set(labels[at])
        flops += 2 * math.prod([sizes[name] for name in together])
        result = together & set(output).union(*labels[at + 1 :])
    return flops


def _of_weight(grad: Any, x: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    """The gradient of a convolution for its weight: `out_shape` is that of the weight."""
    return conv_flop_count(x, out_shape, grad, False)


def _of_input(grad: Any, weight: Any, *args: Any, out_shape: Any = None, **kwargs: Any) -> int:
    return conv_flop_count(out_shape, weight, grad, False)


for _names, _formula in (
    (("mm", "_int_mm", "_scaled_mm"), mm_flop), (("addmm",), addmm_flop), (("bmm",), bmm_flop),
    (("baddbmm",), baddbmm_flop), (("convolution", "_convolution"), conv_flop),
    (("convolution_backward",), conv_backward_flop), (("_attention", "scaled_dot_product_attention"), sdpa_flop),
    (("convolution_backward_weight",), _of_weight), (("convolution_backward_input",), _of_input),
):  # fmt: skip
    for _name in _names:
        flop_registry[f"aten.{_name}"] = _of_shapes(_formula)
flop_registry["aten.einsum"] = einsum_flop


# ----------------------------------------------------------------------------------------------------------------- mode


def get_suffix_str(number: int) -> str:
    """The unit in which a count is shown: thousands from ten thousand on, and so on."""
    return ["", "K", "M", "B", "T"][max(0, min(4, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number: int, suffix: str) -> str:
    """A count in that unit."""
    return f"{number / 1000 ** ['', 'K', 'M', 'B', 'T'].index(suffix):.3f}{suffix}"


def convert_to_percent_str(num: int, denom: int) -> str:
    """A part of all."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


class FlopCounterMode:
    """Counts floating-point operations, for each module and operator, forward and backward.

    >>> import retrograd as torch
    >>> from retrograd.utils.flop_counter import FlopCounterMode
    >>> model = torch.nn.Linear(3, 4)
    >>> with FlopCounterMode(display=False) as counter:
    ...     model(torch.ones(2, 3)).sum().backward()
    >>> {str(op): flops for op, flops in counter.get_flop_counts()["Linear"].items()}
    {'aten.addmm': 48, 'aten.mm': 48}
    """

    def __init__(
        self, mods: Any = None, depth: int = 2, display: bool = True, custom_mapping: dict[Any, Any] | None = None
    ) -> None:
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.depth = depth
        self.display = display
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.custom: dict[str, Any] = {
            str(op): formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for op, formula in (custom_mapping or {}).items()
        }
        self.mod_tracker: ModuleTracker = ModuleTracker()
        self.mode: _Counting | None = None

    def get_total_flops(self) -> int:
        """All of them."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """By module, then by operator."""
        return {module: dict(counts) for module, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """A table of modules and operators."""
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        suffix = get_suffix_str(total)
        rows: list[tuple[str, str, str]] = []

        def add(module: str, level: int) -> None:
            counts = self.flop_counts[module]
            flops = sum(counts.values())
            name = module if level == 0 else " " * level + module
            rows.append((name, convert_num_with_suffix(flops, suffix), convert_to_percent_str(flops, total)))
            for op, count in counts.items():
                line = f"{' ' * level} - {op}"
                rows.append((line, convert_num_with_suffix(count, suffix), convert_to_percent_str(count, total)))

        add("Global", 0)
        for module in sorted(self.flop_counts):
            level = module.count(".") + 1
            if module != "Global" and level <= depth:
                add(module, level)
        head = ("Module", "FLOP", "% Total")
        widths = [max(len(row[i]) for row in (head, *rows)) for i in range(3)]
        lines = [f"{head[0]:<{widths[0]}}  {head[1]:>{widths[1]}}  {head[2]:>{widths[2]}}"]
        lines.append("  ".join("-" * width for width in widths))
        lines += [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in rows]
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self.mode = _Counting(self)
        self.mode.__enter__()
        return self

    def __exit__(self, *exc_info: Any) -> None:
        assert self.mode is not None
        self.mode.__exit__(*exc_info)
        self.mode = None
        self.mod_tracker.__exit__(*exc_info)
        if self.display:
            print(self.get_table(self.depth))

    def _count(self, func: OpOverload, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        packet = func.overloadpacket
        formula = self.custom.get(str(packet)) or flop_registry.get(str(packet))
        if formula is None:
            return
        flops = formula(*args, **kwargs, out_val=result)
        if str(packet).startswith("aten.convolution") and isinstance(local.state.current_node, ConvolutionBackward0):
            packet = aten.convolution_backward  # in parts, some of which are convolutions themselves
        for module in self.mod_tracker.parents:
            self.flop_counts[module][packet] += flops


class _Counting(TorchDispatchMode):
    def __init__(self, counter: FlopCounterMode) -> None:
        self.counter = counter

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.counter._count(func, result, args, kwargs or {})
        return result
