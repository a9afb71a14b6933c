"""What a kernel would give for arrays that are not there: shapes, dtypes and strides of its results.

Note [Probes]
Most operators treat all sizes alike: what they give for (4096, 1024) and (1024, 7) they give for (6, 4) and (4, 2) with
other numbers.  So the kernel itself runs, on a *probe*: arrays in which each size has been replaced by a small one,
equal ones by equal ones and larger ones by larger ones (0 and 1 stay, they have a meaning of their own); dimensions lie
in memory as they did.  A size of the result that is one of the small ones was the large one that it stands for.

A small size can be what it is by accident: as a sum, or as a number that the operator was given.  So there are two
probes, with different numbers.  A size of the result is taken for a size of the arguments only if both say so (no sum,
multiple or quotient of the pairs in `_SIZES` is another pair), for a number if it is the same in both, and else not at
all: then rules.py has to say what it is, or the operator is refused.  Where the sizes themselves matter (a dimension of
three elements) the first probes fail, and two more follow in which sizes below `_KEPT` are left alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...core.records import OperatorRecord
from ...kernels.shape import is_viewable
from ...tensor.meta import MetaArray, order_of
from .rules import RULES, SIZES

#: What stands for the smallest size, for the next one, ..., in the first probe and in the second.
_SIZES = ((2, 5), (4, 6), (6, 7), (10, 9), (13, 11), (15, 12), (18, 14), (22, 19))
#: In the second pair of probes, sizes up to this one stay; those that stand for others are larger.
_KEPT = 16


def infer_view(record: OperatorRecord, kernel: Callable[..., Any], array: Any, *args: Any, **kwargs: Any) -> Any:
    """The views that a kernel takes: of the ghost, it only computes addresses."""
    ghost = array.ghost
    if record.kernel == "view" and math.prod(n for n in args[0] if n != -1) and not is_viewable(ghost, args[0]):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _boxed(kernel(ghost, *args, **kwargs))


def _boxed(result: Any) -> Any:
    if isinstance(result, np.ndarray):
        return MetaArray(result)
    if isinstance(result, (list, tuple)):
        return type(result)(map(_boxed, result))
    return result


def infer(record: OperatorRecord, kernel: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a kernel would give."""
    out = kwargs.pop("out", None)
    rule = RULES.get(record.form_of or record.name)
    if rule is not None:
        found = _as_results(rule(*args, **kwargs))
    else:
        found = _probed(record, kernel, args, kwargs)
    if out is None:
        return found
    if found.shape != out.shape:
        raise RuntimeError(
            f"output with shape {list(out.shape)} doesn't match the broadcast shape {list(found.shape)}"
        )
    return out


def _as_results(found: Any) -> Any:
    """What a rule says, (shape, dtype) or a list of them, as arrays."""
    if isinstance(found, MetaArray):
        return found
    if isinstance(found, list):
        return tuple(map(_as_results, found))
    shape, dtype = found
    return MetaArray.fresh(tuple(shape), dtype)


class _Unexplained(Exception):
    """A size of a result is none of the arguments', nor a number."""


