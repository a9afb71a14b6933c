"""``torch.testing``: `assert_close`, and `make_tensor` for what to test with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .core import dtypes
from .ops.factories import as_tensor, from_numpy
from .random import default_generator
from .tensor import Tensor, wrap

__all__ = ["assert_allclose", "assert_close", "make_tensor"]

#: (rtol, atol) of a dtype; of any other, both are 0.
_TOLERANCES = {
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5), "float64": (1e-7, 1e-7),
    "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: Any = None,
) -> None:
    """Raise an AssertionError unless two tensors, numbers, arrays, or structures of them, are close.

    `rtol` and `atol` are given together or not at all: then the dtypes decide.

    >>> import retrograd as torch
    >>> torch.testing.assert_close(torch.tensor([1., 2.]), torch.tensor([1., 2.5]))
    Traceback (most recent call last):
    AssertionError: Tensor-likes are not close!
    ...
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or unspecified, but got no {missing}")
    options = (rtol, atol, equal_nan, check_device, check_dtype, check_stride, check_layout)
    found = _difference(actual, expected, options, "")
    if found is not None:
        raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


#: (rtol, atol) of the older comparison.
_OLDER_TOLERANCES = {"float16": (1e-3, 1e-3), "float32": (1e-4, 1e-5), "float64": (1e-5, 1e-8)}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older `assert_close`: dtypes may differ, NaNs are equal, and what is no tensor becomes one.

    >>> import retrograd as torch
    >>> torch.testing.assert_allclose(torch.ones(2), [1.0, 1.0])
    """
    pair = [actual if isinstance(actual, Tensor) else as_tensor(actual)]
    pair.append(expected if isinstance(expected, Tensor) else as_tensor(expected, dtype=pair[0].dtype))
    if rtol is None and atol is None:
        both = [_OLDER_TOLERANCES.get(str(tensor.dtype).rpartition(".")[2], (0.0, 0.0)) for tensor in pair]
        rtol, atol = (max(values) for values in zip(*both))
    assert_close(*pair, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def _difference(actual: Any, expected: Any, options: tuple, where: str) -> str | None:
    """What is wrong, in words; None if nothing is."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if set(actual) != set(expected):
            return f"The keys of the mappings do not match{where}:\n\n{sorted(actual)} and {sorted(expected)}"
        pairs = [(actual[key], expected[key], key) for key in expected]
    elif _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            return f"The length of the sequences mismatch: {len(actual)} != {len(expected)}{where}"
        pairs = [(a, e, i) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    elif isinstance(actual, (Tensor, np.ndarray)) and isinstance(expected, (Tensor, np.ndarray)):
        one, other = (t if isinstance(t, Tensor) else from_numpy(t) for t in (actual, expected))
        return _tensor_difference(one, other, options, where)
    elif _is_number(actual) and _is_number(expected):
        return _number_difference(actual, expected, options, where)
    elif actual is None and expected is None:
        return None
    else:
        raise TypeError(
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}{where}."
        )
    for one, other, key in pairs:
        found = _difference(one, other, options, f"{where}\n\nThe failure occurred for item [{key!r}]")
        if found is not None:
            return found
    return None


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, complex, np.generic))


def _tensor_difference(actual: Tensor, expected: Tensor, options: tuple, where: str) -> str | None:
    rtol, atol, equal_nan, check_device, check_dtype, check_stride, check_layout = options
    for what, one, other, checked in (
        ("shape", tuple(actual.shape), tuple(expected.shape), True),
        ("device", str(actual.device), str(expected.device), check_device),
        ("dtype", actual.dtype, expected.dtype, check_dtype),
        ("layout", actual.layout, expected.layout, check_layout),
    ):
        if checked and one != other:
            return f"The values for attribute '{what}' do not match: {one} != {other}.{where}"
    if actual.layout.name.startswith("sparse") or expected.layout.name.startswith("sparse"):
        return _sparse_difference(actual, expected, options, where)
    if check_stride and actual.stride() != expected.stride():
        return f"The values for attribute 'stride' do not match: {actual.stride()} != {expected.stride()}.{where}"
    if actual.is_meta or expected.is_meta:
        return None  # there is no more to compare
    pairs = [_TOLERANCES.get(t.dtype.name, (0.0, 0.0)) for t in (actual, expected)]
    rtol = max(pair[0] for pair in pairs) if rtol is None else rtol
    atol = max(pair[1] for pair in pairs) if atol is None else atol
    a, e = _wide(actual), _wide(expected)
    gap, bound = np.abs(a - e), atol + rtol * np.abs(e)
    close = (a == e) | (np.isfinite(gap) & (gap <= bound))
    if equal_nan:
        close |= np.isnan(a) & np.isnan(e)
    if close.all():
        return None
    count, total = int((~close).sum()), close.size
    relative = np.where(e == 0, np.where(gap == 0, 0, np.inf), gap / np.abs(np.where(e == 0, 1, e)))
    exact = rtol == 0 and atol == 0
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    if close.ndim:
        lines.append(f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)")
    for name, values, allowed in (("absolute", gap, atol), ("relative", relative, rtol)):
        masked = np.where(close, 0, values)
        at = np.unravel_index(int(np.argmax(np.where(np.isnan(masked), np.inf, masked))), masked.shape)
        place = f" at index {tuple(int(i) for i in at)}" if close.ndim else ""
        limit = "" if exact else f" (up to {allowed} allowed)"
        lines.append(f"Greatest {name} difference: {values[at]}{place}{limit}")
    return "\n".join(lines) + where


