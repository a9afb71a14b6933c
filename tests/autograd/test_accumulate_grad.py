"""AccumulateGrad: steal, copy, accumulate; the layout contract; how it is held; hooks on leaves."""

from __future__ import annotations

import dis
import gc
import inspect
import types
import weakref

import numpy as np
import pytest

import retrograd
from retrograd.autograd import accumulate_grad
from retrograd.autograd.accumulate_grad import AccumulateGrad, grad_accumulator
from retrograd.core.meta import AutogradMeta

pytestmark = pytest.mark.usefixtures("clean_state")


def accumulator(tensor):
    return (tensor * 1).grad_fn.next_functions[0][0]


# ------------------------------------------------------------------------------------------------- steal, copy, add


def test_a_fresh_gradient_is_stolen():
    """Nobody else holds the product, so it becomes `.grad` itself."""
    x = retrograd.ones(3, requires_grad=True)
    addresses = []
    y = x * 2
    node = y.grad_fn
    apply = type(node).apply

    class Spy(type(node)):
        __slots__ = ()

        def apply(self, edges, grads):
            result = apply(self, edges, grads)
            addresses.append(result[0].ctypes.data)
            return result

    node.__class__ = Spy
    y.backward(retrograd.ones(3))
    assert x.grad.data_ptr() == addresses[0]


def test_what_is_passed_through_is_copied(torch):
    x = torch.ones(3, requires_grad=True)
    g = torch.ones(3)
    (x + 1).backward(g)
    assert x.grad.data_ptr() != g.data_ptr()
    x.grad.add_(1)
    assert g.tolist() == [1.0, 1.0, 1.0]


def test_the_second_gradient_is_added_in_place(torch):
    x = torch.ones(3, requires_grad=True)
    (x * 2).sum().backward()
    grad, address, version = x.grad, x.grad.data_ptr(), x.grad._version
    (x * 3).sum().backward()
    assert x.grad is grad
    assert x.grad.data_ptr() == address
    assert x.grad._version == version + 1
    assert grad.tolist() == [5.0, 5.0, 5.0]


def test_a_gradient_that_the_user_put_there_is_added_to_in_place(torch):
    x = torch.ones(3, requires_grad=True)
    mine = torch.tensor([10.0, 20.0, 30.0])
    x.grad = mine
    (x * 2).sum().backward()
    assert x.grad is mine
    assert mine.tolist() == [12.0, 22.0, 32.0] and mine._version == 1


def test_a_view_of_a_buffer_as_grad_keeps_its_memory(torch):
    """As flat gradient buffers of data-parallel training do it."""
    flat = torch.zeros(6)
    x = torch.ones(2, 3, requires_grad=True)
    x.grad = flat.view(2, 3)
    (x * 2).sum().backward()
    assert flat.tolist() == [2.0] * 6


