"""Printing: what ``repr(tensor)`` and ``format(tensor, spec)`` give, character for character as torch prints.

`Tensor.__repr__` calls `tensor_str`, `Tensor.__format__` calls `format_number`.  A print is made in three steps:

1. `_visible` gathers the elements that will be shown: all of them, or the edges of a tensor that is too large.
2. a *cell format* (`_TextCells`, `_FloatCells`, `_ComplexCells`) looks at all shown elements and settles one notation
   and one width for them; `_body` sets the cells into brackets, lines and blank lines.
3. `_suffixes` lists what follows the elements (size, dtype, grad_fn, ...) and `tensor_str` places it.

Only the tensor's array and the attributes that the user sees are read, so that nothing here is traced.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..core import dtypes
from ..kernels.dtypes import convert

# ---------------------------------------------------------------------------------------------------- options

_PROFILES: dict[str, dict[str, Any]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

# Process-wide, as in torch: how a program prints is one decision, not one per thread.
_options: dict[str, Any] = {**_PROFILES["default"], "sci_mode": None}


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Choose how tensors are printed; what is None stays as it is, except `sci_mode`.

    `precision` is the number of digits after the point; a tensor of more than `threshold` elements is abbreviated to
    `edgeitems` at both ends of each dimension; lines are broken at `linewidth`.  `profile` is ``"default"``,
    ``"short"`` or ``"full"`` and is applied before the others.  `sci_mode` forces scientific notation on or off;
    None, also when it is just not given, lets each tensor's values decide.

    >>> set_printoptions(precision=2, sci_mode=True)
    >>> get_printoptions()["precision"], get_printoptions()["sci_mode"]
    (2, True)
    >>> set_printoptions(profile="default")
    >>> get_printoptions()["precision"], get_printoptions()["sci_mode"]
    (4, None)
    """
    _options.update(_PROFILES.get(profile, {}) if profile is not None else {})
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    _options.update({name: value for name, value in given.items() if value is not None})
    _options["sci_mode"] = sci_mode


def get_printoptions() -> dict[str, Any]:
    """The options in force, as the keyword arguments of `set_printoptions`.

    >>> get_printoptions()
    {'precision': 4, 'threshold': 1000, 'edgeitems': 3, 'linewidth': 80, 'sci_mode': None}
    """
    return dict(_options)


@contextmanager
def printoptions(**options: Any) -> Iterator[None]:
    """`set_printoptions` for the length of a ``with`` block.

    >>> with printoptions(edgeitems=1):
    ...     get_printoptions()["edgeitems"]
    1
    >>> get_printoptions()["edgeitems"]
    3
    """
    before = get_printoptions()
    try:
        set_printoptions(**options)
        yield
    finally:
        _options.update(before)


# ---------------------------------------------------------------------------------------------------- cells
# A cell format has `width` (what one element is reckoned to take when lines are broken) and is called on an element.


class _TextCells:
    """Integers and bools: Python's own notation, set flush right."""

    def __init__(self, shown: np.ndarray) -> None:
        self.width = max(len(str(value)) for value in shown.ravel().tolist())

    def __call__(self, value: Any) -> str:
        return str(value).rjust(self.width)


class _FloatCells:
    """Floats: whole numbers (``2.``), fixed point (``2.5000``) or scientific (``2.5000e+10``), one for all.

    Zeros, infinities and nans have no say: neither in the notation nor in the width.  That is why ``-0.`` may stick
    out of its column, and why a line of zeros or nans alone is reckoned one character per cell and overlong; so it
    is in torch.
    """

    def __init__(self, shown: np.ndarray, zero: float = 0.0) -> None:
        values = shown.ravel().astype(np.float64)
        values = values[np.isfinite(values) & (values != zero)]
        self.whole = bool((values == np.ceil(values)).all())
        self.scientific = False
        self.width = 1
        self.precision = _options["precision"]
        if values.size:
            self.scientific = _wants_scientific(values, self.whole)
            self.width = max(len(self._write(value)) for value in values.tolist())

    def _write(self, value: float) -> str:
        if self.scientific:
            return f"{value:.{self.precision}e}"
        if self.whole:
            return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
        return f"{value:.{self.precision}f}"

    def __call__(self, value: float) -> str:
        return self._write(value).rjust(self.width)


def _wants_scientific(values: np.ndarray, whole: bool) -> bool:
    if _options["sci_mode"] is not None:
        return _options["sci_mode"]
    sizes = np.abs(values)
    smallest, largest = float(sizes.min()), float(sizes.max())
    # Not a product: 1000 * smallest rounds differently than torch's quotient.  An overflowing quotient is "very far".
    with np.errstate(over="ignore"):
        spread = np.float64(largest) / np.float64(smallest)
    return bool(spread > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4))


