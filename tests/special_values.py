"""Every operator of the sample database at NaN, infinities, zeros, denormal and huge numbers, beside torch.

`differences(op)` builds the operator's samples with such numbers in place of their own, in both modules, and
compares four aspects: the result, the gradient (formulas over arrays), the recorded gradient (the same over
Tensors) and the tangent (both ways of computing it).  `test_special_values.py` says which differences are meant.

What counts as equal: the same NaNs and infinities, and numbers that agree to rounding.  The sign of a zero is not
looked at.  Complex numbers with an infinite or undefined part are all equal: which of the parts becomes NaN depends
on the order of multiplications, and torch's own vectorized and plain loops differ in it.

Where numbers are so large or small that intermediate results over- or underflow, what is right is known in single
precision: it is what torch computes of the same numbers in double precision.  Ours has to be that, or else what torch
has ("exact" differences).  In double precision nothing is known: whatever we have is as good as a NaN of torch's, and
all but a NaN as good as an infinity.
"""

from __future__ import annotations

import itertools
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import retrograd
from operator_runs import flat, is_tensor
from reference import random_cotangent
from retrograd.autograd.intercept import observing
from samples import Op, Sample, decompositions, matrix_functions, solve

EXTREME = "extreme grid"
ASPECTS = ("result", "gradient", "recorded gradient", "tangent")

#: What LAPACK computes, and what is made of it.  Given a NaN or an infinity, LAPACKs differ (torch has another than
#: NumPy), look for eigenvalues for ever, or end the process; the cases that count have tests of their own.
BY_LAPACK = {op.name for op in (*decompositions.OPS, *matrix_functions.OPS, *solve.OPS)} | {
    "norm, options", "nuclear_norm", "linalg.norm nuc", "linalg.norm", "linalg.norm, options", "linalg.matrix_norm",
    "linalg.matrix_norm, options",
}  # fmt: skip

FLOATING = ("float64", "float32", "complex128", "complex64")


# ---------------------------------------------------------------------------------------------------- the numbers


