"""Samples of the database computed and differentiated, and which of them are for which tests.

The tests are in `test_operators.py`; others use this as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

import retrograd
from reference import random_cotangent
from samples import OPS, Op, Sample, cases

try:
    import torch
except ImportError:
    torch = None

needs_torch = pytest.mark.skipif(torch is None, reason="torch is not installed")
# Second derivatives by differences cost two backward passes per entry, so they are kept to small samples.
MOST_ENTRIES_OF_SECOND_ORDER = 12

# ---------------------------------------------------------------------------------------------- running a sample


def flat(result: Any) -> list[Any]:
    """The outputs of an operator as a list: it returns one thing, or a tuple or list of them."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def is_tensor(thing: Any) -> bool:
    """Whether this is a tensor of either module (`equal` and `allclose` return a bool)."""
    return hasattr(thing, "requires_grad")


def to_numpy(tensor: Any) -> np.ndarray:
    """A tensor's numbers, copied."""
    if not is_tensor(tensor):
        return np.asarray(tensor)
    tensor = tensor.detach()
    if hasattr(tensor, "resolve_conj"):
        tensor = tensor.resolve_conj().resolve_neg()
    if hasattr(tensor, "_is_zerotensor"):  # torch's way of sending zeros that take no memory
        tensor = tensor + 0 if tensor._is_zerotensor() else tensor
    return np.array(tensor.numpy())


def memory(tensor: Any) -> np.ndarray:
    """A tensor's numbers, where they are."""
    if isinstance(tensor, retrograd.Tensor):
        return tensor._memory_  # also of a conjugated view, which has no array of its values
    return tensor.detach().numpy()


class Run:
    """A sample built and computed in one module, with everything that differentiates it."""

    def __init__(self, module: Any, op: Op, sample: Sample, arrays: list[np.ndarray] | None = None) -> None:
        self.module = module
        self.sample = sample
        self.built = sample.build(module, arrays)
        self.leaves = self.built.leaves
        self.result = op.call(module, self.built.args, self.built.kwargs)
        self.outputs = flat(self.result)
        self.roots = [out for out in self.outputs if is_tensor(out) and out.requires_grad]

    def cotangents(self, requires_grad: bool = False) -> list[Any]:
        """Random gradients for the differentiable outputs, the same ones in every module."""
        rng = np.random.default_rng(self.sample.seed + 1)
        made = []
        for root in self.roots:
            dtype = str(root.dtype).removeprefix("torch.")
            made.append(self.module.from_numpy(random_cotangent(rng, tuple(root.shape), np.dtype(dtype))))
        return [cotangent.requires_grad_() for cotangent in made] if requires_grad else made

    def gradients(self, create_graph: bool = False, cotangents: list[Any] | None = None) -> list[Any]:
        """One gradient, or None, for each leaf."""
        if not self.roots:
            return [None] * len(self.leaves)
        cotangents = self.cotangents() if cotangents is None else cotangents
        grads = self.module.autograd.grad(
            self.roots, self.leaves, cotangents, create_graph=create_graph, allow_unused=True
        )
        return list(grads)

    def second_gradients(self) -> tuple[list[np.ndarray], list[Any], list[Any]]:
        """Gradients of the first-order gradients, paired with random numbers, for leaves and cotangents.

        Returns those numbers, what was differentiated for, and its gradients.
        """
        cotangents = self.cotangents(requires_grad=True)
        grads = self.gradients(create_graph=True, cotangents=cotangents)
        seeds = second_seeds(self.sample, grads)
        used = [(g, s) for g, s in zip(grads, seeds, strict=True) if g is not None and g.requires_grad]
        wanted = [*self.leaves, *cotangents]
        if not used:
            return seeds, wanted, [None] * len(wanted)
        seconds = self.module.autograd.grad(
            [g for g, _ in used], wanted, [self.module.from_numpy(s.copy()) for _, s in used], allow_unused=True
        )
        return seeds, wanted, list(seconds)


def second_seeds(sample: Sample, grads: Iterable[Any]) -> list[np.ndarray]:
    """Random numbers to pair first-order gradients with."""
    rng = np.random.default_rng(sample.seed + 2)
    drawn = []
    for grad in grads:
        array = np.zeros(()) if grad is None else to_numpy(grad)
        drawn.append(random_cotangent(rng, array.shape, array.dtype))
    return drawn


