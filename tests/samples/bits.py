"""Samples of bitwise operators, of what is asked of dtypes and shapes, and of pointwise functions of two tensors."""

from __future__ import annotations

import numpy as np

from samples.spec import Attr, E, Op, S, V, given, integers, mask, nonzero, positive, real

NAN, INF = float("nan"), float("inf")
MISMATCH = r"The size of tensor a \(2\) must match the size of tensor b \(3\)"

BITWISE = [
    Op(
        name,
        name,
        [
            V("int64", given([12, 10, -3], "int64"), given([10, 3, 5], "int64")),
            V("broadcast", integers(2, 1), integers(3)),
            V("number", given([12, 10], "int64"), 6),
            V("number first", 6, given([12, 10], "int64")),
            V("bool", mask([True, False]), mask([True, True])),
            V("mixed", given([12, 10], "uint8"), given([10, 3], "int32")),
            V("empty", integers(0), integers(0)),
        ],
        [
            E("floats", RuntimeError, r"not implemented for '(Double|Float)'", real(2), real(2)),
            E("shapes", RuntimeError, MISMATCH, integers(2), integers(3)),
        ],
        differentiable=False,
        method=name,
        inplace=name + "_",
        reference=function,
    )
    for name, function in (
        ("bitwise_and", np.bitwise_and),
        ("bitwise_or", np.bitwise_or),
        ("bitwise_xor", np.bitwise_xor),
    )
]
for _op in BITWISE:  # methods are called on the first argument, which is a number in one of the samples
    for _sample in _op.samples:
        _sample.method = _sample.name != "number first"

SHIFTS = [
    Op(
        name,
        name,
        [
            V("int64", given([12, 10, 3], "int64"), given([1, 3, 2], "int64")),
            V("number", given([12, 10], "int64"), 2),
            V("broadcast", given([[8], [4]], "int64"), given([0, 1, 2], "int64")),
        ],
        [E("floats", RuntimeError, r"not implemented for '(Double|Float)'", real(2), real(2))],
        differentiable=False,
        method=name,
        inplace=name + "_",
        reference=function,
    )
    for name, function in (("bitwise_left_shift", np.left_shift), ("bitwise_right_shift", np.right_shift))
]

BINARY = [
    Op(
        "copysign",
        "copysign",
        [
            S("tensors", nonzero(3), nonzero(3)),
            S("broadcast", nonzero(2, 1), nonzero(3)),
            S("number", nonzero(3), -2.0),
            V("zeros", given([1.0, -1.0, 0.0]), given([0.0, -0.0, -1.0])),
            V("int64", integers(3), given([1, -1, 1], "int64")),
        ],
        [E("shapes", RuntimeError, MISMATCH, real(2), real(3))],
        method="copysign",
        inplace="copysign_",
        reference=np.copysign,
    ),
    Op(
        "hypot",
        "hypot",
        [
            S("tensors", nonzero(3), nonzero(3)),
            S("broadcast", nonzero(2, 1), nonzero(3)),
            V("origin", given([0.0, 3.0]), given([0.0, 4.0])),
            V("large", given([1e300]), given([1e300])),
        ],
        [E("integers", NotImplementedError, "not implemented for 'Long'", integers(2), integers(2))],
        method="hypot",
        inplace="hypot_",
        reference=np.hypot,
    ),
    Op(
        "logaddexp2",
        "logaddexp2",
        [
            S("tensors", real(3), real(3)),
            S("broadcast", real(2, 1), real(3)),
            V("far", given([1000.0, -1000.0, -INF]), given([999.0, 0.0, -INF])),
        ],
        method="logaddexp2",
        reference=np.logaddexp2,
    ),
    Op(
        "heaviside",
        "heaviside",
        [
            V("tensors", given([-1.0, 0.0, 2.0], requires_grad=False), given([0.5, 0.5, 0.5], requires_grad=False)),
            V("int64", given([-1, 0, 2], "int64"), given([7], "int64")),
        ],
        [
            E(
                "dtypes",
                RuntimeError,
                "heaviside is not yet implemented for tensors with different dtypes",
                given([1.0], requires_grad=False),
                integers(1),
            )
        ],
        differentiable=False,
        method="heaviside",
        inplace="heaviside_",
        reference=np.heaviside,
    ),
    Op(
        "polar",
        "polar",
        [
            S("tensors", positive(3), real(3)),
            S("broadcast", positive(2, 1), real(3)),
            V("float32", positive(2, dtype="float32"), real(2, dtype="float32")),
        ],
        [
            E("dtypes", RuntimeError, "Expected object of scalar type", real(2), real(2, dtype="float32")),
            E("integers", RuntimeError, "Expected both inputs to be", integers(2), integers(2)),
        ],
    ),
    Op(
        "xlogy_",
        lambda torch, x, y: x.clone().xlogy_(y),
        [S("tensors", real(3), positive(3), second=False), S("number", real(3), 2.5)],
    ),
]