def _sparse_difference(actual: Any, expected: Any, options: tuple, where: str) -> str | None:
    """The same where one is not plain: part by part if both are sparse in the same way, else by all elements."""
    if actual.layout is not expected.layout:
        return _tensor_difference(actual.to_dense(), expected.to_dense(), options, where)
    if actual.is_sparse and actual.is_coalesced() != expected.is_coalesced():
        actual, expected = actual.coalesce(), expected.coalesce()
    if actual._nnz() != expected._nnz():
        return (
            f"The number of specified values in sparse tensors of layout {actual.layout} does not match: "
            f"{actual._nnz()} != {expected._nnz()}{where}"
        )
    for name in actual._memory_.parts:
        one, other = (wrap(getattr(sparse._memory_, name)) for sparse in (actual, expected))
        place = f"{where}\n\nThe failure occurred for the {name} of {actual.layout}"
        found = _tensor_difference(one, other, options, place)
        if found is not None:
            return found
    return None


def _wide(tensor: Tensor) -> np.ndarray:
    """The numbers, in double precision."""
    data = tensor.detach()._numbers_
    return data.astype(np.complex128 if data.dtype.kind == "c" else np.float64)


def _number_difference(actual: Any, expected: Any, options: tuple, where: str) -> str | None:
    rtol, atol, equal_nan = options[:3]
    if rtol is None:
        inexact = any(isinstance(v, (float, complex, np.floating, np.complexfloating)) for v in (actual, expected))
        rtol, atol = (1e-7, 1e-7) if inexact else (0.0, 0.0)
    if options[4] and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}.{where}"
    gap = abs(actual - expected)
    if actual == expected or (equal_nan and actual != actual and expected != expected):
        return None
    if math.isfinite(gap) and gap <= atol + rtol * abs(expected):
        return None
    relative = gap / abs(expected) if expected else math.inf
    exact = rtol == 0 and atol == 0
    text = f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
    limits = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return f"{text}Absolute difference: {gap}{limits[0]}\nRelative difference: {relative}{limits[1]}{where}"


def make_tensor(
    *shape: Any,
    dtype: dtypes.dtype,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of numbers drawn uniformly from [low, high): by default [-9, 9), [0, 10) for bytes, [0, 2) for bools.

    >>> import retrograd as torch
    >>> torch.testing.make_tensor((2, 3), dtype=torch.int64, low=0, high=5).shape
    torch.Size([2, 3])
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else tuple(shape)
    kind = dtype.np.kind
    defaults = {"b": (0, 2), "u": (0, 10), "i": (-9, 10)}.get(kind, (-9, 9))
    low, high = (default if value is None else value for value, default in zip((low, high), defaults, strict=True))
    if low > high or (low == high and kind != "b"):
        raise ValueError(f"make_tensor: low must be weakly smaller than high, but got {low} >= {high}")
    if noncontiguous and memory_format is not None:
        raise ValueError("The parameters `noncontiguous` and `memory_format` are mutually exclusive")
    wide = (*size[:-1], 2 * size[-1]) if noncontiguous and size else size
    if kind in "biu":
        array = default_generator.integers(math.floor(low), math.ceil(high), wide, dtype.np)
    elif kind == "c":
        parts = [default_generator.uniform(wide, np.dtype(np.float64)) * (high - low) + low for _ in range(2)]
        array = (parts[0] + 1j * parts[1]).astype(dtype.np)
    else:
        array = (default_generator.uniform(wide, np.dtype(np.float64)) * (high - low) + low).astype(dtype.np)
    if exclude_zero:
        array[array == 0] = 1 if kind in "biu" else dtypes.float_limits(np.dtype(dtype.to_real().np)).smallest_normal
    result = wrap(array[..., ::2] if wide != size else array)
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)  # type: ignore[attr-defined]
    return result.to(device).requires_grad_(requires_grad)  # type: ignore[attr-defined,no-any-return]