def special_numbers(dtype: str) -> np.ndarray:
    """NaN, infinities, zeros and ordinary numbers; of complex dtypes, on the axes and diagonals."""
    nan, inf = np.nan, np.inf
    if not dtype.startswith("complex"):
        return np.array([nan, inf, -inf, 0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.5])
    parts = [
        (0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (0.5, -0.5), (nan, 0), (0, nan), (inf, 0), (-inf, 0),
        (0, inf), (0, -inf), (inf, 1), (inf, inf), (inf, nan),
    ]  # fmt: skip
    return np.array([complex(*part) for part in parts])


def extreme_numbers(dtype: str) -> np.ndarray:
    """Denormal numbers, such as have no square, and the largest; among them ordinary ones."""
    name = {"complex64": "float32", "complex128": "float64"}.get(dtype, dtype)
    info = np.finfo(name)
    tiny, huge = float(info.smallest_subnormal) * 3, float(info.max)
    small, large = np.sqrt(float(info.tiny)) / 8, np.sqrt(huge) * 8
    if not dtype.startswith("complex"):
        return np.array([tiny, -tiny, small, -small, large, -large, huge, -huge, 100.0, -100.0, 0.0, 1.0, -0.5])
    parts = [(tiny, 0), (small, small), (large, large), (huge, 0), (0, huge), (100, 1), (-100, 1), (0, 0)]
    return np.array([complex(*part) for part in parts])


# ----------------------------------------------------------------------------------------------------- the rounds


class Round(NamedTuple):
    """Arrays for a sample's tensors; `lenient` where anything may stand for a NaN or infinity of torch's."""

    name: str
    arrays: list[np.ndarray]
    lenient: bool


def rounds(op: Op, sample: Sample, thorough: bool = False) -> Iterator[Round]:
    """The sample with special numbers in the tensors that are floating."""
    arrays = sample.arrays()
    names = [spec.dtype for spec in sample.specs]
    floating = [i for i, name in enumerate(names) if name in FLOATING and arrays[i].size]
    rng = np.random.default_rng(zlib.crc32(op.name.encode()))
    if len(floating) == len(arrays) <= 3 and len({a.shape for a in arrays}) == 1 and op.name not in BY_LAPACK:
        yield Round("grid", _grid(names, special_numbers), False)
        yield Round(EXTREME, _grid(names, extreme_numbers), "float32" not in names)
    for i in floating:
        one = [np.nan, np.inf, 0.0, -np.inf]
        for number in one if thorough else one[:2]:
            changed = [a.copy() for a in arrays]
            changed[i].reshape(-1)[rng.integers(changed[i].size)] = number
            yield Round(f"one {number} in {i}", changed, False)
    for number in (0.0, np.inf, 1.0, np.nan)[: None if thorough else 2]:
        filled = [np.full_like(a, number) if i in floating else a.copy() for i, a in enumerate(arrays)]
        yield Round(f"all {number}", filled, False)
    for turn in range(6 if thorough else 2):
        changed = [a.copy() for a in arrays]
        for i in floating:
            drawn = rng.choice(special_numbers(names[i]), changed[i].shape)
            keep = rng.random(changed[i].shape) < turn / 6
            changed[i] = np.where(keep, changed[i], drawn).astype(changed[i].dtype)
        yield Round(f"mixed {turn}", changed, False)


def _grid(names: list[str], numbers: Any) -> list[np.ndarray]:
    """One dimension of numbers, pairs or triples: what a pointwise operator takes; others say no or something else."""
    values = [numbers(name)[: 8 if len(names) == 3 else None] for name in names]
    crossed = list(itertools.product(*values))
    return [np.array([row[i] for row in crossed]).astype(name) for i, name in enumerate(names)]


def chosen_samples(op: Op, most: int | None) -> list[Sample]:
    """Samples with floating tensors in double precision and, of the first ones, twins in single precision."""
    found = [
        s
        for s in op.samples
        if any(spec.dtype in ("float64", "complex128") for spec in s.specs)
        and all(spec.layout == "contiguous" for spec in s.specs)
        and not any(0 in spec.shape for spec in s.specs)
        and (sum(int(np.prod(spec.shape)) for spec in s.specs) < 400)
    ]
    plain = [s for s in found if not s.name.endswith(", complex")]
    complex_ones = [s for s in found if s.name.endswith(", complex")]
    if most is not None:
        plain, complex_ones = _spread(plain, most), _spread(complex_ones, max(1, most // 2))
    singles = [s.float32_twin() for s in plain[:1]] if op.supports_float32 else []
    return [*plain, *complex_ones, *singles]


def _spread(samples: list[Sample], most: int) -> list[Sample]:
    """Evenly from the list: neighbours are alike."""
    if len(samples) <= most:
        return samples
    return [samples[i * len(samples) // most] for i in range(most)]


# -------------------------------------------------------------------------------------------------- what they give


class Outcome:
    """The aspects of one call in one module: lists of arrays, or the exception."""

    def __init__(self, module: Any, op: Op, sample: Sample, arrays: list[np.ndarray], half: str | None) -> None:
        self.module, self.op, self.sample, self.arrays, self.half = module, op, sample, arrays, half

    def build(self, requires_grad: bool, along: list[Any] | None = None) -> tuple[Any, list[Any]]:
        """The sample's arguments, and its leaves."""
        return _built(self.module, self.sample, self.arrays, requires_grad, self.half, along)

    def result(self) -> list[Any]:
        """The values."""
        (args, kwargs), _ = self.build(False)
        return [_numbers(out) for out in flat(self.op.call(self.module, args, kwargs))]

    def gradient(self, create_graph: bool = False) -> list[Any]:
        """Of all leaves."""
        (args, kwargs), leaves = self.build(True)
        roots = [o for o in flat(self.op.call(self.module, args, kwargs)) if is_tensor(o) and o.requires_grad]
        if not roots or not leaves:
            return []
        rng = np.random.default_rng(5)
        sent = []
        for root in roots:
            dtype = str(root.dtype).removeprefix("torch.")
            sent.append(self.module.from_numpy(random_cotangent(rng, tuple(root.shape), np.dtype(dtype))))
        grads = self.module.autograd.grad(roots, leaves, sent, create_graph=create_graph, allow_unused=True)
        return [None if g is None else _numbers(g) for g in grads]

    def directions(self) -> list[np.ndarray]:
        """What the tangents of the inputs are."""
        rng = np.random.default_rng(6)
        return [random_cotangent(rng, a.shape, a.dtype) for a in self.arrays]

    def tangent(self) -> list[Any]:
        """Of all results."""
        forward = self.module.autograd.forward_ad
        with forward.dual_level():
            (args, kwargs), _ = self.build(False, self.directions())
            outputs = flat(self.op.call(self.module, args, kwargs))
            found = [forward.unpack_dual(out).tangent if is_tensor(out) else None for out in outputs]
            return [None if t is None else _numbers(t) for t in found]


    def tangent_by_gradients(self) -> list[Any]:
        """The tangents that the gradients say: of each element of a result, its slopes times the directions."""
        (args, kwargs), leaves = self.build(True)
        along = [d for d, spec in zip(self.directions(), self.sample.specs, strict=True) if spec.differentiable]
        found: list[Any] = []
        for root in flat(self.op.call(self.module, args, kwargs)):
            if not is_tensor(root) or not root.requires_grad:
                found.append(None)
                continue
            changes = np.zeros(tuple(root.shape))
            for cell in np.ndindex(*changes.shape):
                sent = np.zeros(changes.shape)
                sent[cell] = 1
                sent = self.module.from_numpy(sent).to(root.dtype)
                grads = self.module.autograd.grad(root, leaves, sent, retain_graph=True, allow_unused=True)
                changes[cell] = sum((_numbers(g) * d).sum() for g, d in zip(grads, along) if g is not None)
            found.append(changes)
        return found


def _built(
    module: Any, sample: Sample, arrays: list[np.ndarray], requires_grad: bool, half: str | None, along: Any
) -> tuple[Any, list[Any]]:
    leaves = []

    class Builder:
        def __getattr__(self, name: str) -> Any:
            return getattr(module, name)

        def __init__(self) -> None:
            self.turn = iter(range(len(arrays)))

        def from_numpy(self, array: np.ndarray) -> Any:
            i = next(self.turn)
            tensor = module.from_numpy(array)
            if half is not None and array.dtype.kind in "f":
                tensor = tensor.to(getattr(module, half))
            if sample.specs[i].differentiable:
                if along is not None:
                    return module.autograd.forward_ad.make_dual(tensor, module.from_numpy(along[i]))
                if requires_grad:
                    leaves.append(tensor.requires_grad_())
            return tensor

    built = sample.build(Builder(), [a.copy() for a in arrays], requires_grad=False)  # type: ignore[arg-type]
    return (built.args, built.kwargs), leaves


def _numbers(thing: Any) -> Any:
    if not is_tensor(thing):
        return np.asarray(thing)
    thing = thing.detach()
    if hasattr(thing, "_is_zerotensor") and thing._is_zerotensor():
        thing = thing + 0
    thing = thing.resolve_conj().resolve_neg()
    if str(thing.dtype).endswith(("bfloat16", "float16")):
        thing = thing.float()
    return np.array(thing.numpy())


def attempt(function: Any, *args: Any) -> Any:
    """What it gives, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return function(*args)
        except Exception as error:
            return error


# ---------------------------------------------------------------------------------------------------- comparing


def agree(ours: np.ndarray, theirs: np.ndarray, digits: float, lenient: bool, truth: Any = None) -> np.ndarray:
    """Where they are equal, as the top of this file says; `truth`: what is right, if that is known."""
    if ours.dtype.kind not in "fc":
        return ours == theirs
    with np.errstate(all="ignore"):
        if "c" in (ours.dtype.kind, theirs.dtype.kind):
            infinite = ~np.isfinite(ours) & ~np.isfinite(theirs)
        else:
            infinite = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
        finite = np.isfinite(ours) & np.isfinite(theirs)
        near = np.abs(ours - theirs) <= digits * (1 + np.abs(theirs))
        better = (np.isnan(theirs) | (np.isinf(theirs) & ~np.isnan(ours))) & lenient
        if truth is not None:
            better |= agree(ours, truth.astype(ours.dtype), digits, False)
        return infinite | (finite & near) | better


def describe(ours: Any, theirs: Any, wrong: np.ndarray, arrays: list[np.ndarray]) -> str:
    """The first cells that differ."""
    parts = []
    for cell in map(tuple, np.argwhere(wrong)[:4]):
        inputs = [a[cell].item() for a in arrays if a.shape == ours.shape]
        parts.append(f"at {inputs or [int(c) for c in cell]} ours {ours[cell]} torch {theirs[cell]}")
    return f"{int(wrong.sum())}: " + "; ".join(parts)


def digits_of(sample: Sample, half: str | None) -> float:
    """How far the two may be apart."""
    if half is not None:
        return 2e-2
    single = any(spec.dtype in ("float16", "float32", "complex64") for spec in sample.specs)
    return 2e-4 if single else 1e-8


def compare(
    mine: Any, theirs: Any, arrays: list[np.ndarray], digits: float, lenient: bool, truth: Any = None
) -> str | None:
    """None, or in words how they differ."""
    if isinstance(theirs, Exception) or isinstance(mine, Exception):
        if type(mine).__name__ == type(theirs).__name__:
            return None
        return f"ours {_short(mine)}, torch {_short(theirs)}"
    truth = itertools.repeat(None) if truth is None or isinstance(truth, Exception) else truth
    for position, (a, b, right) in enumerate(zip(mine, theirs, truth, strict=False)):
        a = np.zeros_like(b) if a is None and b is not None else a
        b = np.zeros_like(a) if b is None and a is not None else b
        if a is None:
            continue
        if a.shape != b.shape:
            return f"number {position}: shapes {a.shape} {b.shape}"
        wrong = ~agree(a, b, digits, lenient, right)
        if wrong.any():
            return f"number {position}: {describe(a, b, wrong, arrays)}"
    return None if len(mine) == len(theirs) else f"{len(mine)} results, torch {len(theirs)}"


def _short(thing: Any) -> str:
    return f"{type(thing).__name__}: {str(thing)[:90]}" if isinstance(thing, Exception) else "values"


def differences(op: Op, thorough: bool = False) -> dict[str, list[str]]:
    """For each aspect in which the operator differs from torch, where and how."""
    import torch

    found: dict[str, list[str]] = {}
    for sample in chosen_samples(op, 6 if thorough else 2):
        for turn in rounds(op, sample, thorough):
            if op.name in BY_LAPACK and not all(np.isfinite(a).all() for a in turn.arrays if a.dtype.kind in "fc"):
                continue
            if not thorough and "float32" in sample.name and "grid" not in turn.name:
                continue
            for aspect, text in _differing(torch, op, sample, turn, None):
                found.setdefault(aspect, []).append(f"{sample.name} / {turn.name}: {text}")
    if op.name in BY_LAPACK:
        return found
    plain = [s for s in chosen_samples(op, 1) if not any("complex" in spec.dtype for spec in s.specs)]
    for half in ("float16", "bfloat16"):
        for sample in plain[:1]:
            single = sample.float32_twin()
            for turn in rounds(op, single, False):
                if "extreme" in turn.name or "all" in turn.name or turn.name == "mixed 1":
                    continue
                for aspect, text in _differing(torch, op, single, turn, half):
                    found.setdefault(aspect, []).append(f"{sample.name}, {half} / {turn.name}: {text}")
    return found


def unlike_their_definition(op: Op, definition: Any, aspects: set[str]) -> list[str]:
    """Where ours differs from torch, and from what torch computes by the operator's definition as well."""
    import torch

    defined = replace(op, fn=definition, samples=list(op.samples), supports_complex=False)
    found = []
    for sample in chosen_samples(op, 2):
        for turn in rounds(op, sample):
            digits = digits_of(sample, None)
            ours, theirs = (Outcome(m, op, sample, turn.arrays, None) for m in (retrograd, torch))
            right = Outcome(torch, defined, sample, turn.arrays, None)
            for aspect in sorted({a.removesuffix(", exactly").removeprefix("recorded ") for a in aspects}):
                mine, expected = attempt(getattr(ours, aspect)), attempt(getattr(theirs, aspect))
                if isinstance(expected, Exception):
                    continue
                if turn.name == EXTREME and expected[0].shape != turn.arrays[0].shape:
                    continue
                if compare(mine, expected, turn.arrays, digits, turn.lenient) is not None:
                    truth = attempt(getattr(right, aspect))
                    if isinstance(truth, Exception):
                        raise truth
                    text = compare(mine, expected, turn.arrays, digits, turn.lenient, truth)
                    if text is not None:
                        found.append(f"{sample.name} / {turn.name}: {aspect} {text}")
    return found


def tangents_unlike_their_gradients(op: Op) -> list[str]:
    """Where our tangent differs from torch's, and from what torch's own gradient says as well."""
    import torch

    found = []
    for sample in chosen_samples(op, 2):
        for turn in rounds(op, sample):
            digits = digits_of(sample, None)
            ours, theirs = (Outcome(m, op, sample, turn.arrays, None) for m in (retrograd, torch))
            mine, expected = attempt(ours.tangent), attempt(theirs.tangent)
            if isinstance(expected, Exception) or compare(mine, expected, turn.arrays, digits, turn.lenient) is None:
                continue
            text = compare(mine, attempt(theirs.tangent_by_gradients), turn.arrays, digits, False)
            if text is not None:
                found.append(f"{sample.name} / {turn.name}: {text}")
    return found


def _differing(
    torch: Any, op: Op, sample: Sample, turn: Round, half: str | None
) -> Iterator[tuple[str, str]]:
    digits, arrays, lenient = digits_of(sample, half), turn.arrays, turn.lenient
    ours, theirs = Outcome(retrograd, op, sample, arrays, half), Outcome(torch, op, sample, arrays, half)
    expected = attempt(theirs.result)
    if isinstance(expected, Exception) and ("grid" in turn.name or half is not None):
        return  # not a pointwise operator, or not for this dtype
    if turn.name == EXTREME and any(out.shape != arrays[0].shape for out in expected):
        return  # sums of the largest numbers depend on the order
    exact = turn.name == EXTREME and not lenient
    wide = {"float32": "float64", "complex64": "complex128"}
    right = None
    if exact:
        doubled = [a.astype(wide[a.dtype.name]) for a in arrays]
        right = Outcome(torch, op, sample.twin("float64", wide), doubled, None)

    def unlike(aspect: str, found: Any, expected: Any, *name: str) -> Iterator[tuple[str, str]]:
        truth = attempt(getattr(right, aspect)) if right is not None else None
        text = compare(found, expected, arrays, digits, lenient, truth)
        if text is not None:
            yield f"{' '.join([*name, aspect])}{', exactly' * exact}", text

    yield from unlike("result", attempt(ours.result), expected)
    if isinstance(expected, Exception) or half is not None or not op.differentiable:
        return
    if op.torch_gradient and sample.torch_first:
        expected = attempt(theirs.gradient)
        if not isinstance(expected, Exception):
            yield from unlike("gradient", attempt(ours.gradient), expected)
            yield from unlike("gradient", attempt(ours.gradient, True), expected, "recorded")
    expected = attempt(theirs.tangent)
    if not isinstance(expected, Exception):
        with observing(lambda operator, args, kwargs, proceed: proceed()):
            over_tensors = attempt(ours.tangent)
        found = list(unlike("tangent", attempt(ours.tangent), expected))
        yield from found or unlike("tangent", over_tensors, expected)
