"""Where the samples of a batch lie in a tensor of a graph, and in the arguments of the operator that made it.

Samples lie along one dimension, as blocks of it: a dimension of size ``outer * samples * inner`` holds, `outer` times,
`inner` elements of each sample.  A layer that puts the rows of all samples one after the other has ``outer == 1``, one
that has the samples' dimension second, and takes both together, has ``inner == 1``.

The place is known of the outputs, which begin with the samples, and followed from there down the graph: of most
arguments it is the one that broadcasting lines up with the result's; views, products and a few others have rules here.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple, TypeAlias

Shape: TypeAlias = tuple[int, ...]


class Place(NamedTuple):
    """Along which dimension samples lie, and how often."""

    dim: int
    outer: int = 1


def of_one(shape: Shape, place: Place, size: int) -> Shape:
    """The shape that one sample of a tensor has."""
    return (*shape[: place.dim], shape[place.dim] // size, *shape[place.dim + 1 :])


def place_of(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    """Where samples lie in the argument `name`, of this shape, of the operator of a node whose result has them at
    `place`; None if the argument is the same for all."""
    rule = _RULES.get(type(node).__name__)
    if rule is not None:
        found = rule(node, name, shape, result, place, size)
    else:
        found = _broadcast(shape, result, place, name in _ROWS)
    return found if found is not None and fits(shape, found, size) else None


def fits(shape: Shape, place: Place, size: int) -> bool:
    """May samples lie there?"""
    return 0 <= place.dim < len(shape) and shape[place.dim] > 0 and shape[place.dim] % (place.outer * size) == 0


#: Arguments that have one element for each row, whatever the result has besides.
_ROWS = frozenset(("index", "indices", "target"))


def _broadcast(shape: Shape, result: Shape, place: Place, rows: bool = False) -> Place | None:
    """As broadcasting has it; what has more dimensions than the result, or has one for each of `rows`, begins as the
    result does."""
    dim = place.dim
    at = dim if len(shape) >= len(result) or rows else dim - len(result) + len(shape)
    return Place(at, place.outer) if 0 <= at < len(shape) and shape[at] == result[dim] else None


# ------------------------------------------------------------------------------------------------------ operators' own


def _view(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    """The elements lie in the same order: as many blocks come before the samples as did."""
    before = prod(result[: place.dim]) * place.outer
    for dim in range(len(shape)):
        above = prod(shape[:dim])
        if above and before % above == 0 and fits(shape, Place(dim, before // above), size):
            return Place(dim, before // above)
    return None


def _transposed(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    dims = [int(getattr(node, slot, default)) % len(shape) for slot, default in (("dim0_", 0), ("dim1_", 1))]
    other = {dims[0]: dims[1], dims[1]: dims[0]}
    return Place(other.get(place.dim, place.dim), place.outer)


def _permuted(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    return Place(node.dims_[place.dim] % len(shape), place.outer)


def _product(rows: str, columns: str) -> Callable[..., Place | None]:
    """Of a product of matrices, or of batches of them: rows are those of the one factor, columns of the other."""

    def rule(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
        from_end = place.dim - len(result)
        if name not in (rows, columns):
            return _broadcast(shape, result, place)
        if from_end < -2 or (from_end == -2 and name == rows) or (from_end == -1 and name == columns):
            return Place(from_end + len(shape), place.outer)
        return None

    return rule


def _input_alone(*others: str) -> Callable[..., Place | None]:
    """Weights and such, `others`, are the same for all samples."""

    def rule(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
        return None if name in others else _broadcast(shape, result, place, name in _ROWS)

    return rule


def _batch_norm(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    """Channels may be those of samples, side by side (instance normalization); then weights are, too."""
    if name == "input":
        return place
    return Place(0, place.outer) if place.dim == 1 else None


def _reduced(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    if len(shape) <= len(result):
        return _broadcast(shape, result, place)
    given = getattr(node, "dim_", ())
    gone = {dim % len(shape) for dim in ((given,) if isinstance(given, int) else given or ())}
    left = [dim for dim in range(len(shape)) if dim not in gone]
    return Place(left[place.dim], place.outer) if place.dim < len(left) else None


def _repeated(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    """Samples of what they share are what it is repeated for."""
    return _broadcast(shape, result, place) if node.repeats_[place.dim] == 1 else None


def _stacked(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    new = node.dim_ % len(result)
    return None if place.dim == new else Place(place.dim - (new < place.dim), place.outer)


def _rnn(node: Any, name: str, shape: Shape, result: Shape, place: Place, size: int) -> Place | None:
    """Steps, samples, features; states have no steps."""
    if name.startswith("weight") or place.outer != 1:
        return None
    return Place(len(shape) - 2)


_RULES: dict[str, Callable[..., Place | None]] = {
    **dict.fromkeys(("ViewBackward0", "UnsafeViewBackward0", "UnsqueezeBackward0", "ReshapeAliasBackward0"), _view),
    **dict.fromkeys(("SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2"), _view),
    **dict.fromkeys(("TransposeBackward0", "TBackward0"), _transposed),
    "PermuteBackward0": _permuted,
    "MmBackward0": _product("self", "mat2"),
    "BmmBackward0": _product("self", "mat2"),
    "AddmmBackward0": _product("mat1", "mat2"),
    "BaddbmmBackward0": _product("batch1", "batch2"),
    "MvBackward0": _input_alone("vec"),
    **dict.fromkeys(
        ("NativeLayerNormBackward0", "NativeGroupNormBackward0", "ConvolutionBackward0", "EmbeddingBackward0"),
        _input_alone("weight", "bias"),
    ),
    "NativeBatchNormBackward0": _batch_norm,
    **dict.fromkeys(("NllLossBackward0", "NllLoss2DBackward0"), _input_alone("weight")),
    **dict.fromkeys(("SelectBackward0", "UnbindBackward0"), _reduced),
    **dict.fromkeys(
        ("SumBackward1", "MeanBackward1", "ProdBackward1", "LogsumexpBackward0", "VarBackward0", "StdBackward0",
         "AmaxBackward0", "AminBackward0", "MaxBackward0", "MinBackward0", "NormBackward1", "LinalgVectorNormBackward0",
         "VarMeanBackward0", "StdMeanBackward0", "MedianBackward1", "NansumBackward0"),
        _reduced,
    ),
    "RepeatBackward0": _repeated,
    "StackBackward0": _stacked,
    "MkldnnRnnLayerBackward0": _rnn,
}  # fmt: skip