def test_under_create_graph_the_sum_is_a_new_tensor(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    y.backward(create_graph=True)
    first = x.grad
    assert first.requires_grad
    y.backward(create_graph=True)
    assert x.grad is not first
    assert first.item() == 12.0 and first._version in (0, 1)
    assert x.grad.item() == 24.0 and x.grad.grad_fn is not None
    (second,) = torch.autograd.grad(x.grad, x)
    assert second.item() == 24.0
    x.grad = None


def test_under_create_graph_grad_is_nobodys_alias(torch):
    x = torch.ones(2, requires_grad=True)
    g = torch.ones(2, requires_grad=True)
    (x + 1).backward(g, create_graph=True)
    assert x.grad is not g and x.grad.data_ptr() != g.data_ptr()
    (through,) = torch.autograd.grad(x.grad.sum(), g)
    assert through.tolist() == [1.0, 1.0]
    x.grad = None


def test_a_plain_pass_after_a_recorded_one(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    y.backward(create_graph=True)
    recorded = x.grad
    y.backward()
    assert x.grad is recorded and recorded.item() == 24.0  # in place, and not recorded
    x.grad = None


def test_no_gradient_of_grad_without_create_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    (x**3).backward()
    assert not x.grad.requires_grad and x.grad.is_leaf


def test_grad_set_to_none_starts_again(torch):
    x = torch.ones(2, requires_grad=True)
    (x * 2).sum().backward()
    old = x.grad
    x.grad = None
    (x * 3).sum().backward()
    assert old.tolist() == [2.0, 2.0] and x.grad.tolist() == [3.0, 3.0]


def test_undefined_gradients_leave_grad_alone():
    x = retrograd.ones(2, requires_grad=True)
    node = grad_accumulator(x)
    assert node.apply((), [None]) == ()
    assert node.apply_tensors((), [None]) == ()
    assert x.grad is None


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "complex64", "complex128"])
def test_grad_has_the_dtype_of_its_leaf(torch, dtype):
    x = torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)
    (x * 2).backward(torch.ones(2, dtype=getattr(torch, dtype)))
    (x * 2).backward(torch.ones(2, dtype=getattr(torch, dtype)))
    assert x.grad.dtype is getattr(torch, dtype)
    assert x.grad.tolist() == [4, 4]


# ------------------------------------------------------------------------------------------------ the layout contract

