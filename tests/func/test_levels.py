"""Derivatives inside a vmap: duals of a primal that is the same for all examples, in the engine's own passes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._vmap_internals import _vmap
from retrograd.autograd import forward_ad as fwAD
from retrograd.autograd.gradcheck import GradcheckError, gradcheck
from retrograd.func import vmap

ROWS = torch.eye(3, dtype=torch.float64)


def value() -> Any:
    return torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def same(got: Any, expected: Any) -> None:
    np.testing.assert_allclose(got.numpy(), np.asarray(expected), 1e-12, 1e-12)


def tangents(function: Callable[[Any], Any], x: Any = None, mapped: Any = _vmap) -> Any:
    """The tangents of ``function(dual)`` for each of ROWS."""
    x = value() if x is None else x

    def along(row: Any) -> Any:
        with fwAD.dual_level():
            return fwAD.unpack_dual(function(fwAD.make_dual(x, row))).tangent

    return mapped(along)(ROWS)


def test_the_primal_stays_what_it_is_and_the_tangent_too() -> None:
    x = value()

    def along(row: Any) -> Any:
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, row)
            primal, tangent = fwAD.unpack_dual(dual)
            assert tangent is row
            assert not torch._C._functorch.is_batchedtensor(primal)
            assert (dual * 2).numpy(force=True).tolist() == [2.0, 4.0, 6.0]
            return tangent

    assert _vmap(along)(ROWS) is ROWS


def test_operators_and_writes() -> None:
    x = [1.0, 2.0, 3.0]
    same(tangents(lambda d: d.sin() * d), np.diag(np.sin(x) + np.multiply(x, np.cos(x))))
    same(tangents(lambda d: d.sum()), np.ones(3))

    def written(dual: Any) -> Any:
        z = torch.zeros(3, dtype=torch.float64)
        z[1:] = dual[:2] * 2
        return z.mul_(dual)

    same(tangents(written), [[0, 4, 0], [0, 2, 6], [0, 0, 4]])


def test_a_base_and_its_view_become_dual_together() -> None:
    for view in (torch.zeros(3, 3, dtype=torch.float64).view(3, 3), torch.zeros(3, 3, dtype=torch.float64).t()):
        x = torch.zeros(3, 3, dtype=torch.float64)
        given = torch.arange(18.0, dtype=torch.float64).reshape(2, 3, 3)

        def along(row: Any, view: Any = view, x: Any = x) -> Any:
            with fwAD.dual_level():
                view.copy_(fwAD.make_dual(x, row))
                return fwAD.unpack_dual(view).tangent, fwAD.unpack_dual(view._base).tangent

        of_view, of_base = _vmap(along)(given)
        same(of_view, given)
        if view.is_contiguous():
            assert of_view is of_base
        else:
            assert of_view._base is of_base
            same(of_base, given.transpose(1, 2))


def test_where_it_meets_a_batched_tensor_it_becomes_one() -> None:
    x, others = value(), torch.arange(9.0, dtype=torch.float64).reshape(3, 3)

    def along(row: Any, other: Any) -> Any:
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, row)
            return fwAD.unpack_dual((dual * other).sin() + torch.stack([dual, other]).sum(0)).tangent

    expected = np.diag(np.diag(np.cos(x.numpy() * others.numpy()) * others.numpy() + 1))
    for mapped in (_vmap, vmap):
        same(mapped(along)(ROWS, others), expected)


class Doubled(torch.autograd.Function):
    """Of the old style, without setup_context."""

    seen: Any = None

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        Doubled.seen = type(x).__name__
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2

    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return tangent * 2


class Drawing(Doubled):
    @staticmethod
    def jvp(ctx: Any, tangent: Any) -> Any:
        return torch.randn_like(tangent) * 0 + tangent * 2


def test_custom_functions_need_no_rule() -> None:
    same(tangents(Doubled.apply), 2 * np.eye(3))
    assert Doubled.seen == "Tensor"
    x = value().requires_grad_()
    assert gradcheck(Doubled.apply, x, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True)
    with pytest.raises(RuntimeError, match="must override the setup_context"):  # in a vmap of the program's own it does
        tangents(Doubled.apply, mapped=vmap)
    with pytest.raises(GradcheckError, match="We do not yet support calling random operations inside of vmap"):
        gradcheck(Drawing.apply, x, check_forward_ad=True, check_batched_forward_grad=True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.func.grad(lambda z: (z**3).sum())(x),
        lambda x: vmap(lambda row: row.sin() * 2)(x.reshape(3, 1)),
        lambda x: torch.func.jvp(torch.sin, (x,), (x * 2,))[1],
        lambda x: vmap(lambda scale: x * scale)(torch.arange(2.0, dtype=torch.float64)),
        lambda x: torch.func.vjp(lambda z: z.exp(), x)[1](x)[0],
    ],
)
def test_transforms_within_such_a_pass(function: Any) -> None:
    x = value().requires_grad_()
    assert gradcheck(function, x, check_forward_ad=True, check_batched_forward_grad=True)