def _probed(record: OperatorRecord, kernel: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    given: list[Any] = [*args, *kwargs.values()]
    sizes = sorted({n for shape in _shapes(given) for n in shape if n > 1})
    error: Exception | None = None
    for kept in (1, _KEPT):
        replaced = [n for n in sizes if n > kept]
        if len(replaced) > len(_SIZES):
            continue
        tables = [
            dict(zip(replaced, [pair[i] + (kept if kept > 1 else 0) for pair in _SIZES], strict=False)) for i in (0, 1)
        ]
        for filled in (0, 1):
            first, second = (_run(kernel, args, kwargs, table, filled) for table in tables)
            if isinstance(first, Exception) or isinstance(second, Exception):
                error = error or _with_real_sizes(first, second, tables)
                continue
            try:
                return _explained(record, first, second, tables, args, kwargs)
            except _Unexplained as unexplained:
                error = error or NotImplementedError(
                    f"aten::{record.base}: attempted to run this operator with Meta tensors, but there is no rule for "
                    f"the size of its result: {unexplained}"
                )
                break
        if not replaced:
            break
    assert error is not None
    raise error


def _with_real_sizes(first: Any, second: Any, tables: list[dict[int, int]]) -> Exception:
    """The error of a probe as the call would raise it: numbers that are sizes in both are those they stand for."""
    if not isinstance(first, Exception):
        return second
    ours, others = re.split(r"(\d+)", str(first)), re.split(r"(\d+)", str(second))
    if isinstance(second, Exception) and ours[::2] == others[::2] and type(first) is type(second):
        meaning = {(str(tables[0][n]), str(tables[1][n])): str(n) for n in tables[0]}
        pairs = zip(ours[1::2], others[1::2], strict=True)
        ours[1::2] = [meaning.get(pair, pair[0]) for pair in pairs]
        first.args = ("".join(ours),)
    return first


def _shapes(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of all arrays among arguments, also in lists."""
    found: list[tuple[int, ...]] = []
    for value in values:
        if isinstance(value, (MetaArray, np.ndarray)):
            found.append(value.shape)
        elif isinstance(value, (list, tuple)):
            found += _shapes(value)
    return found


def _run(
    kernel: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any], table: dict[int, int], filled: int
) -> Any:
    """What the kernel gives for a probe, or the error that it raises."""
    try:
        return kernel(
            *[_small(value, table, filled) for value in args],
            **{name: _small(value, table, filled) for name, value in kwargs.items()},
        )
    except Exception as error:
        return error


def _small(value: Any, table: dict[int, int], filled: int) -> Any:
    """An argument as a probe has it."""
    if isinstance(value, MetaArray) or (isinstance(value, np.ndarray) and value.ndim):
        return _probe(value.shape, value.dtype, value.strides, table, filled)
    if isinstance(value, (list, tuple)) and any(isinstance(one, (MetaArray, np.ndarray)) for one in value):
        return type(value)([_small(one, table, filled) for one in value])
    return value


def _probe(shape: Any, dtype: Any, strides: Any, table: dict[int, int], filled: int) -> np.ndarray:
    """A small array that lies as a large one would: numbers are a positive definite matrix, integers all the same."""
    small = [table.get(n, n) for n in shape]
    order = order_of(shape, strides)
    whole = [1 if shape[d] > 1 and strides[d] == 0 else small[d] for d in range(len(shape))]
    array = np.empty([whole[d] for d in order], dtype).transpose(np.argsort(order).tolist() if order else None)
    if dtype.kind in "iu":
        array[...] = filled
    elif dtype.kind == "b":
        array[...] = True
    elif len(whole) < 2:
        array[...] = 0.5
    else:
        rows, columns = np.ogrid[: whole[-2], : whole[-1]]
        array[...] = (0.5 ** abs(rows - columns)).astype(dtype)
    return np.broadcast_to(array, small) if whole != small else array


def _explained(
    record: OperatorRecord, first: Any, second: Any, tables: list[dict[int, int]], args: Sequence[Any], kwargs: Any
) -> Any:
    """Results of the probes as what they stand for."""
    if isinstance(first, (list, tuple)):
        parts = [_explained(record, a, b, tables, args, kwargs) for a, b in zip(first, second, strict=True)]
        return type(first)(parts) if not hasattr(first, "_make") else type(first)(*parts)
    if not isinstance(first, np.ndarray):
        return first
    rule = SIZES.get(record.form_of or record.name)
    if rule is not None:
        shape = tuple(rule(*args, **kwargs))
    else:
        meaning = {(tables[0][n], tables[1][n]): n for n in tables[0]}
        sizes = []
        for a, b in zip(first.shape, second.shape, strict=True):
            n = meaning.get((a, b), a if a == b else None)
            if n is None:
                raise _Unexplained(f"it is {first.shape} and {second.shape} for arguments that differ in size")
            sizes.append(n)
        shape = tuple(sizes)
    order = order_of(first.shape, first.strides)
    result = MetaArray.fresh(shape, first.dtype, order)
    if 0 in first.strides and any(s == 0 and n > 1 for s, n in zip(first.strides, first.shape, strict=True)):
        steps = tuple(
            0 if s == 0 and n > 1 else step
            for s, n, step in zip(first.strides, first.shape, result.strides, strict=True)
        )
        return MetaArray.strided(shape, first.dtype, steps)
    return result
