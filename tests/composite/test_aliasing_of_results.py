"""Which results share memory with what they were made of, and which are copies."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.mark.parametrize("requires_grad", [False, True])
def test_positive_is_the_tensor_itself(torch, requires_grad):
    x = torch.ones(2, requires_grad=requires_grad)
    assert +x is x and torch.positive(x) is x and x.positive() is x
    with pytest.raises(RuntimeError, match="on a bool tensor is not supported"):
        torch.positive(torch.ones(2, dtype=torch.bool))


RESULTS = {
    "kron": lambda torch, x: torch.kron(x, torch.ones(2, 2)),
    "quantile": lambda torch, x: torch.quantile(x, 0.5, dim=0),
    "quantile, keepdim": lambda torch, x: torch.quantile(x, 0.5, dim=0, keepdim=True),
    "quantile of all": lambda torch, x: torch.quantile(x, 0.5),
    "quantile of all, keepdim": lambda torch, x: torch.quantile(x, 0.5, keepdim=True),
    "quantiles": lambda torch, x: torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]), dim=1),
    "quantiles, keepdim": lambda torch, x: torch.quantile(x, torch.tensor([0.25, 0.5, 0.75]), dim=1, keepdim=True),
    "nanquantile": lambda torch, x: torch.nanquantile(x, 0.5, dim=0),
    "einsum ij->i": lambda torch, x: torch.einsum("ij->i", x),
    "einsum ij->": lambda torch, x: torch.einsum("ij->", x),
}


@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("requires_grad", [False, True])
def test_results_that_are_no_views(torch, name, requires_grad):
    x = torch.arange(6.0).reshape(2, 3).requires_grad_(requires_grad)
    result = RESULTS[name](torch, x)
    assert not result._is_view() and result._base is None
    assert result.requires_grad == requires_grad


def test_the_layout_of_quantiles(torch):
    x = torch.arange(24.0).reshape(2, 3, 4)
    q = torch.tensor([0.1, 0.6])
    assert torch.quantile(x, q, 1).stride() == (1, 8, 2)
    assert torch.quantile(x, q, 1, keepdim=True).stride() == (1, 8, 8, 2)
    assert torch.quantile(x, q, keepdim=True).shape == (2, 1, 1, 1)
    assert torch.quantile(x, 0.5, keepdim=True).shape == (1, 1, 1)
    assert torch.quantile(torch.tensor(3.0), q, 0, keepdim=True).shape == (2,)


VIEWS = {
    "ij->ji": lambda x: x.t(), "ij->ij": lambda x: x, "ij": lambda x: x, "ji": lambda x: x.t(), "...": lambda x: x,
    "ii->i": lambda x: x.diagonal(), "...j->j...": lambda x: x.t(),
}  # fmt: skip


@pytest.mark.parametrize("equation", VIEWS)
def test_an_einsum_that_sums_nothing_is_a_view(torch, equation):
    x = torch.arange(9.0).reshape(3, 3).clone().requires_grad_()
    result = torch.einsum(equation, x)
    assert result.data_ptr() == x.data_ptr() and result._base is x and result is not x
    assert result.tolist() == VIEWS[equation](x).tolist() and result.stride() == VIEWS[equation](x).stride()
    (grad,) = torch.autograd.grad((result * result).sum(), x)
    seen = torch.zeros(3, 3)
    VIEWS[equation](seen).copy_(2 * VIEWS[equation](x).detach())
    assert grad.tolist() == seen.tolist()


def test_writing_through_an_einsum(torch):
    base = torch.zeros(2, 3)
    torch.einsum("ij->ji", base)[2, 1] = 7.0
    assert base.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 7.0]]


def test_einsums_of_one_operand_that_do_not_fit(torch):
    with pytest.raises(RuntimeError, match="repeated for operand 0 but the sizes don't match"):
        torch.einsum("ii->i", torch.ones(2, 3))
    with pytest.raises(RuntimeError, match="more than once in the output"):
        torch.einsum("i->ii", torch.ones(2))
