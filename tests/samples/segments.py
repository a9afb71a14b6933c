"""Samples of reductions over stretches."""

from __future__ import annotations

from samples.spec import E, Op, S, V, distinct, given, index, nonzero, real

NAN = float("nan")
LENGTHS = {"lengths": index([1, 0, 3])}

OPS = [
    Op(
        "segment_reduce",
        "segment_reduce",
        [
            S("sum", real(4), "sum", **LENGTHS, torch_second=False),
            S("mean", real(4), "mean", lengths=index([1, 3]), torch_second=False),
            S("max", distinct(4), "max", lengths=index([1, 3]), torch_second=False),
            S("min", distinct(4), "min", lengths=index([1, 3]), torch_second=False),
            S("prod", nonzero(4), "prod", **LENGTHS, torch_second=False),
            S("offsets", real(4), "sum", offsets=index([0, 1, 4]), torch_second=False),
            S("rows", real(4, 2), "mean", lengths=index([1, 3]), torch_second=False),
            S("second dimension", distinct(2, 4), "max", lengths=index([[1, 3], [2, 2]]), axis=1, torch_second=False),
            S("initial", real(4), "sum", **LENGTHS, initial=5.0, torch_second=False),
            V("initial mean", real(4, requires_grad=False), "mean", **LENGTHS, initial=5.0),
            V("initial max", distinct(4, requires_grad=False), "max", **LENGTHS, initial=0.5),
            V("empty mean", real(4, requires_grad=False), "mean", **LENGTHS),
            V("ties", given([1.0, 2.0, 2.0, 0.0]), "max", lengths=index([1, 0, 3])),
            V("nan", given([1.0, NAN, 3.0], requires_grad=False), "max", lengths=index([1, 2])),
            V("nothing", real(0, requires_grad=False), "sum", lengths=index([0, 0])),
        ],
        errors=[
            E("reduction", RuntimeError, "reduce argument must be either", real(4), "foo", lengths=index([4])),
            E("neither", RuntimeError, "Either lengths or offsets must be defined", real(4), "sum"),
            E("sum", RuntimeError, "Expected all rows of lengths", real(4), "sum", lengths=index([2])),
            E("negative", RuntimeError, "negative value", real(4), "sum", lengths=index([5, -1])),
            E("indices", RuntimeError, "indices based reduction", real(4), "sum", indices=index([5])),
            E("integers", NotImplementedError, "_segment_reduce_cpu", index([1, 2]), "sum", lengths=index([2])),
        ],
    ),
]
