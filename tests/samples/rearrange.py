"""Samples of joining, repeating, flipping, padding."""

from __future__ import annotations

from typing import Any

import numpy as np

from samples.shape import OUT_OF_RANGE, _layouts, method
from samples.shared import more
from samples.spec import E, Op, S, Same, T, V, given, index, integers, mask, real


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


OPS = [
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
    *JOINS,
    Op(
        "select_scatter",
        "select_scatter",
        [S("rows", real(2, 3), real(3), 0, 1), S("columns", real(2, 3), real(2), -1, 0)],
        [E("size", RuntimeError, "expected src to have a size equal to the slice of self", real(2, 3), real(2), 0, 1)],
        method="select_scatter",
    ),
    Op(
        "slice_scatter",
        "slice_scatter",
        [
            S("rows", real(4, 2), real(2, 2), 0, 1, 3),
            S("step", real(5), real(3), step=2),
            S("all", real(2, 2), real(2, 2)),
            V("none", real(2, 2), real(0, 2), 0, 1, 1),
        ],
        method="slice_scatter",
    ),
    Op(
        "diagonal_scatter",
        "diagonal_scatter",
        [
            S("square", real(3, 3), real(3)),
            S("offset", real(2, 3), real(2), 1),
            S("dims", real(2, 2, 2), real(2, 2), 0, 1, 2),
        ],
        supports_complex=True,
        method="diagonal_scatter",
    ),
    Op(
        "as_strided_scatter",
        "as_strided_scatter",
        [
            # Torch's own gradient of `input` is wrong here: it keeps what was overwritten and drops the rest.
            S("part", real(3, 3), real(2, 2), (2, 2), (1, 2), torch_first=False),
            S("offset", real(6), real(2), (2,), (2,), 1, torch_first=False),
        ],
        supports_complex=True,
        method="as_strided_scatter",
    ),
    Op(
        "cartesian_prod",
        "cartesian_prod",
        [
            S("two", real(2), real(3)),
            S("three", real(2), real(1), real(2)),
            V("one", real(2)),
            V("int64", index([1, 2]), index([3])),
        ],
        view=None,
    ),
    Op(
        "combinations",
        "combinations",
        [
            S("pairs", real(4)),
            S("triples", real(4), 3),
            S("with replacement", real(3), with_replacement=True),
            V("none", real(3, requires_grad=False), 0),
            V("too few", real(2), 3),
        ],
    ),
    Op(
        "dstack",
        lambda torch, *x: torch.dstack(x),
        [S("vectors", real(2), real(2)), S("matrices", real(2, 2), real(2, 2)), S("0-d", real(), real())],
        [E("none", RuntimeError, "dstack expects a non-empty TensorList")],
    ),
    Op(
        "column_stack",
        lambda torch, *x: torch.column_stack(x),
        [S("vectors", real(2), real(2)), S("mixed", real(2), real(2, 2)), S("0-d", real(), real())],
    ),
    Op(
        "hstack, none",
        lambda torch: torch.hstack([]),
        [],
        [E("none", RuntimeError, "hstack expects a non-empty TensorList")],
    ),
    Op(
        "vstack, none",
        lambda torch: torch.vstack([]),
        [],
        [E("none", RuntimeError, "vstack expects a non-empty TensorList")],
    ),
    Op("atleast_1d", lambda torch, *x: [t * 1 for t in torch.atleast_1d(*x)], [S("several", real(), real(2))]),
    Op(
        "atleast_2d",
        lambda torch, x: torch.atleast_2d(x) * 1,
        [S("0-d", real()), S("vector", real(2)), S("matrix", real(1, 2))],
    ),
    Op(
        "atleast_3d",
        lambda torch, x: torch.atleast_3d(x) * 1,
        [S("0-d", real()), S("vector", real(2)), S("matrix", real(1, 2))],
    ),
    Op(
        "block_diag",
        "block_diag",
        [S("matrices", real(1, 2), real(2, 1)), S("mixed", real(), real(2)), V("dtypes", integers(1, 1), real(1, 1))],
        [E("3-d", RuntimeError, "Input tensors must have 2 or fewer dimensions", real(1, 1, 1))],
        supports_complex=True,
    ),
    Op(
        "diagflat",
        "diagflat",
        [S("matrix", real(2, 2)), S("offset", real(2), 1), S("by name", real(2), offset=-1)],
        method="diagflat",
        supports_complex=True,
    ),
    Op(
        "flipud",
        "flipud",
        [S("matrix", real(2, 2)), S("vector", real(3))],
        [E("0-d", RuntimeError, "Input must be >= 1-d", real())],
        method="flipud",
        supports_complex=True,
    ),
    more("diag_embed", S("dims", real(2, 2), offset=1, dim1=0, dim2=2)),
    more("repeat_interleave", S("size", real(3), index([1, 0, 2]), output_size=3)),
    more("rot90", S("dims", real(2, 3), 1, (1, 0))),
    more(
        "slice_scatter", S("dim", real(2, 3), real(2, 1), 1, 1, 2), S("step", real(4), real(2), start=0, end=4, step=2)
    ),
    Op(
        "_chunk_cat",
        "_chunk_cat",
        [
            S("even", [real(4, 2), real(2, 3)], 0, 2, torch_first=False),
            S("filled up", [real(3, 2), real(5)], 0, 2, torch_first=False),
            S("inner", [real(2, 3, 2), real(2, 5)], 1, 3, torch_first=False),
        ],
        errors=[
            E("none", RuntimeError, "_chunk_cat expects a non-empty input tensor list", [], 0, 2),
            E("no chunks", RuntimeError, "_chunk_cat expects positive num_chunks", [real(2)], 0, 0),
            E("nothing", RuntimeError, "_chunk_cat expects non-empty tensor", [real(0)], 0, 2),
            E("dtypes", RuntimeError, "with the same dtype", [real(2), integers(2)], 0, 2),
            E("sizes", RuntimeError, r"expects same sizes of 0,...,dim-1 dimensions", [real(2, 2), real(3, 2)], 1, 2),
        ],
    ),
]
