"""What is to be known of kernels to record them: which look at values, and whose results are sized by values."""

from __future__ import annotations

from .values import Call

#: Kernels of these modules look at sizes and dtypes alone where they return numbers.
_METADATA = {
    "einsum",
    "storage",
    "dims",
    "creation",
    "shape",
    "promotion",
    "dtypes",
    "memory",
    "indexing_key",
    "conv",
    "pool",
    "attention",
    "resample",
    "embedding",
}
#: Kernels of these modules refuse some values: matrices without an inverse, indices that are out of range.
_LOOKING = {
    "decompositions", "solve", "matrix_functions", "gather", "index", "embedding", "losses", "statistics",
    "sort", "fft",
}  # fmt: skip
#: Kernels whose result's size hangs on values.
_SIZED_BY_VALUES = {
    "nonzero", "unique", "unique_dim", "unique_consecutive", "masked_select", "bincount", "repeat_interleave",
    "argwhere", "nonzero_numpy", "unique_parts",
}  # fmt: skip


def is_metadata(module: str | None) -> bool:
    """Do kernels of this module return numbers that hang on sizes and dtypes alone?"""
    return (module or "").rpartition(".")[2] in _METADATA


def refuses_values(module: str | None) -> bool:
    """Do kernels of this module look at values, and refuse some?"""
    return (module or "").rpartition(".")[2] in _LOOKING


def is_sized_by_values(name: str, call: Call) -> bool:
    """Does the size of a result hang on values? A mask of the world is taken for one that stays."""
    if name in ("index", "getitem"):
        return any(value.dtype.char == "?" and value.storage.kind != "outside" for value in call.reads[1:])
    if name == "one_hot":
        return -1 in call.args[1:2] or call.kwargs.get("num_classes", 0) == -1 or len(call.args) + len(call.kwargs) == 1
    return name in _SIZED_BY_VALUES
