"""Samples of norms and distances."""

from __future__ import annotations

import math

from samples.shared import more, refused
from samples.spec import Attr, E, Op, S, Sample, V, distinct, given, integers, nonzero, real

NAN, INF = float("nan"), float("inf")


FINITE_P = [1, 2, 2.0, 3, 1.5, 0.5, -1, -2]


def _norm_samples() -> list[Sample]:
    return [
        S("default", nonzero(2, 3)),
        *[S(f"p {p!r}", nonzero(2, 3), p) for p in FINITE_P],
        *[S(f"p {p!r}, dim", nonzero(2, 3), p, 1, as_complex=p in (1, 3)) for p in FINITE_P],
        S("p inf", distinct(2, 3, low=0.2), INF, as_complex=False),
        S("p -inf", distinct(2, 3, low=0.2), -INF, as_complex=False),
        S("p inf, complex", given([1 + 1j, 2 - 1j, -0.5j], "complex128"), INF),
        S("p -inf, complex", given([1 + 1j, 2 - 1j, -0.5j], "complex128"), -INF),
        S("p inf, dim", distinct(2, 3, low=0.2), INF, 1, as_complex=False),
        S("p -inf, dim", distinct(2, 3, low=0.2), -INF, dim=0, as_complex=False),
        S("p 0", nonzero(2, 3), 0),
        S("p 0, dim", nonzero(2, 3), 0, 1, as_complex=False),
        S("fro", nonzero(2, 3), "fro"),
        S("fro, dims", nonzero(2, 3, 2), "fro", (0, 2)),
        S("keyword p, dim, keepdim", nonzero(2, 3), p=3, dim=-1, keepdim=True),
        S("dims", nonzero(2, 3, 2), 2, (0, 2)),
        S("list of dims, keepdim", nonzero(2, 3, 2), 3, [0, -1], True, as_complex=False),
        S("0-d", nonzero()),
        S("0-d, p 1", nonzero(), 1),
        S("transposed", nonzero(2, 3, layout="transposed"), 2, 0, as_complex=False),
        S("strided", nonzero(3, layout="strided"), 3, as_complex=False),
        S("empty", real(0, 3)),
        S("empty across the dim", real(0, 3), 2, 1),
        V("zero vector", given([0.0, 0.0])),
        V("zero vector, p 1", given([0.0, 0.0]), 1),
        V("zero vector, p 3", given([0.0, 0.0]), 3),
        V("zero row", given([[0.0, 0.0], [1.0, 2.0]]), 2, 1),
        V("ties, p inf", given([2.0, -2.0, 1.0]), INF),
        V("ties, p -inf", given([2.0, -1.0, 1.0]), -INF),
        V("nan", given([NAN, 1.0])),
        V("infinity", given([INF, 1.0])),
        V("float32", real(3, dtype="float32")),
        V("dtype", real(3, dtype="float32"), dtype=Attr("float64")),
    ]


NORMS = [
    Op(
        "norm",
        "norm",
        _norm_samples(),
        errors=[
            E("dim", IndexError, r"Dimension out of range", real(2, 3), 2, 2),
            E("int64", RuntimeError, r"Expected a floating point or complex tensor as input\. Got Long", integers(3)),
        ],
        supports_complex=True,
        method="norm",
    ),
    Op(
        "linalg.vector_norm",
        "linalg.vector_norm",
        [S("default", nonzero(2, 3)), S("ord", nonzero(2, 3), 3, 1), S("keepdim", nonzero(2, 3), dim=0, keepdim=True)],
        extra=True,
        supports_complex=True,
    ),
]

F = "nn.functional."
MATRIX = given([[2.0, 0.3], [-0.4, 1.1], [0.5, -0.6]])


