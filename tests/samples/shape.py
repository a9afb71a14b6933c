"""Samples of operators that move entries about: views, joins, splits, flips, triangles, copies."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.spec import Attr, E, Op, S, Same, Sample, T, V, given, integers, mask, real

OUT_OF_RANGE = r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)"


def method(name: str) -> Any:
    """What has no function: `x.name(...)`."""
    return lambda torch, x, *args, **kwargs: getattr(x, name)(*args, **kwargs)


def view(name: str, samples: list[Sample], **options: Any) -> Op:
    """An operator whose result shares the input's memory."""
    defaults = {"view": True, "supports_complex": True, "method": name}
    return Op(name, options.pop("fn", name), samples, **(defaults | options))


def _layouts(name: str, *args: Any, shape: tuple[int, ...] = (2, 3), **kwargs: Any) -> list[Sample]:
    """`name` once for each layout other than the contiguous one, in which views are easily wrong."""
    return [
        S(f"{name}, {layout}", real(*shape, layout=layout), *args, as_complex=False, **kwargs)
        for layout in ("transposed", "strided", "expanded")
    ]


# ---------------------------------------------------------------------------------------------- sizes

RESHAPE = [
    S("rows to columns", real(2, 3), (3, 2)),
    S("flat", real(2, 3), (6,)),
    S("inferred", real(2, 3), (-1,)),
    S("inferred in the middle", real(2, 3), (1, -1, 2), as_complex=False),
    S("to 0-d", real(1, 1), (), as_complex=False),
    S("from 0-d", real(), (1, 1), as_complex=False),
    S("0-d inferred", real(), (-1,), as_complex=False),
    S("empty", real(0, 3), (3, 0), as_complex=False),
    S("empty inferred", real(0, 3), (-1, 3), as_complex=False),
    S("same", real(2, 3), (2, 3), as_complex=False),
    V("int64", integers(2, 3), (3, 2)),
    V("bool", mask([True, False]), (2, 1)),
]


def reshapes() -> list[Sample]:
    """Fresh copies of RESHAPE: an `Op` puts its own seeds into its samples."""
    return [Sample(s.name, s.args, dict(s.kwargs), s.smooth, s.second, s.as_complex) for s in RESHAPE]


BAD_SIZE = r"shape '\[4, 2\]' is invalid for input of size 6"

