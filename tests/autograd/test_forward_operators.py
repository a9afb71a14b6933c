"""How operators carry tangents: writes that make them zero, refusals, short cuts.

Tests that take the `torch` fixture say of retrograd what is true of torch, and are run on both.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.autograd.forward_ad as fwAD
from retrograd._generated import functions, jvps
from retrograd.autograd.intercept import observing
from retrograd.core.state import local

pytestmark = pytest.mark.usefixtures("clean_state")


def tangent(torch: Any, tensor: Any) -> Any:
    found = torch.autograd.forward_ad.unpack_dual(tensor).tangent
    return None if found is None else found.detach().tolist()


def dual_matrix(torch: Any) -> Any:
    """[[1, 2], [3, 4]] with the tangent [[5, 6], [7, 8]], in memory of its own."""
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    return torch.autograd.forward_ad.make_dual(x, torch.tensor([[5.0, 6.0], [7.0, 8.0]])).clone()


# ------------------------------------------------------------------------------ what is written does not vary any more

FILLS = {
    "zero_": lambda torch, x: x.zero_(),
    "fill_ with a number": lambda torch, x: x.fill_(2.0),
    "fill_ with a tensor": lambda torch, x: x.fill_(torch.tensor(2.0)),
    "copy_": lambda torch, x: x.copy_(torch.ones(2, 2)),
    "subscript": lambda torch, x: x.__setitem__(..., 2.0),
    "subscript with a tensor": lambda torch, x: x.__setitem__(slice(None), torch.ones(2)),
    "subscript with a mask": lambda torch, x: x.__setitem__(x > 0, 3.0),
    "masked_fill_": lambda torch, x: x.masked_fill_(x > 0, 1.0),
    "normal_": lambda torch, x: x.normal_(),
    "uniform_": lambda torch, x: x.uniform_(),
    "random_": lambda torch, x: x.random_(),
    "bernoulli_": lambda torch, x: x.bernoulli_(),
    "exponential_": lambda torch, x: x.exponential_(),
    "geometric_": lambda torch, x: x.geometric_(0.5),
    "log_normal_": lambda torch, x: x.log_normal_(),
    "cauchy_": lambda torch, x: x.cauchy_(),
    "eq_": lambda torch, x: x.eq_(1.0),
    "lt_": lambda torch, x: x.lt_(torch.ones(2, 2)),
    "floor_": lambda torch, x: x.floor_(),
    "nn.init.normal_": lambda torch, x: torch.nn.init.normal_(x),
    "nn.init.constant_": lambda torch, x: torch.nn.init.constant_(x, 1.0),
}


@pytest.mark.parametrize("name", FILLS)
def test_a_fill_makes_tangents_zero(torch, name):
    fill = FILLS[name]
    with torch.autograd.forward_ad.dual_level():
        x = dual_matrix(torch)
        before, row = torch.autograd.forward_ad.unpack_dual(x).tangent, x[0]
        fill(torch, x)
        assert tangent(torch, x) == [[0, 0], [0, 0]]
        assert tangent(torch, row) == [0, 0]
        assert torch.autograd.forward_ad.unpack_dual(x).tangent is before


@pytest.mark.parametrize("name", ["zero_", "normal_", "uniform_", "bernoulli_", "exponential_"])
def test_a_fill_of_a_part_makes_that_part_zero(torch, name):
    with torch.autograd.forward_ad.dual_level():
        x = dual_matrix(torch)
        getattr(x[:, 0], name)()
        assert tangent(torch, x) == [[0, 6], [0, 8]]


def test_draws_do_not_vary(torch):
    with torch.autograd.forward_ad.dual_level():
        rates = dual_matrix(torch) / 4
        for draw in (torch.bernoulli, torch.poisson, lambda p: torch.normal(p, 1.0), lambda p: torch.normal(0.0, p)):
            assert tangent(torch, draw(rates)) == [[0, 0], [0, 0]]


def test_draws_have_the_gradient_zero(torch):
    mean = torch.zeros(2, requires_grad=True)
    std = torch.ones(2, requires_grad=True)
    torch.normal(mean, std).sum().backward()
    assert mean.grad.tolist() == std.grad.tolist() == [0, 0]


def test_a_fill_at_two_levels():
    with fwAD.dual_level():
        outer = fwAD.make_dual(retrograd.ones(2), retrograd.ones(2))
        with fwAD.dual_level():
            x = fwAD.make_dual(outer, retrograd.ones(2)) ** 2
            x.uniform_()
            assert fwAD.unpack_dual(x, level=0).tangent.tolist() == [0, 0]
            inner = fwAD.unpack_dual(x, level=1).tangent
            assert inner.tolist() == [0, 0]
            assert fwAD.unpack_dual(inner, level=0).tangent.tolist() == [0, 0]


# ------------------------------------------------------------------------------------------------------------- refusals

NO_FORWARD = r"Trying to use forward AD with .* that does not support it"


def test_out_is_refused_everywhere(torch):
    calls = (
        lambda x: torch.add(x, x, out=torch.empty(2, 2)),
        lambda x: torch.add(torch.ones(2, 2), 1, out=x),
        lambda x: torch.sum(x, 0, out=torch.empty(2)),
        lambda x: torch.cat([x, x], out=torch.empty(4, 2)),
        lambda x: torch.stack([x, x], out=torch.empty(2, 2, 2)),
        lambda x: torch.matmul(x, x, out=torch.empty(2, 2)),
        lambda x: torch.max(x, 0, out=(torch.empty(2), torch.empty(2, dtype=torch.int64))),
        lambda x: torch.median(x, 0, out=(torch.empty(2), torch.empty(2, dtype=torch.int64))),
        lambda x: torch.linalg.qr(x, out=(torch.empty(2, 2), torch.empty(2, 2))),
        lambda x: torch.zeros(2, 2, out=x),
        lambda x: torch.rand(2, 2, out=x),
    )
    with torch.autograd.forward_ad.dual_level():
        for position, call in enumerate(calls):
            x = dual_matrix(torch)
            with pytest.raises(NotImplementedError, match=NO_FORWARD):
                call(x)
            if torch is retrograd:  # torch writes first
                assert x.tolist() == [[1, 2], [3, 4]], position
            assert tangent(torch, x) == [[5, 6], [7, 8]], position


def test_out_of_a_list_that_requires_grad_is_refused(torch):
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.cat([x, x], out=torch.empty(4))


REFUSED = {
    "floor_divide": lambda torch, x: torch.floor_divide(x, 2.0),
    "floor_divide_": lambda torch, x: x.floor_divide_(2.0),
    "heaviside": lambda torch, x: torch.heaviside(x, torch.ones(2, 2)),
    "heaviside of the values": lambda torch, x: torch.heaviside(torch.zeros(2, 2), x),
    "igamma": lambda torch, x: torch.igamma(x, x),
    "igamma_": lambda torch, x: x.igamma_(torch.ones(2, 2)),
    "igammac": lambda torch, x: torch.igammac(x, x),
    "special.zeta": lambda torch, x: torch.special.zeta(x + 1, x),
    "geqrf": lambda torch, x: torch.geqrf(x),
    "linalg.ldl_factor": lambda torch, x: torch.linalg.ldl_factor(x),
    "linalg.ldl_solve": lambda torch, x: torch.linalg.ldl_solve(x, torch.tensor([1, 2], dtype=torch.int32), x),
    "bincount": lambda torch, x: torch.bincount(torch.tensor([0, 1]), x[0]),
    "histogram": lambda torch, x: torch.histogram(x, 2),
    "unique": lambda torch, x: torch.unique(x),
    "unique_consecutive": lambda torch, x: torch.unique_consecutive(x),
    "set_": lambda torch, x: x.set_(torch.ones(2, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_formula_is_refused(torch, name):
    """With torch's words, and before anything is written."""
    with torch.autograd.forward_ad.dual_level():
        x = dual_matrix(torch)
        with pytest.raises(NotImplementedError, match=NO_FORWARD):
            REFUSED[name](torch, x)
        if torch is retrograd:  # torch writes first
            assert x.tolist() == [[1, 2], [3, 4]]
        assert tangent(torch, x) == [[5, 6], [7, 8]]