class _ComplexCells:
    """Complex numbers: the real and the imaginary parts each have their own notation and width."""

    def __init__(self, shown: np.ndarray) -> None:
        self.real, self.imag = _FloatCells(shown.real), _FloatCells(shown.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = self.imag(value.imag).lstrip()
        return f"{self.real(value.real)}{'' if imag.startswith('-') else '+'}{imag}j"


def _cells(shown: np.ndarray, dtype: Any) -> _TextCells | _FloatCells | _ComplexCells:
    if dtype.is_complex:
        return _ComplexCells(shown)
    if dtype.name == "float8_e8m0fnu":  # its smallest number is what 0 becomes in it
        return _FloatCells(shown, 2.0**-127)
    return _FloatCells(shown) if dtype.is_floating_point else _TextCells(shown)


# ---------------------------------------------------------------------------------------------------- the elements


def _visible(data: np.ndarray) -> tuple[np.ndarray, list[bool]]:
    """The elements to show, and for each dimension whether its middle was left out of them."""
    edge = _options["edgeitems"]
    abbreviated = [data.size > _options["threshold"] and n > 2 * edge for n in data.shape]
    if any(abbreviated):
        kept = [
            np.r_[:edge, n - edge : n] if cut else np.arange(n) for n, cut in zip(data.shape, abbreviated, strict=True)
        ]
        data = data[np.ix_(*kept)]
    return data, abbreviated


def _body(data: np.ndarray, dtype: Any, indent: int) -> str:
    """The elements in their brackets, when the first bracket stands in column `indent`."""
    shown, abbreviated = _visible(data)
    shown = _readable(shown)
    cell = _cells(shown, dtype)
    return _nest(shown.tolist(), 0, indent, cell, abbreviated)


def _readable(shown: np.ndarray) -> np.ndarray:
    """The same numbers in a dtype that NumPy has, where it has not this one."""
    if shown.dtype.names is not None:
        return shown.view(np.uint8).astype(np.float64)
    if shown.dtype.num < 256:
        return shown
    return convert(shown, np.dtype("complex64" if shown.dtype.kind in "W" else "float32"))


def _nest(items: Any, depth: int, indent: int, cell: Any, abbreviated: list[bool]) -> str:
    """One dimension in its brackets; `depth` is how many are around it."""
    remaining = len(abbreviated) - depth
    if remaining == 0:
        return cell(items)
    parts = [_nest(item, depth + 1, indent, cell, abbreviated) for item in items]
    edge = _options["edgeitems"]
    column = indent + depth + 1
    if remaining > 1:
        if abbreviated[depth]:
            parts.insert(edge, "...")
        # One line break between rows, one more (a blank line) for every dimension above.
        return "[" + ("," + "\n" * (remaining - 1) + " " * column).join(parts) + "]"
    if abbreviated[depth]:
        parts.insert(edge, " ...")
    # Reckoned from the bracket, with a separator after every cell, the last one too.
    per_line = max(1, math.floor((_options["linewidth"] - (column - 1)) / (cell.width + 2)))
    lines = [", ".join(parts[start : start + per_line]) for start in range(0, len(parts), per_line)]
    return "[" + (",\n" + " " * column).join(lines) + "]"


# ---------------------------------------------------------------------------------------------------- the whole


def _suffixes(tensor: Any) -> Iterator[str]:
    """What follows the elements, in torch's order."""
    data, dtype = tensor._numbers_, tensor.dtype
    if str(tensor.device) != "cpu":
        yield f"device='{tensor.device}'"
    if data.size == 0:
        # No element shows what the tensor holds, so its dtype goes unsaid only where it is the default.
        if data.ndim != 1:
            yield f"size={tuple(data.shape)}"
        obvious = dtype is dtypes.get_default_dtype()
    else:
        # Without edge items a large tensor shows nothing of its shape; torch then tells it of every tensor.
        if _options["edgeitems"] == 0:
            yield f"size={tuple(data.shape)}"
        double = dtypes.default[0] == dtypes.float64.np
        usual = ("int64", "bool", "complex128" if double else "complex64")
        obvious = dtype.name in usual or dtype is dtypes.get_default_dtype()
    if not obvious:
        yield f"dtype={dtype!r}"
    yield from history_suffixes(tensor)


def history_suffixes(tensor: Any) -> Iterator[str]:
    """What there is to say of where a tensor comes from."""
    try:
        grad_fn = tensor.grad_fn
        name = None if grad_fn is None else type(grad_fn).name(grad_fn).rpartition("::")[2]
    except RuntimeError:
        # A view whose base was written to in a way that left its history undefined.  Printing is how the user will
        # look into that, so it does not raise.
        name = "Invalid"
    if name is not None:
        yield f"grad_fn=<{name}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"

    from ..autograd.forward_ad import tangent_for_printing  # autograd is made of Tensors

    tangent = tangent_for_printing(tensor)
    if tangent is not None:
        yield f"tangent={tangent}"


def tensor_str(tensor: Any, tensor_contents: str | None = None) -> str:
    """``repr(tensor)``, with `tensor_contents`, if given, in place of the elements."""
    cls = type(tensor).__name__
    # A Parameter prints as a tensor after a headline of its own; every other subclass goes by its name.
    prefix = "tensor(" if cls in ("Tensor", "Parameter") else cls + "("
    indent = len(prefix)
    data = tensor._numbers_
    if tensor_contents is None:
        if data.size == 0:
            tensor_contents = "[]"
        elif data.ndim and data.size > _options["threshold"] and _options["edgeitems"] == 0:
            tensor_contents = "[...]"
        else:
            tensor_contents = _body(data, tensor.dtype, indent)

    text = prefix + tensor_contents
    # Room is kept for the comma before the suffix and for the bracket (or comma) after it.
    column = len(text) - text.rfind("\n") + 1
    for suffix in _suffixes(tensor):
        if column + len(suffix) + 2 > _options["linewidth"]:
            text += ",\n" + " " * indent + suffix
            column = indent + len(suffix)
        else:
            text += ", " + suffix
            column += len(suffix) + 2
    return as_parameter(tensor, text + ")")


def as_parameter(tensor: Any, text: str) -> str:
    """The text of a tensor, which says so if it is a parameter of a user's own class (nn/parameter.py)."""
    return f"Parameter({text})" if tensor.__dict__.get("_is_param", False) else text


def format_number(tensor: Any, spec: str) -> str:
    """``format(tensor, spec)``: a plain 0-d tensor formats as its number, all else as Python objects do."""
    if tensor._memory_.ndim == 0 and type(tensor).__name__ == "Tensor":
        return format(tensor._numbers_.item(), spec)
    return object.__format__(tensor, spec)
