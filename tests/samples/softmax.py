"""Samples of softmax and its logarithm."""

from __future__ import annotations

from samples.spec import Attr, E, Op, S, Sample, V, given, integers, mask, positive, real

F = "nn.functional."
NAN, INF = float("nan"), float("inf")


def _softmaxes(name: str) -> list[Op]:
    samples = [
        ("last", (real(2, 3), -1), {}),
        ("first", (real(2, 3), 0), {}),
        ("three dimensions", (real(2, 3, 2), 1), {}),
        ("0-d", (real(), 0), {}),
        ("vector", (real(3), 0), {}),
        ("empty", (real(0, 3), 1), {}),
        ("transposed", (real(2, 3, layout="transposed"), 1), {}),
        ("expanded", (real(2, 3, layout="expanded"), 0), {}),
        ("large", (given([[1000.0, 1000.5], [-1000.0, -1000.5]]), 1), {}),
        ("dtype", (real(3), -1), {"dtype": Attr("float64")}),
    ]
    values = [
        ("dtype of float32", (real(3, dtype="float32"), -1), {"dtype": Attr("float64")}),
        ("int64 with dtype", (integers(3), -1), {"dtype": Attr("float32")}),
        ("infinities", (given([[-INF, 0.0], [INF, 0.0], [-INF, -INF]]), 1), {}),
    ]
    errors = [E("dim", IndexError, r"Dimension out of range", real(2, 3), 2)]

    def fresh(keyword: bool) -> list[Sample]:
        made = [S(n, *a, **k) for n, a, k in samples] + [V(n, *a, **k) for n, a, k in values]
        if keyword:
            made.append(S("keyword dim", real(2, 3), dim=-2))
        return made

    return [
        Op(name, name, fresh(True), errors=errors, method=name),
        Op(F + name, F + name, fresh(True), errors=errors),
    ]


SOFTMAXES = [*_softmaxes("softmax"), *_softmaxes("log_softmax")]


OPS = [
    *SOFTMAXES,
    Op(
        F + "softmin",
        F + "softmin",
        [
            S("last", real(2, 3), -1),
            S("by name", real(3, 2), dim=0),
            V("dtype", real(3, dtype="float32"), dim=0, dtype=Attr("float64")),
            V("far", given([1000.0, 0.0, -1000.0]), 0),
        ],
    ),
    Op(
        "_safe_softmax",
        "_safe_softmax",
        [
            S("last", real(2, 3), -1),
            S("first", real(3, 2), 0),
            V("nothing", given([[-INF, -INF], [-INF, 1.0]]), 1),
            V("dtype", real(3, dtype="float32"), 0, dtype=Attr("float64")),
        ],
    ),
    Op(
        "_masked_softmax",
        "_masked_softmax",
        [
            # (torch has no second derivatives, and its first take masks of each element alone)
            S("of each element", real(2, 3), mask([[0, 1, 0], [1, 0, 0]]), 1, 2, torch_second=False),
            S("of each element, first", real(3, 2), mask([[0, 1], [0, 0], [1, 0]]), 0, 2, torch_second=False),
            S("square", real(1, 2, 2, 2), mask([[0, 1], [0, 0]]), mask_type=0, torch_first=False, torch_second=False),
            S("keys", real(2, 1, 2, 2), mask([[0, 1], [0, 0]]), 3, 1, torch_first=False, torch_second=False),
            V("nothing", real(2, 2), mask([[1, 1], [0, 1]]), 1, 2),
        ],
        errors=[E("numbers", RuntimeError, r"Mask should be a boolean tensor", real(2, 2), real(2, 2), 1, 2)],
    ),
    *[
        Op(
            name,
            name,
            [
                S("last", real(2, 3), positive(2, 3), 1, Attr("float64")),
                S("first", real(3, 2), real(3, 2, low=-2.0, high=-0.1), 0, Attr("float64")),
            ],
        )
        for name in ("_softmax_backward_data", "_log_softmax_backward_data")
    ],
]
