"""Hooks on tensors and nodes: order, replacement, removal, wrong replacements."""

from __future__ import annotations

import gc
import importlib
import pickle
import warnings
import weakref
from collections import OrderedDict

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def test_hooks_run_in_order_of_registration(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    for n in range(3):
        y.register_hook(lambda grad, n=n: seen.append((n, grad.item())) or grad + 1)
    y.backward()
    assert seen == [(0, 1.0), (1, 2.0), (2, 3.0)]
    assert x.grad.item() == 8.0


def test_a_hook_that_returns_nothing_changes_nothing(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: None)
    y.backward()
    assert x.grad.item() == 2.0


def test_kinds_of_hooks_in_their_order(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    log = []
    y.grad_fn.register_hook(lambda inputs, outputs: log.append(("post", outputs[0].item(), inputs[0].item())))
    y.grad_fn.register_prehook(lambda grads: log.append(("pre", grads[0].item())))
    y.retain_grad()
    y.register_hook(lambda grad: log.append(("tensor", grad.item())) or grad * 10)
    y.backward()
    assert log == [("tensor", 1.0), ("pre", 10.0), ("post", 10.0, 20.0)]
    assert y.grad.item() == 10.0


def test_prehooks_replace_what_the_node_gets(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda grads: (grads[0] * 3,))
    y.grad_fn.register_prehook(lambda grads: (grads[0] + 1,))
    y.backward()
    assert x.grad.item() == 8.0


def test_posthooks_replace_what_the_node_gives(torch):
    x = torch.ones(1, requires_grad=True)
    w = torch.ones(1, requires_grad=True)
    y = x * w
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 3, inputs[1] * 5))
    y.backward()
    assert (x.grad.item(), w.grad.item()) == (3.0, 5.0)


def test_posthooks_see_none_for_inputs_without_gradient(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * torch.ones(1)
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append(inputs[1]))
    y.backward()
    assert seen == [None]


@pytest.mark.parametrize("kind", ["tensor", "pre", "post"])
def test_removal(torch, kind):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    log = []
    register = {"tensor": y.register_hook, "pre": y.grad_fn.register_prehook, "post": y.grad_fn.register_hook}[kind]
    first = register(lambda *args: log.append("first"))
    register(lambda *args: log.append("second"))
    first.remove()
    first.remove()
    y.backward()
    assert log == ["second"]


def test_a_handle_as_context_manager(torch):
    x = torch.ones(1, requires_grad=True)
    log = []
    with x.register_hook(lambda grad: log.append(1)):
        (x * 2).backward()
    (x * 2).backward()
    assert log == [1]


def test_a_hook_may_remove_itself(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    log = []

    def once(grad):
        log.append(1)
        handle.remove()

    handle = y.register_hook(once)
    y.register_hook(lambda grad: log.append(2))
    y.backward(retain_graph=True)
    y.backward()
    assert log == [1, 2, 2]


def test_removal_after_the_graph_is_gone(torch):
    y = torch.ones(1, requires_grad=True) * 2
    handle = y.register_hook(lambda grad: None)
    del y
    handle.remove()


def test_a_handle_does_not_keep_the_graph():
    y = retrograd.ones(1, requires_grad=True) * 2
    reference = weakref.ref(y.grad_fn)
    handle = y.register_hook(lambda grad: None)
    gc.disable()
    try:
        del y
        assert reference() is None
    finally:
        gc.enable()
    handle.remove()


def test_hooks_outlive_their_tensor(torch):
    """The hook is on the gradient, which is computed whether or not the tensor is held."""
    x = torch.ones(1, requires_grad=True)
    log = []
    y = x * 2
    y.register_hook(lambda grad: log.append(grad.item()))
    z = y * 3
    del y
    z.backward()
    assert log == [3.0]


def test_hooks_get_tensors(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append((type(grad), grad.requires_grad, grad.is_leaf)))
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True, gradient=torch.ones((), requires_grad=True))
    assert seen == [(torch.Tensor, False, True), (torch.Tensor, True, False)]
    x.grad = None


