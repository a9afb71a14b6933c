"""How sparse tensors print, character for character as torch prints them."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..kernels import SparseArray
from ..tensor import wrap
from ..tensor.printing import _body, history_suffixes


def _part(name: str, array: Any, indent: int) -> str:
    """One of the tensors that it is made of, as it would print without its dtype."""
    head = name + "=tensor("
    tensor = wrap(array)
    text = _body(array, tensor.dtype, indent + len(head)) if array.size else "[]"
    if not array.size:
        text += f", size={tuple(array.shape)}"
    return head + text + ")"


def sparse_str(tensor: Any, tensor_contents: str | None = None) -> str:
    """``repr(tensor)``."""
    array = tensor._memory_
    prefix = "tensor("
    indent = len(prefix)
    names = array.parts
    if not isinstance(array, SparseArray):
        names = (
            ("crow_indices", "col_indices", "values") if array.by_rows else ("ccol_indices", "row_indices", "values")
        )
    parts = [(name, getattr(array, part)) for name, part in zip(names, array.parts, strict=True)]
    text = prefix + (
        (",\n" + " " * indent).join(_part(name, part, indent) for name, part in parts)
        if tensor_contents is None
        else tensor_contents
    )
    suffixes = [] if tensor.is_cpu else [f"device='{tensor.device}'"]
    suffixes += [f"size={tuple(array.shape)}", f"nnz={array.nnz}"]
    if tensor.dtype.np not in (*dtypes.default, dtypes.int64.np, dtypes.bool_.np):
        suffixes.append(f"dtype={tensor.dtype!r}")
    suffixes.append(f"layout={tensor.layout!r}")
    suffixes += history_suffixes(tensor)
    # As for plain tensors; but the coordinates are on lines of their own.
    column = len(text) - text.rfind("\n") + 1
    for number, suffix in enumerate(suffixes):
        if (number == 0 and isinstance(array, SparseArray)) or column + len(suffix) + 2 > 80:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return text + ")"