LEAVES = {
    "contiguous": lambda torch: torch.ones(3, 2),
    "transposed": lambda torch: torch.ones(3, 2).t(),
    "permuted": lambda torch: torch.ones(2, 3, 4).permute(2, 0, 1),
    "gaps": lambda torch: torch.ones(4, 4)[::2, ::2],
    "expanded": lambda torch: torch.ones(3, 1).expand(3, 2),
    "one row": lambda torch: torch.ones(1, 3),
    "empty": lambda torch: torch.ones(0, 3),
    "scalar": lambda torch: torch.ones(()),
}
EXPECTED = {
    "contiguous": (2, 1),
    "transposed": (1, 2),
    "permuted": (1, 12, 4),
    "gaps": (2, 1),
    "expanded": (2, 1),
    "one row": (3, 1),
    "empty": (3, 1),
    "scalar": (),
}
USES = {
    "product": lambda torch, x: (x * torch.ones(x.shape)).sum(),
    "sum": lambda torch, x: x.sum(),
    "twice": lambda torch, x: (x * 2 + x * 3).sum(),
    "contiguous": lambda torch, x: (x.contiguous() * 2).sum(),
    "flat": lambda torch, x: (x.reshape(-1) * 2).sum(),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("leaf", LEAVES)
def test_layout_contract(torch, leaf, use, create_graph):
    """A dense leaf's gradient has its strides; any other leaf's is row-major."""
    x = LEAVES[leaf](torch).detach().requires_grad_()
    USES[use](torch, x).backward(create_graph=create_graph)
    assert x.grad.shape == x.shape
    assert x.grad.stride() == EXPECTED[leaf]
    x.grad = None


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_gradients_of_products_are_laid_out_like_their_operands(torch, transposed, dtype):
    """The gradient of a linear layer's weight arrives in the layout in which it is to be stored."""
    weight = torch.ones(3, 2, dtype=getattr(torch, dtype)).requires_grad_()
    operand = weight.t() if transposed else weight
    x = torch.ones(4, operand.shape[0], dtype=weight.dtype)
    seen = []
    for result in (x.mm(operand), torch.addmm(torch.ones(operand.shape[1], dtype=weight.dtype), x, operand)):
        weight.register_hook(lambda grad: seen.append(grad.stride()))
        assert result.grad_fn._saved_mat2_sym_strides == operand.stride()
        result.real.sum().backward()
    assert set(seen) == {weight.stride()}
    assert weight.grad.tolist() == [[8, 8]] * 3


# ------------------------------------------------------------------------------------------------------- how it is held


def test_one_accumulator_while_the_graph_lives(torch):
    x = torch.ones(1, requires_grad=True)
    first = x * 2
    second = x * 3
    assert first.grad_fn.next_functions[0][0] is second.grad_fn.next_functions[0][0]
    assert first.grad_fn.next_functions[0][0].variable is x


def test_the_accumulator_dies_with_the_graph():
    x = retrograd.ones(1, requires_grad=True)
    y = x * 2
    reference = weakref.ref(y.grad_fn.next_functions[0][0])
    gc.disable()
    try:
        del y
        assert reference() is None
    finally:
        gc.enable()
    assert accumulator(x).variable is x  # and is made again


def test_the_graph_keeps_the_leaf_alive():
    x = retrograd.ones(1, requires_grad=True)
    reference = weakref.ref(x)
    y = x * 2
    del x
    assert reference() is not None
    y.backward()
    assert reference().grad.tolist() == [2.0]
    del y
    assert reference() is None


def test_its_numbers():
    node = accumulator(retrograd.ones(2, 3, requires_grad=True))
    assert isinstance(node, AccumulateGrad)
    assert node.topological_nr == 0
    assert node.next_functions == ()
    assert node.input_metadata == (((2, 3), np.dtype(np.float32), np.ndarray),)


def test_a_tensor_that_stops_requiring_grad_has_no_edge(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    x.requires_grad_(False)
    assert not (x * 3).requires_grad
    y.backward()  # what was recorded runs, but the leaf wants no gradient any more
    assert x.grad is None


def test_new_data_changes_what_the_accumulator_expects(torch):
    x = torch.ones(2, requires_grad=True)
    x.data = torch.ones(3)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0]


# ----------------------------------------------------------------------------------------------------- hooks on leaves


def test_leaf_hooks_before_accumulation(torch):
    x = torch.ones(2, requires_grad=True)
    seen = []

    def hook(grad):
        seen.append(x.grad)
        return grad * 10

    x.register_hook(hook)
    (x * 2).sum().backward()
    assert seen == [None]
    assert x.grad.tolist() == [20.0, 20.0]


@pytest.mark.parametrize("before", [True, False])
def test_leaf_hooks_from_before_and_after_the_first_use(torch, before):
    x = torch.ones(1, requires_grad=True)
    log = []
    if before:
        x.register_hook(lambda grad: log.append("hook"))
    y = x * 2
    if not before:
        x.register_hook(lambda grad: log.append("hook"))
    y.backward()
    del y
    (x * 3).backward()  # another accumulator, the same hook
    assert log == ["hook", "hook"]


def test_leaf_hooks_see_the_sum_once(torch):
    x = torch.ones(1, requires_grad=True)
    seen = []
    x.register_hook(lambda grad: seen.append(grad.item()))
    (x * 2 + x * 3 + x).backward()
    assert seen == [6.0]


def test_leaf_hooks_run_for_captured_gradients_too(torch):
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    (g,) = torch.autograd.grad(x * 2, x)
    assert g.item() == 20.0
    assert x.grad is None


def test_a_removed_leaf_hook_is_gone(torch):
    x = torch.ones(1, requires_grad=True)
    handle = x.register_hook(lambda grad: grad * 10)
    y = x * 2
    handle.remove()
    handle.remove()
    y.backward()
    assert x.grad.item() == 2.0


def test_a_hook_that_keeps_the_gradient_owns_it(torch):
    """`.grad` is not the tensor that the hook was shown."""
    x = torch.ones(2, requires_grad=True)
    kept = []
    x.register_hook(lambda grad: kept.append(grad))
    (x * 2).sum().backward()
    x.grad.add_(100)
    assert kept[0].tolist() == [2.0, 2.0]


def test_a_hook_may_return_a_tensor_of_the_user(torch):
    x = torch.ones(2, requires_grad=True)
    mine = torch.tensor([5.0, 6.0])
    x.register_hook(lambda grad: mine)
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert x.grad.tolist() == [10.0, 12.0]
    assert mine.tolist() == [5.0, 6.0]


# ------------------------------------------------------------------------- leaves that change their shape under a graph


def reshaped(torch, x, how):
    if how == "data":
        x.data = torch.ones(6)
    else:
        with torch.no_grad():
            x.set_(torch.ones(6))


@pytest.mark.parametrize("how", ["data", "set_"])
def test_a_graph_from_before_adds_to_a_gradient_from_before(torch, how):
    x = torch.ones(2, 3, requires_grad=True)
    (x * 2).sum().backward()
    loss = (x * 3).sum()
    reshaped(torch, x, how)
    loss.backward()
    assert x.grad.tolist() == [[5.0] * 3] * 2


@pytest.mark.parametrize("how", ["data", "set_"])
def test_a_graph_from_before_cannot_give_the_leaf_a_gradient_of_another_shape(torch, how):
    x = torch.ones(2, 3, requires_grad=True)
    loss = (x * 3).sum()
    reshaped(torch, x, how)
    with pytest.raises(RuntimeError, match=r"tensor a \(6\) must match .* tensor b \(3\) at non-singleton dimension 1"):
        loss.backward()
    assert x.grad is None


def test_a_graph_from_after_needs_no_end_of_the_one_from_before():
    """(Torch holds on to the accumulator of the old graph, and refuses the new one.)"""
    x = retrograd.ones(2, 3, requires_grad=True)
    old = x * 3
    x.data = retrograd.ones(6)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0] * 6
    with pytest.raises(RuntimeError, match=r"a gradient of shape .2, 3. cannot be added to the .grad of shape .6."):
        old.sum().backward()
    assert x.grad.tolist() == [2.0] * 6