def test_the_refusal_says_what_to_do():
    with fwAD.dual_level(), pytest.raises(NotImplementedError, match="has not been implemented yet") as info:
        x = dual_matrix(retrograd)
        retrograd.igamma(x, x)
    assert "with igamma that" in str(info.value)
    assert "reverse mode" in str(info.value)


def test_an_argument_that_has_a_formula_may_vary():
    """igamma has no derivative for its first argument, but one for its second; torch refuses both."""
    with fwAD.dual_level():
        other = fwAD.make_dual(retrograd.tensor(2.0), retrograd.tensor(3.0))
        result = retrograd.igamma(retrograd.tensor(1.0), other)  # 1 - exp(-x)
        assert tangent(retrograd, result) == pytest.approx(3 * np.exp(-2.0))


def test_a_dual_tensor_is_not_resized(torch):
    with torch.autograd.forward_ad.dual_level():
        x = dual_matrix(torch)
        with pytest.raises(RuntimeError, match="cannot resize variables that has a forward grad"):
            x.resize_(4)
        assert torch is not retrograd or tuple(x.shape) == (2, 2)


#: Why there is no forward formula.
NO_FORMULA = {
    **dict.fromkeys(("dirichlet_drawn", "dirichlet_grad", "standard_gamma_grad"), "not differentiable in torch either"),
    "geqrf": "not differentiable in torch either",
    "linalg_ldl_factor_ex": "not differentiable in torch either",
    "floor_divide": "not differentiable in torch either",
    "heaviside": "not differentiable in torch either",
    "bincount": "not differentiable in torch either",
    "_unique2": "not differentiable in torch either",
    "unique_dim": "not differentiable in torch either",
    "_unique_consecutive": "not differentiable in torch either",
    **{
        f"special_{name}": "not differentiable in torch either"
        for name in (
            "chebyshev_polynomial_t", "chebyshev_polynomial_u", "chebyshev_polynomial_v", "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u", "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w", "hermite_polynomial_h", "hermite_polynomial_he",
            "laguerre_polynomial_l", "legendre_polynomial_p",
        )
    },
}  # fmt: skip


