"""Samples of rows of a table."""

from __future__ import annotations

from samples.shared import _op, more
from samples.spec import E, Op, S, V, distinct, given, index, real

F = "nn.functional."

BAG = _op(
    "embedding_bag",
    [
        *[
            S(f"{m}, matrix", index([[0, 2], [1, 1]]), distinct(3, 2), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        *[
            S(f"{m}, offsets", index([0, 2, 1, 1]), distinct(3, 2), index([0, 1]), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        *[
            S(f"{m}, empty bag", index([0, 2, 1]), distinct(3, 2), index([0, 2, 2]), mode=m, torch_second=False)
            for m in ("sum", "mean", "max")
        ],
        S("last offset", index([0, 2, 1]), real(3, 2), index([0, 1, 3]), include_last_offset=True, torch_second=False),
        *[
            S(
                f"{m}, padding",
                index([0, 2, 1]),
                distinct(3, 2),
                index([0, 1]),
                padding_idx=2,
                mode=m,
                torch_second=False,
            )
            for m in ("sum", "mean", "max")
        ],
        S(
            "weights",
            index([0, 2, 1]),
            real(3, 2),
            index([0, 1]),
            mode="sum",
            per_sample_weights=real(3),
            torch_second=False,
        ),
    ],
    errors=[
        E("mode", ValueError, r"mode has to be one of sum, mean or max", index([0]), real(1, 1), index([0]), mode="x"),
        E("no offsets", ValueError, r"offsets has to be a 1D Tensor but got None", index([0]), real(1, 1)),
        E("offsets", ValueError, r"if input is 2D, then offsets has to be None", index([[0]]), real(1, 1), index([0])),
        E("first", RuntimeError, r"offsets\[0\] has to be 0", index([0, 0]), real(1, 1), index([1])),
    ],
)


OPS = [
    Op(
        F + "embedding",
        F + "embedding",
        [
            S("vector", index([0, 2]), real(3, 2)),
            S("matrix", index([[0, 2], [1, 0]]), real(3, 2)),
            S("0-d", index(1), real(3, 2)),
            S("repeats", index([1, 1, 0, 1]), real(3, 2)),
            S("empty", index([]), real(3, 2), torch_second=False),
            S("transposed weight", index([0, 2]), real(3, 2, layout="transposed")),
            S("int32", given([0, 2], "int32"), real(3, 2)),
            # The row at padding_idx takes part in the value and not in the gradient, so differences disagree.
            V("padding_idx", index([0, 2, 1, 2]), real(3, 2), padding_idx=2),
            V("negative padding_idx", index([0, 2, 1, 2]), real(3, 2), -1),
            S("unused padding_idx", index([0, 1, 1]), real(3, 2), padding_idx=2),
            V("scale_grad_by_freq", index([1, 1, 0, 1]), real(3, 2), scale_grad_by_freq=True),
            V(
                "scale_grad_by_freq, padding_idx",
                index([1, 1, 0, 2]),
                real(3, 2),
                padding_idx=0,
                scale_grad_by_freq=True,
            ),
        ],
        errors=[
            E("range", IndexError, r"index out of range in self", index([3]), real(3, 2)),
            E(
                "dtype",
                RuntimeError,
                r"Expected tensor for argument #1 'indices' to have one of the following scalar types",
                real(2),
                real(3, 2),
            ),
            E(
                "padding_idx",
                AssertionError,
                r"Padding_idx must be within num_embeddings",
                index([0]),
                real(3, 2),
                padding_idx=3,
            ),
        ],
    ),
    BAG,
    Op(
        "torch.embedding_bag",
        lambda torch, *a, **k: torch.embedding_bag(*a, **k)[0],
        [
            S("sum", real(3, 2), index([0, 1, 1, 2]), index([0, 2]), torch_second=False),
            S("mean", real(3, 2), index([0, 1, 1, 2]), index([0, 2]), False, 1, torch_second=False),
            S("max", distinct(3, 2), index([0, 1, 1, 2]), index([0, 2]), False, 2, torch_second=False),
        ],
    ),
    Op(
        "torch.embedding_bag, all results",
        "embedding_bag",
        [
            V("mean", real(3, 2, requires_grad=False), index([0, 1, 1, 2]), index([0, 2]), False, 1),
            V("max", distinct(3, 2, requires_grad=False), index([0, 1, 1, 2]), index([0, 2]), False, 2),
            V(
                "padding",
                real(3, 2, requires_grad=False),
                index([0, 1, 1, 2]),
                index([0, 2]),
                False,
                1,
                False,
                None,
                False,
                1,
            ),
        ],
        differentiable=False,
    ),
    Op(
        F + "one_hot",
        F + "one_hot",
        [
            V("classes", index([0, 2, 1]), 4),
            V("found", index([[0, 2], [1, 1]])),
            V("by name", index([1]), num_classes=3),
            V("0-d", index(2), 3),
        ],
        [
            E("negative", RuntimeError, "Class values must be non-negative", index([-1]), 3),
            E("too many", RuntimeError, "Class values must be smaller than num_classes", index([3]), 3),
            E("not long", RuntimeError, "one_hot is only applicable to index tensor", given([1], "int32"), 3),
        ],
        differentiable=False,
    ),
    more(
        F + "embedding",
        V(
            "renormalised",
            index([0, 2]),
            given([[3.0, 4.0], [1.0, 0.0], [0.1, 0.2]], requires_grad=False),
            max_norm=1.0,
            norm_type=1.0,
        ),
        fn=lambda torch, i, w, **kwargs: torch.nn.functional.embedding(i, w.clone(), **kwargs),
    ),
    more(
        F + "embedding_bag",
        V(
            "renormalised",
            index([0, 2]),
            given([[3.0, 4.0], [1.0, 0.0], [0.1, 0.2]], requires_grad=False),
            index([0]),
            max_norm=1.0,
            norm_type=1.0,
        ),
        # (Torch divides by the frequency of another index.)
        V("by frequency", index([0, 2, 0]), real(3, 2), index([0, 2]), scale_grad_by_freq=True, torch_first=False),
        fn=lambda torch, i, w, o, **kwargs: torch.nn.functional.embedding_bag(
            i, w.clone() if "max_norm" in kwargs else w, o, **kwargs
        ),
    ),
]
