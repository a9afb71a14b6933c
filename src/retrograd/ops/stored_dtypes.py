"""Which operators take the dtypes that are for storing: torch's kernels, where it has them, and its refusals.

NumPy and ml_dtypes would compute with these dtypes what torch refuses, or in another precision.  So the first tensor of
such a dtype puts a guard in front of every kernel that operators call (`install`): what `stored_dtypes.txt` lists is
refused in torch's words, what only moves elements runs as it is, and all else is computed in float32 or complex64 and
rounded once.  A program without such a tensor has no guard, and pays nothing.  See Note [Stored dtypes].
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from .._generated import functions as generated
from ..core import dtypes
from ..kernels.dtypes import convert
from ..kernels.promotion import is_stored, result_dtype, scalar_name

#: Kernels that move elements, or look at them one by one as ml_dtypes does it too: no wider dtype is needed.
_MOVES = frozenset(
    "alias as_strided_geometry cat clone complex conj_physical constant_pad_nd copy diag_embed diagonal "
    "diagonal_backward embedding expand fill flat_in flip gather index index_copy index_fill index_put index_select "
    "masked_fill masked_scatter masked_select permute pixel_shuffle pixel_unshuffle put repeat roll rot90 "
    "scatter select select_backward slice slice_backward split split_with_sizes squeeze stack t take through_storage "
    "to_copy transpose tril triu unbind unfold unsqueeze view view_as_complex view_as_real view_dtype where zero "
    "sort argsort unique_parts unique_consecutive".split()
)
#: Kernels that take tensors of different dtypes.
_PROMOTE = frozenset("add addcdiv addcmul div eq mul ne pow sub".split())
_WIDE = {"f": np.dtype(np.float32), "e": np.dtype(np.float32), "c": np.dtype(np.complex64)}
#: What a ufunc that operators call themselves is a form of.
_UFUNCS = {"multiply": "mul", "subtract": "sub"}


def _group(dtype: np.dtype) -> str:
    if dtype.kind == "u":
        return "u"
    return "c" if dtype.kind in "W" else "e" if dtype.name == "float8_e8m0fnu" else "f"


def _refusals() -> dict[str, dict[str, str]]:
    """By kernel, and by group: torch's name in the message."""
    found: dict[str, dict[str, str]] = {}
    with open(os.path.splitext(__file__)[0] + ".txt") as lines:
        for line in lines:
            if not line.startswith("#"):
                kernel, *parts = line.split()
                named = [part.rpartition(":") for part in parts]
                found[kernel] = {group: name for name, _, groups in named for group in groups}
    return found


def _guarded(kernel: Callable[..., Any], name: str, refused: dict[str, str]) -> Callable[..., Any]:
    moves = name in _MOVES

    def guard(*args: Any, **kwargs: Any) -> Any:
        for a in args:
            found = a[0] if a.__class__ is list and a else a
            dtype = found.dtype if found.__class__ is np.ndarray else None
            if dtype is not None and is_stored(dtype):
                break
        else:
            dtype = None
        target = next((a for a in (*args, *kwargs.values()) if isinstance(a, np.dtype)), None) if not moves else None
        if target is not None:  # sum(x, dtype=...) is computed in that
            if dtype is not None and dtype.num >= 256:
                args = tuple(convert(a, target) if a.__class__ is np.ndarray and a.dtype == dtype else a for a in args)
            dtype = target if is_stored(target) else None
        if dtype is None:
            return kernel(*args, **kwargs)
        group = _group(dtype)
        if group == "u" and not moves and any(_is_float(other) for other in args):
            return kernel(*args, **kwargs)
        if group == "c" and not moves:
            common = result_dtype(*[a for a in args if a.__class__ is np.ndarray])
            if not is_stored(common):  # beside a wider tensor: the result is of its dtype, or there is none
                if name in _PROMOTE:
                    args = tuple(convert(a, common) if _is_narrow(a, dtype) else a for a in args)
                return kernel(*args, **kwargs)
        message = refused.get(group)
        if dtype.names is not None and not moves:
            message = refused.get("f", f"{name}_cpu")
        if message is not None:
            by_number = message.endswith("#")
            if not by_number or any(isinstance(other, (int, float)) for other in args):
                shown = message.removesuffix("#")
                raise NotImplementedError(f"\"{shown}\" not implemented for '{scalar_name(dtype)}'{_ADVICE[group]}")
        if moves or group == "u":
            return kernel(*args, **kwargs)
        return _in_wide(kernel, args, kwargs, dtype, _WIDE[group])

    guard.__name__ = name
    guard.__wrapped__ = kernel  # type: ignore[attr-defined]
    return guard


_ADVICE = {
    "u": ": convert it first, x.long()", "f": ": convert it first, x.float()", "e": ": convert it first, x.float()",
    "c": ": convert it first, x.cfloat()",
}  # fmt: skip


def _is_narrow(value: Any, narrow: np.dtype) -> bool:
    return value.__class__ is np.ndarray and value.dtype == narrow


def _is_float(value: Any) -> bool:
    if value.__class__ is np.ndarray:
        return value.dtype.kind in "fcVW"
    return isinstance(value, (float, complex))


def _in_wide(kernel: Callable[..., Any], args: Any, kwargs: Any, narrow: np.dtype, wide: np.dtype) -> Any:
    def widen(value: Any) -> Any:
        if value.__class__ is np.ndarray:
            return convert(value, wide) if value.dtype == narrow else value
        return [widen(one) for one in value] if value.__class__ is list else value

    def round_back(value: Any) -> Any:
        if value.__class__ is tuple:
            return tuple([round_back(one) for one in value])
        if value.__class__ is not np.ndarray or value.dtype.kind not in "fc":
            return value
        return convert(value, narrow if value.dtype == wide else np.dtype(np.float16) if wide.kind == "c" else narrow)

    out = kwargs.pop("out", None)
    result = round_back(kernel(*[widen(a) for a in args], **kwargs))
    if out is None:
        return result
    np.copyto(out, convert(result, out.dtype), casting="unsafe")
    return out


def install() -> None:
    """Put the guards before the kernels."""
    refusals = _refusals()
    space = vars(generated)
    for full, kernel in list(space.items()):
        prefix, _, name = full.partition("_")
        if prefix in ("kernel", "ufunc"):
            name = _UFUNCS.get(name, name) if prefix == "ufunc" else name
            space[full] = _guarded(kernel, name, refusals.get(name, {}))


dtypes.on_first_stored.append(install)

__all__ = ["install"]