def test_every_differentiable_operator_has_a_formula_or_a_reason():
    """Every operator whose node can be made is in the table of forward formulas."""
    missing = {name for name, formula in jvps.FORWARD.items() if formula.function is None}
    assert missing == set(NO_FORMULA)
    # Operators that make nodes, which is what they do when they are differentiable.
    recorded = {
        name
        for name, function in vars(functions).items()
        # (`body`: behind the compiled core, or the question of ops/override_switch.py, where a test has had a class
        # that overrides)
        if "nodes" in getattr(getattr(getattr(function, "body", function), "__code__", None), "co_names", ())
    }
    operators = {name for name in recorded if not name.startswith("__") and not name.endswith("_")}
    assert len(operators) > 300
    assert operators <= set(jvps.FORWARD)


# ----------------------------------------------------------------------------------------------------------- short cuts


def watched() -> Any:
    """An observer that does nothing: with it, there are no short cuts."""
    return observing(lambda operator, args, kwargs, proceed: proceed())


def test_a_short_cut_gives_what_the_long_way_gives():
    def compute(x: Any, w: Any) -> list:
        results = [x @ w, x * 2.0, 2.0 - x, x.exp(), (x @ w + x).tanh(), x.t(), x.sum(), x + 0.0, x / w, x * x[:1]]
        return [(r.detach().numpy(), fwAD.unpack_dual(r).tangent.detach().numpy()) for r in results]

    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal((2, 2)) for _ in range(4)]

    def run() -> list:
        x, xt, w, wt = (retrograd.from_numpy(a) for a in arrays)
        with fwAD.dual_level():
            return compute(fwAD.make_dual(x, xt), fwAD.make_dual(w, wt))

    short = run()
    with watched():
        long = run()
    for (one, its), (other, others) in zip(short, long, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_allclose(its, others, rtol=1e-13)
        assert its.strides == others.strides


def test_a_short_cut_is_not_taken_where_something_is_recorded():
    for who in range(2):
        tensors = [retrograd.ones(2), retrograd.ones(2)]
        tensors[who].requires_grad_()
        with fwAD.dual_level():
            result = fwAD.make_dual(*tensors) * 3
            assert result.requires_grad == (who == 0)
            assert fwAD.unpack_dual(result).tangent.requires_grad == (who == 1)


def test_parameters_take_short_cuts_too(monkeypatch):
    """A module's weights are Parameters; where nothing is recorded, the formulas on Tensors are not needed."""
    from retrograd.autograd import forward_operators

    layer = retrograd.nn.Linear(2, 2)
    with fwAD.dual_level(), retrograd.no_grad():
        x = dual_matrix(retrograd)
        monkeypatch.setattr(forward_operators, "_with_formula", None)
        result = layer(x)
        expected = retrograd.tensor([[5.0, 6.0], [7.0, 8.0]]) @ layer.weight.t()
        np.testing.assert_allclose(fwAD.unpack_dual(result).tangent.numpy(), expected.numpy(), rtol=1e-6)


def test_a_short_cut_keeps_a_number_among_tensors_in_its_place():
    with fwAD.dual_level():
        x = dual_matrix(retrograd)
        assert tangent(retrograd, retrograd.mul(2.0, x)) == [[10, 12], [14, 16]]
        assert tangent(retrograd, retrograd.add(x, np.float32(1.0), alpha=retrograd.tensor(2))) == [[5, 6], [7, 8]]
        with pytest.raises(TypeError, match="must be Tensor"):
            retrograd.mm(x, 2.0)


def test_a_short_cut_says_what_the_operator_says():
    with fwAD.dual_level():
        x = dual_matrix(retrograd)
        with pytest.raises(RuntimeError, match="must match the size"):
            x + retrograd.ones(3)
        assert tangent(retrograd, x) == [[5, 6], [7, 8]]
        assert local.state.interceptor is not None


def test_warnings_that_are_errors_do_not_come_out_of_formulas():
    with fwAD.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("error")
        x = fwAD.make_dual(retrograd.tensor([0.0, 1.0]), retrograd.tensor([1.0, 1.0]))
        assert tangent(retrograd, x.log()) == [np.inf, 1]
        assert tangent(retrograd, x.sqrt()) == [np.inf, 0.5]
        assert tangent(retrograd, x.exp()) == [1, pytest.approx(np.e)]


def test_mixed_dtypes_give_a_tangent_of_the_results(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        x = forward.make_dual(torch.ones(2), torch.ones(2))
        wide = torch.tensor(2.0, dtype=torch.float64)
        for result in (x * wide, wide * x, x + wide, x / wide, x * torch.ones(2, dtype=torch.float64)):
            assert forward.unpack_dual(result).tangent.dtype == result.dtype
        z = x * torch.tensor([1j, 2j])
        assert forward.unpack_dual(z).tangent.dtype == torch.complex64
        assert forward.unpack_dual(z.abs()).tangent.dtype == torch.float32