SIZES = [
    view(
        "reshape",
        [*reshapes(), *_layouts("flat", (6,)), *_layouts("same", (2, 3)), S("list", real(2, 3), [3, 2])],
        view=None,
        errors=[
            E("size", RuntimeError, BAD_SIZE, real(2, 3), (4, 2)),
            E("two inferred", RuntimeError, r"only one dimension can be inferred", real(2, 3), (-1, -1)),
            E("negative", RuntimeError, r"invalid shape dimension -2", real(2, 3), (-2, 3)),
            E("not divisible", RuntimeError, r"shape '\[4, -1\]' is invalid for input of size 6", real(2, 3), (4, -1)),
        ],
        reference=np.reshape,
    ),
    view(
        "reshape.numbers",
        [S("numbers", real(2, 3), 3, 2), S("inferred", real(2, 3), -1, 2), S("one", real(2, 3), -1)],
        fn=method("reshape"),
        view=None,
        method=None,
        reference=lambda x, *shape: x.reshape(shape),
    ),
    view(
        "view",
        [
            *reshapes(),
            S("numbers", real(2, 3), 3, 2),
            S("split of a strided dimension", real(2, 4, layout="strided"), (2, 2, 2)),
            S("transposed, split", real(4, 3, layout="transposed"), (2, 2, 3), as_complex=False),
        ],
        fn=method("view"),
        method=None,
        errors=[
            E("size", RuntimeError, BAD_SIZE, real(2, 3), (4, 2)),
            E(
                "strides",
                RuntimeError,
                r"view size is not compatible with input tensor's size and stride",
                real(2, 3, layout="transposed"),
                (6,),
            ),
        ],
    ),
    view("view_as", [S("matrix", real(2, 3), T((3, 2), requires_grad=False))], fn=method("view_as"), method=None),
    view(
        "reshape_as",
        [S("matrix", real(2, 3), T((3, 2), requires_grad=False)), *_layouts("matrix", T((6,), requires_grad=False))],
        fn=method("reshape_as"),
        method=None,
        view=None,
    ),
    view(
        "flatten",
        [
            S("all", real(2, 3, 2)),
            S("from", real(2, 3, 2), 1),
            S("range", real(2, 3, 2), 0, 1),
            S("negative", real(2, 3, 2), -2, -1, as_complex=False),
            S("keywords", real(2, 3, 2), start_dim=0, end_dim=-2, as_complex=False),
            S("one dimension", real(3), as_complex=False),
            S("0-d", real(), as_complex=False),
            S("empty", real(0, 3), as_complex=False),
            *_layouts("all"),
        ],
        view=None,
        errors=[
            E(
                "order",
                RuntimeError,
                r"flatten\(\) has invalid args: start_dim cannot come after end_dim",
                real(2, 3),
                1,
                0,
            ),
            E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 2),
        ],
    ),
    view("ravel", [S("matrix", real(2, 3)), *_layouts("matrix"), S("0-d", real())], view=None, extra=True),
    view(
        "unflatten",
        [S("matrix", real(2, 6), 1, (2, 3)), S("inferred", real(6), -1, (2, -1)), S("first", real(4, 2), 0, (2, 2))],
        extra=True,
    ),
    view(
        "squeeze",
        [
            S("all", real(1, 3, 1)),
            S("dim", real(1, 3, 1), 0),
            S("negative dim", real(1, 3, 1), -1, as_complex=False),
            S("keyword dim", real(1, 3, 1), dim=2, as_complex=False),
            S("not of length one", real(1, 3, 1), 1, as_complex=False),
            S("dims", real(1, 3, 1), (0, 2)),
            S("dims, not all of length one", real(1, 3, 1), (0, 1), as_complex=False),
            S("to 0-d", real(1, 1), as_complex=False),
            S("0-d", real(), as_complex=False),
            S("0-d, dim", real(), 0, as_complex=False),
            S("empty", real(0, 1), as_complex=False),
            S("transposed", real(3, 1, layout="transposed"), -1, as_complex=False),
        ],
        inplace="squeeze_",
        errors=[E("dim", IndexError, OUT_OF_RANGE, real(1, 3), 2)],
    ),
    view(
        "unsqueeze",
        [
            S("front", real(2, 3), 0),
            S("middle", real(2, 3), 1, as_complex=False),
            S("back", real(2, 3), 2, as_complex=False),
            S("negative", real(2, 3), -1),
            S("most negative", real(2, 3), -3, as_complex=False),
            S("keyword", real(2, 3), dim=1, as_complex=False),
            S("0-d", real(), 0, as_complex=False),
            S("empty", real(0), 0, as_complex=False),
            *_layouts("front", 0),
        ],
        inplace="unsqueeze_",
        errors=[
            E(
                "dim",
                IndexError,
                r"Dimension out of range \(expected to be in range of \[-3, 2\], but got 3\)",
                real(2, 3),
                3,
            )
        ],
        reference=lambda x, dim: np.expand_dims(x, dim),
    ),
    view(
        "expand",
        [
            S("column", real(2, 1), (2, 3)),
            S("new dimension", real(3), (2, 3)),
            S("kept", real(2, 1), (-1, 3), as_complex=False),
            S("numbers", real(2, 1), 2, 3, as_complex=False),
            S("new and kept", real(1, 2), (3, -1, 2), as_complex=False),
            S("from 0-d", real(), (2, 3), as_complex=False),
            S("same", real(2, 3), (2, 3), as_complex=False),
            S("to empty", real(1, 3), (0, 3), as_complex=False),
            S("transposed", real(3, 1, layout="transposed"), (2, 3, 2), as_complex=False),
        ],
        fn=method("expand"),
        method=None,
        errors=[
            E(
                "size",
                RuntimeError,
                r"The expanded size of the tensor \(4\) must match the existing size",
                real(2, 3),
                (2, 4),
            ),
            E("fewer", RuntimeError, r"the number of sizes provided", real(2, 3), (3,)),
            E("new kept", RuntimeError, r"isn't allowed in a leading, non-existing dimension", real(3), (-1, 3)),
        ],
    ),
    view("expand_as", [S("column", real(2, 1), T((2, 3), requires_grad=False))], fn=method("expand_as"), method=None),
    view("broadcast_to", [S("column", real(2, 1), (2, 3)), S("new", real(3), (2, 3))], reference=np.broadcast_to),
]

