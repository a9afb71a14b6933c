"""In-place operations: refusals, versions, history."""

from __future__ import annotations

import warnings

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")

OPERATIONS = {
    "add_": lambda torch, t: t.add_(2),
    "sub_": lambda torch, t: t.sub_(2),
    "mul_": lambda torch, t: t.mul_(2),
    "div_": lambda torch, t: t.div_(2),
    "pow_": lambda torch, t: t.pow_(2),
    "exp_": lambda torch, t: t.exp_(),
    "neg_": lambda torch, t: t.neg_(),
    "zero_": lambda torch, t: t.zero_(),
    "fill_": lambda torch, t: t.fill_(3),
    "sigmoid_": lambda torch, t: t.sigmoid_(),
    "tanh_": lambda torch, t: t.tanh_(),
    "relu_": lambda torch, t: t.relu_(),
    "clamp_": lambda torch, t: t.clamp_(0, 1),
    "copy_": lambda torch, t: t.copy_(torch.tensor([5.0, 6.0])),
    "+=": lambda torch, t: t.__iadd__(1),
    "-=": lambda torch, t: t.__isub__(1),
    "*=": lambda torch, t: t.__imul__(2),
    "/=": lambda torch, t: t.__itruediv__(2),
    "[0] =": lambda torch, t: t.__setitem__(0, 5.0) or t,
    "masked_fill_": lambda torch, t: t.masked_fill_(torch.tensor([True, False]), 3.0),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_versions_rise_and_memory_stays(torch, name):
    x = torch.tensor([1.0, 2.0])
    address = x.data_ptr()
    result = OPERATIONS[name](torch, x)
    assert result is x
    assert x._version == 1
    assert x.data_ptr() == address


@pytest.mark.parametrize("name", OPERATIONS)
def test_leaves_that_require_grad_refuse(torch, name):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad is being used in an in-place operation"):
        OPERATIONS[name](torch, x)
    assert x.tolist() == [1.0, 2.0]
    assert x._version == 0
    assert x.is_leaf and x.requires_grad


@pytest.mark.parametrize("name", OPERATIONS)
def test_history_is_rebased(torch, name):
    """The gradient of what was there, by comparison with the same written out of place."""
    x = torch.tensor([0.5, 2.0], dtype=torch.float64, requires_grad=True)
    y = x * 3
    before = y.grad_fn
    OPERATIONS[name](torch, y)
    assert y.grad_fn is not before and not y.is_leaf
    (y * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().backward()
    numeric = []
    for i in range(2):
        values = []
        for sign in (1, -1):
            shifted = torch.tensor([0.5, 2.0], dtype=torch.float64)
            shifted[i] += sign * 1e-6
            t = shifted * 3
            OPERATIONS[name](torch, t)
            values.append((t * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().item())
        numeric.append((values[0] - values[1]) / 2e-6)
    assert x.grad.tolist() == pytest.approx(numeric, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("name", OPERATIONS)
def test_under_no_grad_only_the_version_changes(torch, name):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with torch.no_grad():
        OPERATIONS[name](torch, x)
    assert x._version == 1 and x.is_leaf and x.requires_grad and x.grad_fn is None


def test_a_plain_tensor_gets_history_from_what_is_added(torch):
    x = torch.ones(2, requires_grad=True)
    total = torch.zeros(2)
    for _ in range(3):
        total += x * 2
    assert total.requires_grad and not total.is_leaf
    total.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]


def test_aliases_see_the_write_and_the_version(torch):
    x = torch.zeros(4)
    aliases = [x.detach(), x.view(2, 2), x[1:3], x.detach().view(4)]
    x.add_(1)
    assert all(a._version == 1 for a in aliases)
    aliases[1].add_(1)
    assert x._version == 2 and x.tolist() == [2.0] * 4
    copy = x.clone()
    assert copy._version == 0


def test_data_has_a_counter_of_its_own(torch):
    x = torch.zeros(2)
    x.data.add_(1)
    assert x._version == 0 and x.tolist() == [1.0, 1.0]


def test_expanded_memory_is_not_written_to(torch):
    x = torch.zeros(1).expand(3)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        x.add_(torch.ones(3))
    assert x.tolist() == [0.0] * 3 and x._version == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, x: x.add_(torch.ones(3)),
        lambda torch, x: x.add_(torch.ones(2, 2)),
        lambda torch, x: x.mul_(torch.ones(2, dtype=torch.complex64)),
        lambda torch, x: x.copy_(torch.ones(3)),
    ],
    ids=["size", "broadcast", "dtype", "copy"],
)
def test_a_refused_write_changes_nothing(torch, call):
    leaf = torch.ones(2, requires_grad=True)
    x = leaf * 1
    node = x.grad_fn
    with pytest.raises(RuntimeError):
        call(torch, x)
    assert x.tolist() == [1.0, 1.0]
    assert x._version == 0
    assert x.grad_fn is node
    assert torch.is_grad_enabled()


def test_integers_cannot_take_a_float(torch):
    x = torch.ones(2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.add_(1.5)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        x.mul_(torch.ones(2, requires_grad=True))
    assert x.tolist() == [1, 1] and x._version == 0


def test_the_overwritten_values_are_saved_when_they_are_needed(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.pow_(3)
    y.sum().backward()
    assert x.grad.tolist() == [12.0, 27.0]


def test_double_backward_through_in_place(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.mul_(x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 12.0
    (g,) = torch.autograd.grad(g, x)
    assert g.item() == 12.0


def test_exp_then_again(torch):
    """The result that exp_ saved is gone after the next write."""
    x = torch.ones(2, requires_grad=True)
    y = (x * 1).exp_()
    y.sum().backward(retain_graph=True)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_the_error_says_what_to_write_instead():
    x = retrograd.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError) as error:
        x += 1
    assert "no_grad" in str(error.value)


def test_double_backward_through_a_saved_output_that_was_written_to_a_view(torch):
    # The node of exp_ runs twice in the second pass: inside CopySlices, and as the history of the output it saved.
    x = torch.ones(2, requires_grad=True)
    b = x * x
    b[0].exp_()
    (gradient,) = torch.autograd.grad((b**2).sum(), x, create_graph=True)
    gradient.sum().backward()
    # d2/dx2 exp(2 x^2) = (4 + 16 x^2) exp(2 x^2); d2/dx2 x^4 = 12 x^2
    expected = [20 * 2.718281828459045**2, 12.0]
    assert x.grad.tolist() == pytest.approx(expected, rel=1e-5)


# ---------------------------------------------------------------------------------- in-place without a derivative


def _without_derivative(torch, name):
    other = torch.tensor([1.0, 0.0])
    return (lambda x: x.logical_not_()) if name == "logical_not_" else lambda x: getattr(x, name)(other)


@pytest.mark.parametrize("name", ["heaviside_", "logical_and_", "logical_xor_", "logical_not_"])
@pytest.mark.parametrize("viewed", [False, True])
def test_what_an_operator_without_a_derivative_wrote_cannot_be_differentiated(name, viewed):
    """As torch has it for heaviside_; it forgets the logical ones, and gives the gradient of what was there before."""
    x = retrograd.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    _without_derivative(retrograd, name)(y[:] if viewed else y)
    assert y._version == 1
    with pytest.raises(RuntimeError, match=rf"derivative for aten::{name} is not implemented"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        _without_derivative(retrograd, name)(x)
    assert x.tolist() == [2.0, 3.0] and x.grad is None
    with retrograd.no_grad():
        _without_derivative(retrograd, name)(x)


def test_heaviside_in_place(torch):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    y = x * 1
    y.heaviside_(torch.ones(2))
    assert y.grad_fn.name() == "torch::autograd::NotImplemented"
    with pytest.raises(RuntimeError, match=r"derivative for aten::heaviside_ is not implemented"):
        y.sum().backward()


def test_a_number_can_be_copied(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    y.copy_(2.5)
    y.sum().backward()
    assert y.tolist() == [2.5, 2.5] and x.grad.tolist() == [0.0, 0.0]


# ------------------------------------------------------------------------------------- elements that lie in one place

INDEX = [2, 1, 0]
MASK = [True, True, False, False]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("index_fill_", lambda t, x: x.index_fill_(0, t.tensor(INDEX), 1.0)),
        ("index_put_", lambda t, x: x.index_put_((t.tensor(INDEX),), t.ones(3))),
        ("index_put_", lambda t, x: x.__setitem__(t.tensor(INDEX), 2.0)),
        ("masked_fill_", lambda t, x: x.masked_fill_(t.tensor(MASK), 0.0)),
        ("masked_fill_", lambda t, x: x.masked_fill_(t.tensor(MASK), t.tensor(0.0))),
    ],
)
def test_some_operators_warn_of_expanded_tensors(torch, name, call):
    with pytest.warns(UserWarning, match=f"Use of {name} on expanded tensors is deprecated"):
        call(torch, torch.rand(1).expand(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call(torch, torch.rand(4))
        torch.rand(1).expand(4)[0] = 1.0  # one element alone
        torch.rand(1).expand(4).zero_()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.index_add_(0, x, x.clone()),
        lambda x: x.index_add_(0, x.clone(), x),
        lambda x: x.index_copy_(0, x, x.clone()),
        lambda x: x.index_fill_(0, x, 0),
        lambda x: x.scatter_(0, x, x.clone()),
        lambda x: x.put_(x, x.clone()),
        lambda x: x.put_(x.clone(), x),
        lambda x: x.index_put_((x,), x.clone()),
        lambda x: x.index_put_((x[:2],), x[:2].clone()),
        lambda x: x.index_put_((x.clone(),), x),
    ],
)
def test_a_tensor_is_not_its_own_index_or_source(torch, call):
    """It would be read while it is written to."""
    x = torch.tensor(INDEX)
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor refer"):
        call(x)
    assert x.tolist() == INDEX