def test_a_gradient_of_another_shape_is_not_added_to(torch):
    x = torch.ones(2, 3, requires_grad=True)
    (x * 2).sum().backward()
    x.grad.data = torch.ones(6)
    with pytest.raises(RuntimeError, match=r"tensor a \(6\) must match .* tensor b \(3\) at non-singleton dimension 1"):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [1.0] * 6


def test_a_first_gradient_that_is_copied_was_written_to_once(torch):
    """It is new memory that the gradient is copied to; one that nobody else holds is kept, and was never written to."""
    given = torch.ones(2)
    x = torch.ones(2, requires_grad=True)
    x.backward(given)
    assert x.grad._version == 1 and x.grad is not given
    x.backward(given)
    assert x.grad._version == 2
    y = torch.ones(2, requires_grad=True)
    (y * 2).backward(given)
    assert y.grad._version == 0
    (y * 2).backward(given)
    assert y.grad._version == 1
    turned = torch.ones(2, 3).t().requires_grad_()
    (turned * 2).backward(torch.ones(3, 2))
    assert turned.grad._version == 1 and turned.grad.stride() == (1, 3)


@pytest.mark.parametrize(
    ("function", "line"),
    [
        (AccumulateGrad.apply, "meta.grad = made if meta.grad is None else meta.grad"),
        (accumulate_grad._add, "meta.grad = made if meta.grad is None else meta.grad"),
        (accumulate_grad.new_accumulator, "meta.grad_accumulator = made if (now := meta.grad_accumulator) is before"),
    ],
)
def test_steps_that_need_no_lock_call_nothing(function, line):
    """Note [Steps under the GIL]: between the look and the store nothing lets another thread run."""
    lines, first = inspect.getsourcelines(function)
    (number,) = [first + i for i, text in enumerate(lines) if text.strip().startswith(line)]
    names = [step.opname for step in dis.get_instructions(function) if step.positions.lineno == number]
    assert any(name.startswith("STORE_ATTR") for name in names)
    assert not [name for name in names if "CALL" in name or "JUMP_BACKWARD" in name or name == "RESUME"], names
    assert isinstance(inspect.getattr_static(AutogradMeta, "grad"), types.MemberDescriptorType)
    assert isinstance(inspect.getattr_static(AutogradMeta, "grad_accumulator"), types.MemberDescriptorType)