def dense(gradient: Any, like: Any) -> np.ndarray:
    """A gradient as an array, zeros where it is undefined."""
    return np.zeros_like(to_numpy(like)) if gradient is None else to_numpy(gradient)


def close(actual: np.ndarray, expected: np.ndarray, what: str, **tolerance: float) -> None:
    """Equal to rounding, with NaN equal to NaN, and of one shape."""
    assert actual.shape == expected.shape, what
    if not tolerance:
        single = any(a.dtype.name in ("float32", "complex64") for a in (actual, expected))
        half = any(a.dtype.name == "float16" for a in (actual, expected))
        digits = 1e-2 if half else 2e-5 if single else 1e-9
        tolerance = {"rtol": digits, "atol": digits}
    np.testing.assert_allclose(actual, expected, equal_nan=True, err_msg=what, strict=False, **tolerance)


# ---------------------------------------------------------------------------------------------- which samples


def ident(op: Op, sample: Any) -> str:
    """The test's id, as "mul[broadcast]"."""
    return f"{op.name}[{sample.name}]"


def params(chosen: Iterable[tuple[Op, Any]]) -> list[Any]:
    """Pytest's parameters for (operator, sample) pairs."""
    return [pytest.param(op, sample, id=ident(op, sample)) for op, sample in chosen]


CASES = list(cases(OPS))
DIFFERENTIABLE = [(op, s) for op, s in CASES if op.differentiable and any(spec.differentiable for spec in s.specs)]
TORCH_DIFFERENTIATES = [(op, s) for op, s in DIFFERENTIABLE if op.torch_gradient and s.torch_first]
TORCH_DIFFERENTIATES_TWICE = [(op, s) for op, s in TORCH_DIFFERENTIATES if s.second and s.torch_second]
SMOOTH = [(op, s) for op, s in DIFFERENTIABLE if s.smooth and s.in_double]
SMALL = [
    (op, s)
    for op, s in SMOOTH
    if s.second and sum(int(np.prod(t.shape)) for t in s.specs if t.differentiable) <= MOST_ENTRIES_OF_SECOND_ORDER
]
SINGLE = [(op, s.float32_twin()) for op, s in SMOOTH if op.supports_float32]
WITH_METHOD = [(op, s) for op, s in CASES if op.method and s.method and s.args]
WITH_INPLACE = [(op, s) for op, s in CASES if op.inplace and s.method and s.args]
WITH_REFERENCE = [(op, s) for op, s in CASES if op.reference]
ERRORS = [(op, e) for op in OPS for e in op.errors]


# ---------------------------------------------------------------------------------------------- comparing


def same_result(ours: Any, theirs: Any, what: str) -> None:
    """Same numbers, shape, dtype and requires_grad."""
    if not is_tensor(theirs):
        assert type(ours) is type(theirs), what
        assert ours == theirs, what
        return
    assert str(ours.dtype) == str(theirs.dtype), f"{what}: dtype"
    assert tuple(ours.shape) == tuple(theirs.shape), f"{what}: shape"
    assert ours.requires_grad == theirs.requires_grad, f"{what}: requires_grad"
    close(to_numpy(ours), to_numpy(theirs), what)


def rounding(sample: Sample) -> dict[str, float]:
    """The tolerance for gradients: where float32 takes part, the gradient of a float64 tensor is no more precise."""
    single = any(spec.dtype in ("float32", "complex64") for spec in sample.specs)
    return {"rtol": 2e-5, "atol": 2e-5} if single else {}


def same_gradients(ours: list[Any], theirs: list[Any], what: str, **tolerance: float) -> None:
    """Same numbers, shape and dtype; None only where torch has None or zeros."""
    for position, (mine, yours) in enumerate(zip(ours, theirs, strict=True)):
        name = f"{what} {position}"
        if yours is None:
            assert mine is None or not np.any(to_numpy(mine)), f"{name}: torch's is undefined"
            continue
        assert mine is not None, f"{name}: undefined, torch's is not"
        assert str(mine.dtype) == str(yours.dtype), f"{name}: dtype"
        assert tuple(mine.shape) == tuple(yours.shape), f"{name}: shape"
        close(to_numpy(mine), to_numpy(yours), name, **tolerance)