OPS = [
    *NORMS,
    Op(
        "dist",
        "dist",
        [
            S("matrices", real(2, 3), real(2, 3)),
            S("broadcast", real(2, 1), real(2)),
            S("p 1", real(3), real(3), 1),
            S("p 3", real(3), real(3), p=3.0),
            S("p inf", real(3), real(3), p=math.inf),
        ],
        method="dist",
    ),
    Op(
        "norm_except_dim",
        "norm_except_dim",
        [S("rows", real(2, 3)), S("columns", real(3, 2), 2, 1), V("all", real(2, 2, requires_grad=False), 2, -1)],
    ),
    Op(
        "cdist",
        "cdist",
        [
            S("matrices", real(2, 2), real(3, 2), torch_second=False),
            S("batch", real(2, 1, 2), real(2, 2, 2), torch_second=False),
            S("p 1", real(2, 2), real(2, 2), p=1.0, torch_second=False),
            S("p 3", real(2, 2), real(2, 2), p=3.0, torch_second=False),
            S("p inf", real(2, 2), real(2, 2), p=math.inf, torch_second=False),
            V("empty", real(0, 2), real(3, 2)),
            V("float32", real(2, 2, dtype="float32"), real(3, 2, dtype="float32")),
        ],
        [E("columns", RuntimeError, "must have the same number of columns", real(2, 2), real(2, 3))],
    ),
    Op(
        "pdist",
        "pdist",
        [
            S("matrix", real(3, 2), torch_second=False),
            S("p 1", real(3, 2), 1.0, torch_second=False),
            V("one row", real(1, 2)),
        ],
    ),
    Op(
        "renorm",
        "renorm",
        [
            S("rows", real(2, 3), 2, 0, 1.5),
            S("columns", real(3, 2), 1, 1, 0.5),
            S("p 3", real(2, 3), 3, -1, 1.0),
            V("none is greater", real(2, 3), 2, 0, 100.0),
        ],
        method="renorm",
        inplace="renorm_",
    ),
    Op(
        "linalg.matrix_norm",
        "linalg.matrix_norm",
        [S(f"order {p}", real(3, 2), p) for p in ("fro", "nuc", float("inf"), -float("inf"), 1, -1, 2, -2)]
        + [
            S("dims", real(2, 3, 2), 1, (0, 2), as_complex=False),
            S("dims of nuc", real(2, 3, 2), "nuc", (2, 0), as_complex=False),
            S("keepdim", real(2, 3, 2), 2, (0, 1), True, as_complex=False),
            S("keepdim inf", real(2, 3, 2), float("inf"), keepdim=True, as_complex=False),
        ],
        [
            E("order", RuntimeError, r"linalg.matrix_norm: Order 3 not supported", real(2, 2), 3),
            E("vector", RuntimeError, r"linalg.matrix_norm: The input tensor A must have at least 2", real(2)),
            E("same dims", RuntimeError, r"dims must be different. Got \(0, 0\)", real(2, 2), "fro", (0, 0)),
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.norm",
        "linalg.norm",
        [
            S("plain", real(3, 2)),
            S("vector", real(3), 3),
            S("matrix", real(3, 2), 1),
            S("nuc", real(3, 2), "nuc"),
            S("dim", real(3, 2), 3, 0, as_complex=False),
            S("dims", real(3, 2, 2), 1, (1, 2), as_complex=False),
            S("three dimensions", real(2, 2, 2), as_complex=False),
        ],
        [
            E(
                "3-d",
                RuntimeError,
                r"If dim is not specified but ord is, the input must be 1D or 2D. Got 3D",
                real(2, 2, 2),
                2,
            )
        ],
        supports_complex=True,
    ),
    Op(
        "linalg.norm nuc",
        lambda torch, x, **kw: torch.norm(x, "nuc", **kw),
        [S("plain", real(3, 2)), S("batch", real(2, 3, 2), dim=(1, 2))],
    ),
    Op("nuclear_norm", "nuclear_norm", [S("plain", real(3, 2)), S("batch", real(2, 3, 2), (1, 2), True)]),
    Op("frobenius_norm", "frobenius_norm", [S("plain", real(3, 2), (0, 1)), S("dim", real(3, 2), (1,), True)]),
    Op(
        F + "cosine_similarity",
        F + "cosine_similarity",
        [
            S("columns", nonzero(2, 3), nonzero(2, 3)),
            S("rows", nonzero(3, 2), nonzero(3, 2), dim=0),
            S("broadcast", nonzero(2, 3), nonzero(3), dim=-1),
            S("vectors", nonzero(3), nonzero(3), 0),
            V("eps", given([[0.0, 0.0]]), given([[1.0, 2.0]]), eps=0.5),
            V("float32", nonzero(2, 3, dtype="float32"), nonzero(2, 3, dtype="float32")),
        ],
    ),
    Op(
        F + "pairwise_distance",
        F + "pairwise_distance",
        [
            S("rows", real(2, 3), real(2, 3)),
            S("p", real(2, 3), real(2, 3), p=3.0),
            S("eps", real(2, 2), real(2, 2), eps=0.1),
            S("keepdim", real(2, 3), real(2, 3), keepdim=True),
            S("broadcast", real(2, 3), real(3)),
        ],
        supports_complex=True,
    ),
    more("linalg.matrix_norm", V("dtype", real(2, 2, dtype="float32"), dtype=Attr("float64"))),
    more("linalg.vector_norm", V("dtype", real(3, dtype="float32"), dtype=Attr("float64"))),
    more(
        "linalg.norm", S("kept", MATRIX, keepdim=True), V("dtype", real(2, 2, dtype="float32"), dtype=Attr("float64"))
    ),
    more("norm", S("nuclear", MATRIX, "nuc"), S("nuclear, dims", real(2, 2, 2), "nuc", (0, 2), True)),
    more("norm_except_dim", S("power", MATRIX, 3, 1)),
    more("cosine_similarity", S("integers", given([[1, 2]], "int64"), real(1, 2)), fn=F + "cosine_similarity"),
    more(
        "cdist",
        S("without products", real(2, 2), real(3, 2), compute_mode="donot_use_mm_for_euclid_dist", torch_second=False),
        S("with products", real(2, 2), real(3, 2), compute_mode="use_mm_for_euclid_dist"),
    ),
    refused("dist", E("number", TypeError, "must be Tensor, not float", real(2), 2.0)),
    refused(
        "cdist",
        E("mode", ValueError, "is not a valid value for compute_mode", real(2, 2), real(2, 2), 2.0, "abc"),
        E("dtypes", RuntimeError, "expected scalar type", real(2, 2), real(2, 2, dtype="float32")),
    ),
    refused(
        F + "cosine_similarity",
        E("integers", RuntimeError, "expected common dtype to be floating point", integers(2, 2), integers(2, 2)),
    ),
]
