"""Samples of splitting and stacking, of parts that are read or replaced, and of products of several matrices."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, V, distinct, given, index, integers, mask, nonzero, positive, real

OUT_OF_RANGE = "Dimension out of range"
SQUARE = given([[2.0, 0.3, -0.4], [0.1, 1.7, 0.2], [-0.3, 0.5, 1.4]])


def _unaliased(name: str) -> Any:
    """The parts times one: a split is one of the few operators whose outputs torch will not differentiate in place."""
    return lambda torch, x, *args, **kwargs: [part * 1 for part in getattr(torch, name)(x, *args, **kwargs)]


SPLITS = [
    Op(
        "hsplit",
        _unaliased("hsplit"),
        [
            S("equal", real(2, 4), 2), S("at", real(2, 4), (1, 3)), S("vector", real(4), 2),
            S("sections", real(2, 4), sections=2), S("indices", real(2, 4), indices=(1, 3)),
        ],
        [
            E("0-d", RuntimeError, "torch.hsplit requires a tensor with at least 1 dimension", real(), 1),
            E("unequal", RuntimeError, "not divisible by the split_size 3", real(2, 4), 3),
            E("zero", RuntimeError, "not divisible by the split_size 0", real(2, 4), 0),
        ],
    ),
    Op(
        "vsplit",
        _unaliased("vsplit"),
        [S("equal", real(4, 2), 2), S("at", real(4, 2), (1, 3))],
        [
            E("vector", RuntimeError, "torch.vsplit requires a tensor with at least 2 dimension", real(4), 2),
            E("zero", RuntimeError, "not divisible by the split_size 0", real(2, 4), 0),
        ],
    ),
    Op(
        "dsplit",
        _unaliased("dsplit"),
        [S("equal", real(1, 2, 4), 2), S("at", real(1, 2, 3), (1,))],
        [E("matrix", RuntimeError, "torch.dsplit requires a tensor with at least 3 dimension", real(2, 4), 2)],
    ),
    Op(
        "unsafe_chunk",
        _unaliased("unsafe_chunk"),
        [S("first", real(4, 2), 2), S("dim", real(2, 3), 2, dim=1)],
        supports_complex=True,
    ),
    Op(
        "unsafe_split",
        _unaliased("unsafe_split"),
        [S("first", real(4, 2), 3), S("dim", real(2, 3), 2, -1)],
        supports_complex=True,
    ),
    Op(
        "unsafe_split_with_sizes",
        _unaliased("unsafe_split_with_sizes"),
        [S("dim", real(2, 3), [1, 2], 1)],
        [E("sum", RuntimeError, "to sum exactly to 3", real(3), [1, 1])],
    ),
    Op(
        "split_with_sizes",
        _unaliased("split_with_sizes"),
        [S("first", real(3, 2), [1, 0, 2]), S("dim", real(2, 3), [1, 2], dim=-1)],
    ),
    Op(
        "broadcast_tensors",
        lambda torch, *x: [part * 1 for part in torch.broadcast_tensors(*x)],
        [S("two", real(2, 1), real(3)), S("0-d", real(), real(2))],
        [E("shapes", RuntimeError, "must match|do not broadcast|Shape mismatch", real(2), real(3))],
    ),
]

STACKS = [
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
    Op(
        "kron",
        "kron",
        [S("matrices", real(2, 1), real(1, 2)), S("ranks", real(2), real(2, 1)), S("0-d", real(), real(2))],
        method="kron",
        supports_complex=True,
    ),
]

PARTS = [
    Op(
        "index_copy",
        "index_copy",
        [
            S("rows", real(3, 2), 0, index([2, 0]), real(2, 2)),
            S("columns", real(2, 3), -1, index([1]), real(2, 1)),
            V("int64", integers(3), 0, index([1]), integers(1)),
        ],
        [E("dtypes", RuntimeError, "same dtype", real(3), 0, index([1]), real(1, dtype="float32"))],
        method="index_copy",
        inplace="index_copy_",
        supports_complex=True,
    ),
    Op(
        "index_fill",
        "index_fill",
        [
            S("number", real(3, 2), 0, index([2, 0]), 1.5),
            S("tensor", real(2, 3), -1, index([1]), real()),
            S("an index twice", real(3), 0, index([0, 0, 1]), real()),
            S("by name", real(2, 2), dim=1, index=index([0]), value=2.0),
            V("int64", integers(3), 0, index([1]), 7),
        ],
        [
            E("vector", RuntimeError, "only supports a 0-dimensional value tensor", real(3), 0, index([1]), real(2)),
            E("dim", IndexError, OUT_OF_RANGE, real(3), 1, index([1]), 0.0),
        ],
        method="index_fill",
        inplace="index_fill_",
        supports_complex=True,
    ),
    Op(
        "index_put",
        "index_put",
        [
            S("one", real(3), (index([2, 0]),), real(2)),
            S("accumulated", real(3), (index([1, 1]),), real(2), accumulate=True),
            S("two", real(2, 3), (index([0, 1]), index([2, 2])), real(2)),
            S("broadcast", real(2, 3), (index([0, 1]),), real()),
            S("mask", real(3), (mask([True, False, True]),), real(2)),
        ],
        method="index_put",
        inplace="index_put_",
        supports_complex=True,
    ),
    Op(
        "put",
        "put",
        [
            S("places", real(2, 2), index([3, 0]), real(2)),
            S("accumulated", real(3), index([1, 1]), real(2), True),
            S("from the end", real(3), index([-1]), real(1)),
        ],
        [
            E("sizes", IndexError, "same number of elements", real(3), index([0, 1]), real(3)),
            E("index", IndexError, "out of range", real(3), index([3]), real(1)),
        ],
        method="put",
        inplace="put_",
        supports_complex=True,
    ),
    Op(
        "masked_scatter",
        "masked_scatter",
        [
            S("places", real(4), mask([True, False, True, False]), real(3)),
            S("broadcast", real(2, 2), mask([True, False]), real(2)),
        ],
        [
            E(
                "too few",
                RuntimeError,
                "Number of elements of source < number of ones in mask|expected source to have at least",
                real(3),
                mask([True, True, False]),
                real(1),
            )
        ],
        method="masked_scatter",
        inplace="masked_scatter_",
        supports_complex=True,
    ),
    Op(
        "take_along_dim, from the end",
        "take_along_dim",
        [S("dim", real(2, 3), index([[-1], [0]]), 1)],
        [E("flat", RuntimeError, "index -1 is out of bounds", real(2, 2), index([-1, 2]))],
    ),
    Op("gather, empty index", "gather", [V("uint8", real(3), 0, given([], "uint8"))]),
    Op("detach_", lambda torch, x: (x * 2).detach_() + x, [V("part", real(2))]),
]

PRODUCTS = [
    Op(
        "addbmm",
        "addbmm",
        [
            S("plain", real(2, 2), real(2, 2, 1), real(2, 1, 2)),
            S("weighted", real(2, 2), real(1, 2, 2), real(1, 2, 2), beta=0.5, alpha=1.5),
            S("broadcast", real(2), real(1, 2, 2), real(1, 2, 2)),
        ],
        [
            E(
                "batch",
                RuntimeError,
                "same number of batches|batch1 and batch2 must have same number of batches",
                real(2, 2),
                real(1, 2, 2),
                real(2, 2, 2),
            )
        ],
        method="addbmm",
        inplace="addbmm_",
        supports_complex=True,
    ),
    Op(
        "addr",
        "addr",
        [
            S("plain", real(2, 3), real(2), real(3)),
            S("weighted", real(2, 2), real(2), real(2), beta=0.5, alpha=1.5),
            V("bool", mask([[True, False], [False, False]]), mask([True, False]), mask([True, True]), beta=3, alpha=2),
        ],
        [E("matrix", RuntimeError, "Expected 1-D argument vec1", real(2, 2), real(2, 2), real(2))],
        method="addr",
        inplace="addr_",
        supports_complex=True,
    ),
    Op("baddbmm, weighted", "baddbmm", [S("both", real(1, 2, 2), real(1, 2, 2), real(1, 2, 2), beta=0.5, alpha=1.5)]),
    Op(
        "chain_matmul",
        "chain_matmul",
        [S("three", real(1, 2), real(2, 2), real(2, 1)), S("one", real(1, 2))],
        view=None,
    ),
    Op(
        "trace",
        "trace",
        [S("square", real(2, 2)), S("wide", real(2, 3)), V("int64", integers(2, 2))],
        [E("vector", RuntimeError, "expected a matrix", real(2))],
        method="trace",
        supports_complex=True,
    ),
    Op(
        "det",
        "det",
        [S("matrix", SQUARE), S("batch", positive(2, 1, 1))],
        [E("not square", RuntimeError, "batches of square matrices", real(2, 3))],
        method="det",
        supports_complex=True,
    ),
    Op("slogdet", "slogdet", [S("matrix", SQUARE)], method="slogdet", supports_complex=True),
    Op(
        "linalg.solve_ex",
        "linalg.solve_ex",
        [
            S("vector", SQUARE, real(3)),
            S("right", SQUARE, real(2, 3), left=False),
            S("checked", SQUARE, real(3), check_errors=True),
        ],
    ),
    Op(
        "cross",
        "cross",
        [S("found", nonzero(2, 3), nonzero(2, 3)), S("dim", nonzero(3, 2), nonzero(3, 2), 0)],
        [E("none", RuntimeError, "dimension|inconsistent", real(2, 2), real(2, 2))],
        method="cross",
        supports_complex=True,
    ),
    Op(
        "nanmean",
        "nanmean",
        [
            S("all", real(2, 3)),
            S("dim", real(2, 3), 1, True),
            S("by name", real(2, 3), dim=(0, 1)),
            V("nan", given([float("nan"), 1.0, 3.0])),
            V("dtype", given([1.0, 2.0], "float32")),
        ],
        method="nanmean",
    ),
    Op(
        "lu_solve", lambda torch, b, a: torch.lu_solve(b, *torch.linalg.lu_factor(a)), [S("matrix", real(3, 1), SQUARE)]
    ),
    Op("orgqr", lambda torch, a: torch.orgqr(*torch.geqrf(a.detach())) + 0 * a.sum(), [V("matrix", SQUARE)]),
    Op("linalg.householder_product, empty", "linalg.householder_product", [V("none", real(0, 0), real(0))]),
    Op(
        "sorted parts",
        lambda torch, x: torch.stack([*torch.var_mean(x, 0, unbiased=False, keepdim=True)]),
        [S("columns", distinct(3, 2))],
    ),
]

OPS = [*SPLITS, *STACKS, *PARTS, *PRODUCTS]