# ---------------------------------------------------------------------------------------------- order of dimensions

ORDERS = [
    view(
        "transpose",
        [
            S("matrix", real(2, 3), 0, 1),
            S("negative", real(2, 3, 2), -1, 0),
            S("keywords", real(2, 3), dim0=1, dim1=0, as_complex=False),
            S("same", real(2, 3), 1, 1, as_complex=False),
            S("0-d", real(), 0, -1, as_complex=False),
            S("empty", real(0, 3), 0, 1, as_complex=False),
            *_layouts("matrix", 0, 1),
        ],
        inplace="transpose_",
        errors=[E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 0, 2)],
        reference=lambda x, dim0, dim1: np.swapaxes(x, dim0, dim1) if x.ndim else x,
    ),
    view("swapaxes", [S("matrix", real(2, 3), 0, 1)], extra=True),
    view(
        "t",
        [S("matrix", real(2, 3)), S("vector", real(3)), S("0-d", real())],
        errors=[E("3-d", RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D", real(2, 2, 2))],
        reference=np.transpose,
    ),
    view(
        "T",
        [S("matrix", real(2, 3)), S("vector", real(3))],
        fn=lambda torch, x: x.T,
        method=None,
        reference=np.transpose,
    ),
    view("mT", [S("batch", real(2, 3, 2)), S("matrix", real(2, 3))], fn=lambda torch, x: x.mT, method=None),
    view(
        "permute",
        [
            S("three", real(2, 3, 2), (2, 0, 1)),
            S("negative", real(2, 3, 2), (-1, 0, -2), as_complex=False),
            S("same", real(2, 3), (0, 1), as_complex=False),
            S("0-d", real(), (), as_complex=False),
            S("empty", real(0, 3), (1, 0), as_complex=False),
            *_layouts("swap", (1, 0)),
        ],
        errors=[
            E(
                "number",
                RuntimeError,
                r"number of dimensions in the tensor input does not match the length",
                real(2, 3),
                (0,),
            ),
            E("repeated", RuntimeError, r"duplicate dims are not allowed", real(2, 3), (0, 0)),
        ],
        reference=np.transpose,
    ),
    view("permute.numbers", [S("three", real(2, 3, 2), 2, 0, 1)], fn=method("permute"), method=None),
    view("movedim", [S("one", real(2, 3, 2), 0, -1), S("two", real(2, 3, 2), (0, 1), (1, 2))], extra=True),
]

# ---------------------------------------------------------------------------------------------- parts

PARTS = [
    view(
        "narrow",
        [
            S("first dimension", real(4, 2), 0, 1, 2),
            S("negative dim", real(2, 4), -1, 0, 3),
            S("negative start", real(4), 0, -3, 2, as_complex=False),
            S("keywords", real(4), dim=0, start=1, length=2, as_complex=False),
            S("nothing", real(4), 0, 2, 0, as_complex=False),
            *_layouts("columns", 1, 1, 2),
        ],
        errors=[
            E("length", RuntimeError, r"start \(2\) \+ length \(3\) exceeds dimension size \(4\)", real(4), 0, 2, 3),
            E("negative length", RuntimeError, r"narrow\(\): length must be non-negative", real(4), 0, 2, -1),
            E("0-d", RuntimeError, r"narrow\(\) cannot be applied to a 0-dim tensor", real(), 0, 0, 1),
        ],
    ),
    view(
        "select",
        [
            S("row", real(2, 3), 0, 1),
            S("column", real(2, 3), 1, 0),
            S("negative", real(2, 3), -1, -1, as_complex=False),
            S("keywords", real(2, 3), dim=1, index=2, as_complex=False),
            S("to 0-d", real(3), 0, 1, as_complex=False),
            *_layouts("column", 1, 2),
        ],
        errors=[
            E(
                "index",
                IndexError,
                r"select\(\): index 3 out of range for tensor of size \[2, 3\] at dimension 1",
                real(2, 3),
                1,
                3,
            ),
            E("0-d", IndexError, r"select\(\) cannot be applied to a 0-dim tensor", real(), 0, 0),
        ],
        reference=lambda x, dim, index: np.take(x, index, axis=dim),
    ),
    view(
        "diagonal",
        [
            S("matrix", real(3, 3)),
            S("wide", real(2, 3)),
            S("above", real(3, 3), 1, as_complex=False),
            S("below", real(3, 2), -1),
            S("offset keyword", real(2, 3), offset=2, as_complex=False),
            S("outside", real(2, 2), 5, as_complex=False),
            S("dims", real(2, 3, 2), 0, 0, 2),
            S("negative dims", real(2, 3, 2), offset=1, dim1=-1, dim2=-2, as_complex=False),
            *_layouts("matrix", shape=(3, 3)),
        ],
        errors=[
            E("same dims", RuntimeError, r"diagonal dimensions cannot be identical", real(2, 2), 0, 1, 1),
            E("1-d", IndexError, r"Dimension out of range", real(3)),
        ],
        reference=lambda x, offset=0, dim1=0, dim2=1: np.diagonal(x, offset, dim1, dim2) if offset < 5 else np.zeros(0),
    ),
    view(
        "split",
        [
            S("even", real(4, 2), 2),
            S("uneven", real(5), 2),
            S("sizes", real(5, 2), [1, 3, 1]),
            S("sizes tuple", real(3), (1, 2), as_complex=False),
            S("dim", real(2, 5), 3, 1, as_complex=False),
            S("negative keyword dim", real(2, 5), [2, 3], dim=-1, as_complex=False),
            S("larger than the tensor", real(3), 7, as_complex=False),
            S("a size of zero", real(3), [0, 3], as_complex=False),
            *_layouts("columns", 2, 1),
        ],
        errors=[
            E("sum", RuntimeError, r"split_with_sizes expects split_sizes to sum exactly to 5", real(5), [1, 3]),
            E("negative", RuntimeError, r"split expects split_size be non-negative", real(5), -1),
        ],
    ),
    view(
        "chunk",
        [
            S("even", real(4, 2), 2),
            S("uneven", real(5), 3),
            S("fewer than asked", real(6), 4, as_complex=False),
            S("dim", real(2, 5), 2, 1, as_complex=False),
            S("negative keyword dim", real(2, 5), chunks=2, dim=-1, as_complex=False),
            *_layouts("columns", 2, 1),
        ],
        errors=[E("chunks", RuntimeError, r"chunk expects `chunks` to be greater than 0", real(4), 0)],
    ),
    view("tensor_split", [S("sections", real(5), 3), S("indices", real(5, 2), (1, 3))], extra=True),
    view(
        "unbind",
        [
            S("rows", real(2, 3)),
            S("columns", real(2, 3), 1),
            S("negative keyword dim", real(2, 3), dim=-1, as_complex=False),
            S("vector", real(3), as_complex=False),
            *_layouts("columns", 1),
        ],
        errors=[E("0-d", IndexError, r"Dimension specified as 0 but tensor has no dimensions", real())],
    ),
    view(
        "iteration",
        [S("rows", real(2, 3)), S("numbers", real(3))],
        fn=lambda torch, x: list(x),
        method=None,
        errors=[E("0-d", TypeError, r"iteration over a 0-d tensor", real())],
    ),
    Op(
        "tril",
        "tril",
        [
            S("matrix", real(3, 3)),
            S("wide", real(2, 3), as_complex=False),
            S("above", real(3, 3), 1, as_complex=False),
            S("below", real(3, 3), -1, as_complex=False),
            S("keyword", real(3, 3), diagonal=2, as_complex=False),
            S("batch", real(2, 2, 2), as_complex=False),
            *_layouts("matrix"),
            S("empty", real(0, 3), as_complex=False),
            V("int64", integers(2, 3)),
            V("nan outside", given([[1.0, float("nan")], [2.0, 3.0]])),
        ],
        errors=[E("1-d", RuntimeError, r"tril: input tensor must have at least 2 dimensions", real(3))],
        supports_complex=True,
        method="tril",
        inplace="tril_",
        reference=lambda x, diagonal=0: np.tril(x, diagonal),
    ),
    Op(
        "triu",
        "triu",
        [
            S("matrix", real(3, 3)),
            S("wide", real(2, 3), as_complex=False),
            S("above", real(3, 3), 1, as_complex=False),
            S("below", real(3, 3), -1, as_complex=False),
            S("keyword", real(3, 3), diagonal=2, as_complex=False),
            S("batch", real(2, 2, 2), as_complex=False),
            *_layouts("matrix"),
            V("bool", mask([[True, True], [True, True]])),
        ],
        errors=[E("1-d", RuntimeError, r"triu: input tensor must have at least 2 dimensions", real(3))],
        supports_complex=True,
        method="triu",
        inplace="triu_",
        reference=lambda x, diagonal=0: np.triu(x, diagonal),
    ),
    Op("diag", "diag", [S("vector", real(3)), S("matrix", real(2, 3), 1)], method="diag", view=None, extra=True),
    Op("diag_embed", "diag_embed", [S("matrix", real(2, 3)), S("offset", real(2), 1)], method="diag_embed", extra=True),
]

# ---------------------------------------------------------------------------------------------- joins and repeats


def _along(function: Any) -> Any:
    return lambda tensors, dim=0: function(tensors, axis=dim)


JOINS = [
    Op(
        "cat",
        "cat",
        [
            S("two", [real(2, 2), real(1, 2)]),
            S("tuple", (real(2), real(3), real(1)), as_complex=False),
            S("dim", [real(2, 1), real(2, 2)], 1),
            S("negative keyword dim", [real(2, 1), real(2, 2)], dim=-1, as_complex=False),
            S("one", [real(2, 2)], as_complex=False),
            S("same tensor twice", [real(2, 2), Same(0)], as_complex=False),
            S("empty rows", [real(0, 2), real(2, 2)], as_complex=False),
            S("legacy empty", [T((0,)), real(2, 2)], as_complex=False),
            S("some without grad", [real(2), real(2, requires_grad=False), real(1)], as_complex=False),
            S("layouts", [real(2, 2, layout="transposed"), real(1, 2, layout="strided")], as_complex=False),
            V("mixed dtypes", [real(2, dtype="float32"), real(2), integers(2)]),
            V("int64 and float32", [integers(2), real(2, dtype="float32")]),
            V("bool", [mask([True]), mask([False])]),
        ],
        errors=[
            E("nothing", ValueError, r"expected a non-empty list of Tensors", []),
            E("sizes", RuntimeError, r"Sizes of tensors must match except in dimension 0", [real(2, 2), real(2, 3)]),
            E("dims", RuntimeError, r"Tensors must have same number of dimensions", [real(2, 2), real(2)]),
            E(
                "0-d",
                RuntimeError,
                r"zero-dimensional tensor \(at position 0\) cannot be concatenated",
                [real(), real()],
            ),
            E("dim", IndexError, OUT_OF_RANGE, [real(2, 2)], 2),
        ],
        supports_complex=True,
    ),
    Op("concat", "concat", [S("two", [real(2, 2), real(1, 2)])], extra=True, reference=_along(np.concatenate)),
    Op(
        "stack",
        "stack",
        [
            S("two", [real(2, 2), real(2, 2)]),
            S("dim", [real(2, 2), real(2, 2)], 1),
            S("last", [real(2), real(2), real(2)], dim=-1, as_complex=False),
            S("0-d", [real(), real()], as_complex=False),
            S("same tensor twice", (real(2), Same(0)), as_complex=False),
            S("some without grad", [real(2), real(2, requires_grad=False)], as_complex=False),
            S("layouts", [real(2, 2, layout="transposed"), real(2, 2, layout="expanded")], as_complex=False),
            V("mixed dtypes", [real(2, dtype="float32"), real(2)]),
        ],
        errors=[
            E("nothing", RuntimeError, r"stack expects a non-empty TensorList", []),
            E("sizes", RuntimeError, r"stack expects each tensor to be equal size", [real(2), real(3)]),
        ],
        supports_complex=True,
        reference=_along(np.stack),
    ),
    Op("hstack", "hstack", [S("vectors", [real(2), real(3)]), S("0-d", [real(), real()])], extra=True),
    Op("vstack", "vstack", [S("vectors", [real(3), real(3)])], extra=True),
    Op(
        "flip",
        "flip",
        [
            S("rows", real(2, 3), (0,)),
            S("both", real(2, 3), (0, 1)),
            S("negative", real(2, 3), [-1], as_complex=False),
            S("none", real(2, 3), (), as_complex=False),
            S("0-d", real(), (), as_complex=False),
            S("empty", real(0, 3), (0,), as_complex=False),
            *_layouts("columns", (1,)),
            V("int64", integers(3), (0,)),
        ],
        errors=[
            E("dim", IndexError, OUT_OF_RANGE, real(2, 3), (2,)),
            E("repeated", RuntimeError, r"dim 0 appears multiple times", real(2, 3), (0, -2)),
        ],
        supports_complex=True,
        method="flip",
        reference=lambda x, dims: np.flip(x, tuple(dims)),
    ),
    Op("fliplr", "fliplr", [S("matrix", real(2, 3))], method="fliplr", extra=True),
    Op("rot90", "rot90", [S("matrix", real(2, 3), 1, (0, 1)), S("twice", real(2, 3), 2)], method="rot90", extra=True),
    Op(
        "roll",
        "roll",
        [
            S("flat", real(2, 3), 1),
            S("dim", real(2, 3), 1, 0),
            S("negative", real(2, 3), -1, -1, as_complex=False),
            S("more than a turn", real(2, 3), 7, 1, as_complex=False),
            S("two dims", real(2, 3), (1, 2), (0, 1)),
            S("one dim twice", real(2, 3), (1, 1), (1, 1), as_complex=False),
            S("keywords", real(2, 3), shifts=2, dims=1, as_complex=False),
            S("empty", real(0, 3), 1, 0, as_complex=False),
            *_layouts("dim", 1, 1),
        ],
        errors=[
            E("lengths", RuntimeError, r"shifts and dimensions must align", real(2, 3), (1, 2), (0,)),
            E("dim", IndexError, OUT_OF_RANGE, real(2, 3), 1, 2),
        ],
        supports_complex=True,
        method="roll",
        reference=lambda x, shifts, dims=None: np.roll(x, shifts, dims),
    ),
    Op(
        "repeat",
        method("repeat"),
        [
            S("both", real(2, 2), (2, 1)),
            S("numbers", real(2), 2, 2, as_complex=False),
            S("new dimensions", real(2), (2, 1, 2)),
            S("0-d", real(), (2,), as_complex=False),
            S("zero times", real(2), (0,), as_complex=False),
            S("once", real(2, 3), (1, 1), as_complex=False),
            S("expanded", real(2, 2, layout="expanded"), (1, 2), as_complex=False),
            S("transposed", real(2, 2, layout="transposed"), (2, 1), as_complex=False),
        ],
        errors=[
            E("fewer", RuntimeError, r"Number of dimensions of repeat dims can not be smaller", real(2, 3), (2,)),
        ],
        supports_complex=True,
    ),
    Op("tile", "tile", [S("both", real(2, 2), (2, 1)), S("fewer", real(2, 2), (2,))], method="tile", extra=True),
    Op(
        "repeat_interleave",
        "repeat_interleave",
        [S("all", real(3), 2), S("dim", real(2, 2), 2, 1)],
        method="repeat_interleave",
        extra=True,
    ),
]

# ---------------------------------------------------------------------------------------------- copies

COPIES = [
    Op(
        "clone",
        "clone",
        [S("matrix", real(2, 3)), S("0-d", real()), *_layouts("copy"), V("int64", integers(3))],
        supports_complex=True,
        method="clone",
        reference=np.copy,
    ),
    Op(
        "contiguous",
        method("contiguous"),
        [S("matrix", real(2, 3)), *_layouts("copy")],
        view=None,
        supports_complex=True,
    ),
    Op("detach", method("detach"), [V("matrix", real(2, 3))], view=True, differentiable=False),
    *[
        Op(
            name,
            name,
            [
                V("float64", real(2, 3)),
                V("float32", real(2, dtype="float32")),
                V("dtype", real(2), dtype=Attr("int64")),
            ],
            differentiable=False,
            supports_float32=False,
        )
        for name in ("zeros_like", "ones_like")
    ],
    Op(
        "full_like",
        "full_like",
        [V("float64", real(2, 3), 1.5), V("int64", integers(2), 3)],
        differentiable=False,
        supports_float32=False,
    ),
]

OPS = [*SIZES, *ORDERS, *PARTS, *JOINS, *COPIES]
