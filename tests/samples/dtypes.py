"""Samples of dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from samples.spec import Attr, Op, S, T, V, given, integers, mask, real


def _cast(name: str) -> Op:
    samples = [V("float64", given([-1.5, 0.0, 2.5])), V("float32", given([-1.5, 0.0, 2.5], "float32"))]
    samples.append(V("int64", given([-1, 0, 2], "int64")))
    fn: Callable[..., Any] = lambda torch, x: getattr(x, name)()
    return Op(f"Tensor.{name}", fn, samples, view=None, supports_float32=False)


CASTS = [
    *[_cast(name) for name in ("float", "double", "int", "long", "bool")],
    Op(
        "Tensor.to",
        lambda torch, x, *args, **kwargs: x.to(*args, **kwargs),
        [
            S("same dtype", real(3), Attr("float64")),
            V("float32", real(3), Attr("float32")),
            V("from float32", real(3, dtype="float32"), Attr("float64")),
            V("keyword", real(3), dtype=Attr("float32")),
            V("int64", given([-1.5, 2.5]), Attr("int64")),
            V("complex128", real(3), Attr("complex128")),
            V("copy", real(3), Attr("float64"), copy=True),
            V("as a tensor is", real(3), tensor=T((1,), "float32", requires_grad=False)),
            V("as a number is", given([-1.5, 2.5]), 1j),
        ],
        view=None,
        supports_float32=False,
    ),
    Op(
        "Tensor.type_as",
        lambda torch, x, y: x.type_as(y),
        [V("float32", real(3), T((1,), "float32", requires_grad=False))],
        view=None,
        supports_float32=False,
    ),
]


OPS = [
    *CASTS,
    Op("is_signed", "is_signed", [V("int64", integers(2)), V("bool", mask([True]))], differentiable=False),
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
]