UNARY = [
    Op(
        name,
        name,
        [
            S("matrix", real(2, 3)),
            S("0-d", real()),
            V("int64", integers(3)),
            V("empty", real(0)),
            V("odd", given([NAN, INF])),
        ],
        method=name,
        inplace=name + "_",
        reference=function,
        **options,
    )
    for name, function, options in (
        ("deg2rad", np.deg2rad, {}),
        ("rad2deg", np.rad2deg, {}),
        ("sinc", np.sinc, {"supports_complex": True}),
    )
] + [
    Op(
        "conj_physical",
        lambda torch, x: torch.conj_physical(x) * 1,
        [S("matrix", real(2, 3)), S("0-d", real()), V("int64", integers(2))],
        supports_complex=True,
    ),
    Op("_neg_view", lambda torch, x: torch._neg_view(x) * 1, [S("matrix", real(2, 2))], supports_complex=True),
    Op(
        "nan_to_num",
        "nan_to_num",
        [
            S("finite", real(2, 3)),
            V("odd", given([NAN, INF, -INF, 1.0])),
            V("replaced", given([NAN, INF, -INF]), 1.0, 2.0, 3.0),
            V("by name", given([NAN, INF, -INF]), nan=1.0, posinf=2.0, neginf=-3.0),
            V("int64", integers(3)),
        ],
        method="nan_to_num",
        inplace="nan_to_num_",
    ),
    Op(
        "erfinv",
        "erfinv",
        [S("inside", real(2, 2, low=-0.9, high=0.9)), V("ends", given([1.0, -1.0, 0.0, 2.0]))],
        method="erfinv",
        inplace="erfinv_",
    ),
    Op(
        "polygamma",
        "polygamma",
        [
            S("digamma", 0, positive(3)),
            S("trigamma", 1, positive(2, 2)),
            S("second", 2, positive(2)),
            V("int64", 1, given([1, 2], "int64")),
        ],
        [E("negative", RuntimeError, r"polygamma\(n, x\) does not support negative n", -1, real(2))],
    ),
    Op(
        "polygamma_",
        lambda torch, x, n: x.clone().polygamma_(n),
        [S("trigamma", positive(3), 1)],
        [E("integers", RuntimeError, "can't be cast to the desired output type Long", given([1, 2], "int64"), 1)],
    ),
    Op(
        "mvlgamma_",
        lambda torch, x, p: x.clone().mvlgamma_(p),
        [S("of two", positive(3, low=1.0), 2)],
        [E("integers", RuntimeError, "can't be cast to the desired output type", given([3, 4], "int64"), 1)],
    ),
    Op(
        "fill",
        "fill",
        [
            S("number", real(3), 2.0),
            S("tensor", real(3), given(2.5)),
            V("int64", integers(2), 3),
            V("below an unsigned type", given([1], "uint8"), -9),
        ],
        [
            E("too large", RuntimeError, "without overflow", given([1], "uint8"), 300),
            E("matrix", RuntimeError, "0-dimension value tensor", real(2), real(2)),
        ],
        inplace="fill_",
    ),
]

# ----------------------------------------------------------------------------------------------------- questions

QUESTIONS = [
    Op(
        "result_type",
        lambda torch, *args: str(torch.result_type(*args)),
        [
            V("tensors", integers(2), real(2, dtype="float32")),
            V("0-d", real(dtype="float32"), given(1.0)),
            V("number", integers(2), 1.5),
        ],
        differentiable=False,
        view=None,
    ),
    Op(
        "dtypes",
        lambda torch, x: [
            str(torch.promote_types(torch.int32, torch.float16)),
            torch.can_cast(torch.float32, torch.int64),
            torch.can_cast(torch.int64, torch.float32),
            torch.is_complex(x),
            torch.is_floating_point(x),
            torch.is_tensor(x),
            torch.is_tensor(1),
            torch.is_storage(x),
            torch.is_inference(x),
            torch.is_conj(x),
            torch.is_neg(x),
            torch.numel(x),
            tuple(torch.broadcast_shapes((2, 1), (3,), ())),
        ],
        [V("real", real(2, 3, requires_grad=False)), V("int64", integers(2))],
        differentiable=False,
        view=None,
    ),
    Op(
        "tril_indices",
        lambda torch, *args, **kwargs: [torch.tril_indices(*args, **kwargs), torch.triu_indices(*args, **kwargs)],
        [V("square", 3, 3), V("offset", 3, 2, 1), V("by name", row=2, col=3, offset=-1, dtype=Attr("int32"))],
        differentiable=False,
    ),
    Op(
        "resolved",
        lambda torch, x: torch.resolve_neg(torch.resolve_conj(x)) * 1,
        [S("real", real(2))],
        supports_complex=True,
    ),
    Op(
        "sum_to_size",
        lambda torch, x, *size: x.sum_to_size(*size) * 1,
        [
            S("columns", real(2, 3), 1, 3),
            S("last", real(2, 3), 3),
            S("all", real(2, 3), (1,)),
            S("same", real(2, 3), 2, 3),
            V("bool", mask([True, True]), 1),
            V("uint8", given([200, 100], "uint8"), 1),
            V("0-d int32", given(3, "int32"), ()),
        ],
        [E("not expandable", RuntimeError, "is not expandable to size", real(2, 3), 2, 2)],
    ),
]

OPS = [*BITWISE, *SHIFTS, *BINARY, *UNARY, *QUESTIONS]
