"""backward() and grad(): what they take, give and refuse."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


@pytest.fixture
def x(torch):
    return torch.tensor([1.0, 2.0], requires_grad=True)


# ----------------------------------------------------------------------------------------------------------- starting


@pytest.mark.parametrize("shape", [(), (1,), (1, 1), (1, 1, 1)])
def test_one_element_starts_with_one(torch, shape):
    x = torch.full(shape, 3.0, requires_grad=True)
    (x * 2).backward()
    assert x.grad.shape == shape and x.grad.reshape(()).item() == 2.0


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_the_first_gradient_has_the_dtype_of_the_output(torch, dtype):
    x = torch.ones((), dtype=getattr(torch, dtype), requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(grad.dtype))
    y.backward()
    assert seen == [getattr(torch, dtype)]


def test_more_elements_need_a_gradient(torch, x):
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        torch.autograd.grad(x * 2, x)
    assert x.grad is None


def test_empty_outputs_need_a_gradient(torch):
    x = torch.ones(0, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(torch.ones(0))
    assert x.grad.shape == (0,)


def test_complex_scalars_need_a_gradient(torch):
    x = torch.tensor(1 + 2j, requires_grad=True)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs but got"):
        (x * x).backward()
    (x * x).backward(torch.tensor(1 + 0j))
    assert x.grad.item() == 2 - 4j


@pytest.mark.parametrize("given", ["float64", "float16", "int64"])
def test_the_given_gradient_is_cast(torch, x, given):
    (x * 2).backward(torch.ones(2, dtype=getattr(torch, given)))
    assert x.grad.dtype is torch.float32 and x.grad.tolist() == [2.0, 2.0]


def test_gradients_of_the_wrong_shape(torch, x):
    for gradient in (torch.ones(3), torch.ones(()), torch.ones(2, 1), torch.ones(1)):
        with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[0\] has a shape of"):
            (x * 2).backward(gradient)
    if torch is retrograd:  # torch stumbles over its own message here
        with pytest.raises(RuntimeError, match=r"Mismatch in shape: grad_output\[1\] has a shape of"):
            torch.autograd.backward([x.sum(), x * 2], [None, torch.ones(3)])
    assert x.grad is None


def test_complex_and_real_do_not_mix(torch, x):
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are required to have the"):
        (x * 2).backward(torch.ones(2, dtype=torch.complex64))


@pytest.mark.parametrize("gradient", [3, [1.0, 1.0], "one"])
def test_gradients_that_are_no_tensors(torch, x, gradient):
    with pytest.raises((TypeError, RuntimeError)):
        (x * 2).backward(gradient)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got"):
        torch.autograd.backward([x * 2], [gradient])


def test_as_many_gradients_as_tensors(torch, x):
    with pytest.raises(RuntimeError, match="got 2 tensors and 1 gradients"):
        torch.autograd.backward([x.sum(), x.sum()], [None])
    if torch is retrograd:  # torch drops what is too many
        with pytest.raises(RuntimeError, match="got 1 tensors and 2 gradients"):
            torch.autograd.grad(x.sum(), x, [None, None])


@pytest.mark.parametrize("position", [0, 1])
def test_outputs_that_do_not_require_grad(torch, x, position):
    outputs = [torch.ones(()) if n == position else x.sum() for n in range(2)]
    with pytest.raises(
        RuntimeError, match=f"element {position} of tensors does not require grad and does not have a grad_fn"
    ):
        torch.autograd.backward(outputs)
    with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
        torch.ones((), dtype=torch.float64).backward()
    assert x.grad is None


# ------------------------------------------------------------------------------------------------------------ backward


def test_iterables_of_outputs(torch, x):
    torch.autograd.backward((x.sum(), x.sum()))
    torch.autograd.backward([x.sum()])
    torch.autograd.backward(x.sum())
    assert x.grad.tolist() == [4.0, 4.0]


def test_backward_returns_nothing(torch, x):
    assert x.sum().backward() is None
    assert torch.autograd.backward(x.sum()) is None


def test_inputs_may_be_one_tensor(torch, x):
    w = torch.ones(2, requires_grad=True)
    (x * w).sum().backward(inputs=x)
    assert x.grad.tolist() == [1.0, 1.0] and w.grad is None


def test_empty_inputs(torch, x):
    with pytest.raises(RuntimeError, match="cannot be empty"):
        x.sum().backward(inputs=[])


def test_inputs_that_do_not_require_grad(torch, x):
    with pytest.raises(RuntimeError, match=r"does not require grad|has requires_grad=False"):
        x.sum().backward(inputs=[torch.ones(2)])


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_old_name_of_grad_tensors(torch, x):
    with pytest.warns(FutureWarning, match="grad_variables"):
        torch.autograd.backward(x * 2, grad_variables=torch.ones(2))
    with pytest.raises(RuntimeError, match="both passed"):
        torch.autograd.backward(x * 2, torch.ones(2), grad_variables=torch.ones(2))


def test_a_refused_call_changes_nothing(torch, x):
    y = x * 2
    w = torch.ones(2, requires_grad=True)
    for call in (
        lambda: torch.autograd.backward(y, inputs=[y]),
        lambda: torch.autograd.backward([y.sum(), y], inputs=[y]),
        lambda: torch.autograd.backward(y.sum(), inputs=[y, torch.ones(1)]),
        lambda: torch.autograd.backward([y.sum(), torch.ones(())]),
    ):
        with pytest.raises(RuntimeError):
            call()
        assert x.grad is None and w.grad is None and torch.is_grad_enabled()
    if torch is retrograd:  # torch has asked y to retain its gradient by then
        assert not y.retains_grad
    y.sum().backward()


# ---------------------------------------------------------------------------------------------------------------- grad


def test_grad_leaves_grad_alone(torch, x):
    x.grad = torch.tensor([5.0, 5.0])
    (g,) = torch.autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2.0, 4.0]
    assert x.grad.tolist() == [5.0, 5.0] and x.grad._version == 0


def test_grad_returns_a_tuple(torch, x):
    for inputs in (x, [x], (x,)):
        result = torch.autograd.grad(x.sum(), inputs)
        assert type(result) is tuple and len(result) == 1


def test_grad_has_no_history_unless_asked(torch, x):
    (g,) = torch.autograd.grad((x**3).sum(), x)
    assert not g.requires_grad
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    assert g.requires_grad


def test_unused_inputs(torch, x):
    other = torch.ones(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match="The differentiated Tensor at index 0 appears to not have been used"):
        torch.autograd.grad(x.sum(), other)
    assert torch.autograd.grad(x.sum(), [other, x], allow_unused=True)[0] is None
    zeros, g = torch.autograd.grad(x.sum(), [other, x], materialize_grads=True)
    assert zeros.tolist() == [0.0] * 3 and zeros.dtype is torch.float64 and not zeros.requires_grad
    assert g.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="Expected allow_unused to be True or not passed when materialize_grads=True"):
        torch.autograd.grad(x.sum(), x, allow_unused=False, materialize_grads=True)


def test_grad_refuses(torch, x):
    with pytest.raises(RuntimeError, match="One of the differentiated Tensors does not require grad"):
        torch.autograd.grad(x.sum(), torch.ones(2))
    with pytest.raises(RuntimeError, match="all inputs have to be Tensors or GradientEdges, but got int"):
        torch.autograd.grad(x.sum(), [3])
    with pytest.raises((RuntimeError, ValueError), match=r"cannot be empty|requires non-empty inputs"):
        torch.autograd.grad(x.sum(), [])


def test_grad_outputs(torch, x):
    y = x * x
    (g,) = torch.autograd.grad(y, x, torch.tensor([1.0, 10.0]), retain_graph=True)
    assert g.tolist() == [2.0, 40.0]
    (g,) = torch.autograd.grad([y, y.sum()], x, [torch.ones(2), None])
    assert g.tolist() == [4.0, 8.0]


def test_only_inputs_is_gone(torch, x):
    with pytest.warns(FutureWarning, match="only_inputs"):
        torch.autograd.grad(x.sum(), x, only_inputs=False)


@pytest.mark.parametrize("order", range(1, 6))
def test_any_order(torch, order):
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = x**5
    expected = 1.0
    for n in range(order):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        expected *= 5 - n
    assert y.item() == pytest.approx(expected * 2.0 ** (5 - order))


def test_gradients_of_gradients_by_grad_outputs(torch, x):
    """The transpose trick: a vector-Jacobian product twice is a Jacobian-vector product."""
    v = torch.zeros(2, requires_grad=True)
    (g,) = torch.autograd.grad(x**3, x, v, create_graph=True)
    (jvp,) = torch.autograd.grad(g, v, torch.tensor([1.0, 10.0]))
    assert jvp.tolist() == [3.0, 120.0]


# ------------------------------------------------------------------------------------------------------------- batched


def test_batched_gradients(torch, x):
    y = x * x
    (jacobian,) = torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    assert jacobian.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert x.grad is None


def test_batched_gradients_are_not_retained():
    """In torch what is retained is then a batch of its former `vmap`, of which nothing can be read."""
    torch = retrograd
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    retained = y.grad.clone()
    batch = torch.eye(y.numel(), dtype=y.dtype).reshape(-1, *y.shape)
    torch.autograd.grad(y, x, batch, is_grads_batched=True, retain_graph=True)
    assert (y.grad == retained).all()
    y.sum().backward()
    assert (y.grad == 2 * retained).all()


def test_batched_gradients_of_several_outputs(torch, x):
    w = torch.ones(2, requires_grad=True)
    gx, gw = torch.autograd.grad([x * w, (x + w).sum()], [x, w], [torch.eye(2), torch.ones(2)], is_grads_batched=True)
    assert gx.tolist() == [[2.0, 1.0], [1.0, 2.0]]
    assert gw.tolist() == [[2.0, 1.0], [1.0, 3.0]]


def test_batched_gradients_free_the_graph(torch, x):
    y = x.exp()
    torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True, retain_graph=True)
    torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True)
    with pytest.raises(RuntimeError, match="second time"):
        torch.autograd.grad(y, x, torch.ones(2))


def test_batched_gradients_of_the_wrong_shape(torch, x):
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension of each"):
        torch.autograd.grad(x * x, x, torch.ones(3, 3), is_grads_batched=True)


def test_batched_gradients_of_an_unused_input(torch, x):
    other = torch.ones(1, requires_grad=True)
    gx, unused = torch.autograd.grad(x * x, [x, other], torch.eye(2), is_grads_batched=True, allow_unused=True)
    assert gx.shape == (2, 2) and unused is None


# ---------------------------------------------------------------------------------------------------------------- quiet


def test_no_warnings_on_the_ordinary_path():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = retrograd.tensor([0.0, 1.0], requires_grad=True)
        (x.log() + 1 / x + x.exp() / 0).sum().backward()
        (x * 1e38 * 1e38).sum().backward()


@pytest.mark.parametrize("outputs", ["a", [3], [None]])
def test_outputs_that_are_no_tensors(torch, x, outputs):
    with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
        torch.autograd.grad(outputs, x)
    with pytest.raises(AssertionError, match=r"Expected output to be a torch\.Tensor"):
        torch.autograd.backward(outputs)


@pytest.mark.parametrize("gradient", ["x", [1.0, 1.0], ["x"]])
def test_each_gradient_is_checked(torch, x, gradient):
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got"):
        (x * 2).backward(gradient)
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got"):
        torch.autograd.grad(x * 2, x, gradient)


def test_backward_to_inputs_that_do_not_require_grad(torch, x):
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        x.sum().backward(inputs=[torch.ones(2)])


def test_a_gradient_that_no_node_changes_is_the_callers(torch: Any) -> None:
    """grad() gives back the tensor that it was given, and so its history."""
    x = torch.ones(3, requires_grad=True)
    given = torch.ones(3, requires_grad=True) * 2
    for output in (x * 1, x * 2 + 1):
        for root in (output, output + 1):
            for create_graph in (False, True):
                (found,) = torch.autograd.grad([root], [output], [given], create_graph=create_graph, retain_graph=True)
                assert found is given
    (found,) = torch.autograd.grad([x, x], [x], [given, given])
    assert found is not given and not found.requires_grad and found.tolist() == [4, 4, 4]
    (found,) = torch.autograd.grad([x * 2], [x], [given])
    assert found is not given and not found.requires_grad and given.tolist() == [2, 2, 2]