def test_hooks_take_part_in_double_backward(torch):
    x = torch.tensor(3.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert g.item() == 18.0  # 2 x * x
    (g,) = torch.autograd.grad(g, x)
    assert g.item() == 12.0


def test_hooks_on_the_outputs_of_one_node(torch):
    x = torch.ones(2, 2, requires_grad=True)
    first, second = x.unbind(0)
    log = []
    second.register_hook(lambda grad: log.append("second") or grad * 2)
    first.register_hook(lambda grad: log.append("first") or grad * 3)
    (first + second).sum().backward()
    assert log == ["second", "first"]  # by registration
    assert x.grad.tolist() == [[3.0, 3.0], [2.0, 2.0]]


# ------------------------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("replacement", "error", "phrase"),
    [
        (lambda torch, grad: torch.ones(3), RuntimeError, "has changed the size of value"),
        (lambda torch, grad: grad.double(), RuntimeError, "has changed the type of value"),
        (lambda torch, grad: 3, TypeError, "expected Variable, but hook returned 'int'"),
        (lambda torch, grad: [grad], TypeError, "expected Variable, but hook returned 'list'"),
    ],
    ids=["size", "dtype", "number", "list"],
)
@pytest.mark.parametrize("where", ["leaf", "result"])
def test_wrong_replacements(torch, replacement, error, phrase, where):
    x = torch.ones(2, requires_grad=True)
    y = x * 2

    def my_hook(grad):
        return replacement(torch, grad)

    (x if where == "leaf" else y).register_hook(my_hook)
    with pytest.raises(error, match=phrase) as raised:
        y.sum().backward()
    if error is RuntimeError:
        assert "my_hook" in str(raised.value)
    assert x.grad is None
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("kind", ["pre", "post"])
def test_the_wrong_number_of_replacements(torch, kind):
    x = torch.ones(2, requires_grad=True)
    y = x * torch.ones(2)

    def my_hook(*args):
        return (None, None, None)

    (y.grad_fn.register_hook if kind == "post" else y.grad_fn.register_prehook)(my_hook)
    with pytest.raises(RuntimeError, match="incorrect number of values"):
        y.sum().backward()
    assert x.grad is None


def test_none_cannot_be_replaced(torch):
    x = torch.ones(2, 2, requires_grad=True)
    used, unused = x.unbind(0)
    unused.register_hook(lambda grad: torch.ones(2))
    with pytest.raises(RuntimeError, match="can't replace a None gradient with a non-None value"):
        used.sum().backward()


def test_hooks_need_something_to_hook(torch):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_hook(lambda grad: grad)


# ---------------------------------------------------------------------------------------------------------- retain_grad


def test_retain_grad(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * 3).sum().backward(retain_graph=True)
    assert y.grad.tolist() == [3.0, 3.0]
    (y * 3).sum().backward()
    assert y.grad.tolist() == [6.0, 6.0]


def test_retain_grad_twice_counts_once(torch):
    y = torch.ones(1, requires_grad=True) * 2
    y.retain_grad()
    y.retain_grad()
    y.backward()
    assert y.grad.item() == 1.0


def test_retain_grad_on_leaves_does_nothing(torch):
    x = torch.ones(1, requires_grad=True)
    x.retain_grad()
    assert not x.retains_grad
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_retain_grad_needs_grad(torch):
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        torch.ones(1).retain_grad()


def test_a_retained_gradient_is_nobodys_alias(torch):
    x = torch.ones(2, requires_grad=True)
    y = x + 1
    y.retain_grad()
    given = torch.tensor([1.0, 2.0])
    y.backward(given)
    assert y.grad.data_ptr() != given.data_ptr() and y.grad.data_ptr() != x.grad.data_ptr()
    y.grad.zero_()
    assert given.tolist() == [1.0, 2.0] and x.grad.tolist() == [1.0, 2.0]


def test_retained_gradients_under_create_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.retain_grad()
    (y * y).backward(create_graph=True)
    assert y.grad.item() == 8.0 and y.grad.requires_grad
    y.grad = None
    x.grad = None


def test_retain_grad_sees_what_tensor_hooks_made(torch):
    y = torch.ones(1, requires_grad=True) * 2
    y.retain_grad()
    y.register_hook(lambda grad: grad * 7)
    y.backward()
    assert y.grad.item() == 7.0


def test_a_retaining_tensor_may_die(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.retain_grad()
    z = y * 3
    del y
    z.backward()
    assert x.grad.item() == 6.0


def test_retain_grad_after_an_in_place_operation(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    (y * 3).backward()
    assert y.grad.item() == 3.0  # the gradient of what y is now
    assert x.grad.item() == 30.0


def test_hooks_stay_with_the_value_they_were_put_on(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    seen = []
    y.register_hook(lambda grad: seen.append(("before", grad.item())))
    y.mul_(5)
    y.register_hook(lambda grad: seen.append(("after", grad.item())))
    (y * 3).backward()
    assert seen == [("after", 3.0), ("before", 15.0)]


def test_reading_grad_of_a_non_leaf_warns(torch):
    y = torch.ones(1, requires_grad=True) * 2
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None


def test_a_mode_that_a_hook_sets_ends_with_its_node(torch):
    seen = []

    def leak(*_):
        torch.set_grad_enabled(True)

    x = torch.ones(1, requires_grad=True)
    w = x * 1
    y = w * 2
    z = y * 3
    x.register_post_accumulate_grad_hook(leak)
    z.register_hook(leak)
    y.grad_fn.register_hook(leak)
    for tensor in (y, w, x):
        tensor.register_hook(lambda grad: seen.append(torch.is_grad_enabled()))
    z.backward(retain_graph=True)
    torch.autograd.grad(z, [z, x])
    assert seen == [False] * 6


def test_a_mode_that_a_backward_sets_ends_with_its_node(torch):
    class Leak(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            torch.set_grad_enabled(False)
            return grad * 2

    x = torch.ones(1, requires_grad=True)
    y = x * x
    seen = []
    y.register_hook(lambda grad: seen.append(torch.is_grad_enabled()))
    torch.autograd.grad(Leak.apply(y), x, create_graph=True)
    assert seen == [True] and torch.is_grad_enabled()


def test_posthooks_see_gradients_that_go_nowhere(torch):
    """A custom function may return a gradient for an argument that needs none."""

    class Both(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * 2 + y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2, grad * 3

    x = torch.ones(1, requires_grad=True)
    y = Both.apply(x, torch.ones(1))
    seen = []
    y.grad_fn.register_hook(lambda grads, _: seen.append([g.item() for g in grads]))
    y.grad_fn.register_hook(lambda grads, outputs: (grads[0] * 10, outputs[0]))
    y.backward()
    assert seen == [[2.0, 3.0]] and x.grad.item() == 20.0


def test_running_a_node_by_hand_is_checked(torch):
    node = (torch.ones(1, requires_grad=True) * 2).grad_fn
    with pytest.raises(TypeError, match="expected 1 arguments, got 2 instead"):
        node(torch.ones(1), torch.ones(1))
    with pytest.raises(TypeError, match="argument 0 is not a Variable"):
        node("x")


# ------------------------------------------------------------------------------------------------ handles and pickling


def handle_class(torch):
    return importlib.import_module(f"{torch.__name__}.utils.hooks").RemovableHandle


def test_a_handle_may_know_further_dicts(torch):
    hooks, one, other = OrderedDict(), OrderedDict(), OrderedDict()
    handle = handle_class(torch)(hooks, extra_dict=[one, other])
    for each in (hooks, one, other):
        each[handle.id] = each[-1] = "hook"
    handle.remove()
    assert [list(each) for each in (hooks, one, other)] == [[-1]] * 3
    single = handle_class(torch)(hooks, extra_dict=one)
    one[single.id] = "hook"
    single.remove()
    assert list(one) == [-1]


def test_handles_are_pickled_with_their_hooks(torch):
    hooks = OrderedDict()
    handle = handle_class(torch)(hooks)
    hooks[handle.id] = "hook"
    copied_hooks, copied = pickle.loads(pickle.dumps((hooks, handle)))
    assert handle_class(torch)(hooks).id > handle.id
    copied.remove()
    assert list(copied_hooks) == [] and list(hooks) == [handle.id]
    alone = pickle.loads(pickle.dumps(handle))
    alone.remove()


def test_pickling_a_tensor_warns_of_its_hooks(torch):
    x = torch.ones(2, requires_grad=True)
    assert x._backward_hooks is None
    handle = x.register_hook(lambda grad: None)
    assert list(x._backward_hooks) == [handle.id]
    with pytest.warns(UserWarning, match="on tensor will not be serialized"):
        pickle.dumps(x)
    handle.remove()
    x.register_hook(importlib.import_module(f"{torch.__name__}.utils.hooks").unserializable_hook(lambda grad: None))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pickle.dumps(x)


@pytest.mark.parametrize(
    ("call", "count"),
    [
        (lambda torch, x: x.max(0), 1),
        (lambda torch, x: x.cummax(0), 1),
        (lambda torch, x: torch.linalg.lu_factor_ex(x), 1),
        (lambda torch, x: torch.linalg.lu(x)[::-1], 2),
        (lambda torch, x: torch.linalg.svd(x), 3),
    ],
)
def test_results_without_a_gradient_are_not_among_those_of_the_node(torch, call, count):
    x = torch.tensor([[2.0, 0.5], [0.25, 1.0]], requires_grad=True)
    result = call(torch, x)[0]
    seen = []
    result.grad_fn.register_prehook(lambda grads: seen.append(len(grads)))
    result.grad_fn.register_hook(lambda inputs, grads: seen.append(len(grads)))
    result.sum().backward()
    assert seen == [count, count] and result.output_nr == (1 if count == 2 else 0)
