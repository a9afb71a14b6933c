"""Hooks of all kinds together: their order, what they may return, and where they are after in-place writes."""

from __future__ import annotations

import gc
import random
import weakref

import pytest

pytestmark = pytest.mark.usefixtures("clean_state")


def accumulator(leaf):
    return leaf.view_as(leaf).grad_fn.next_functions[0][0]


def test_all_kinds_on_a_leaf(torch):
    x = torch.ones(1, requires_grad=True)
    node = accumulator(x)
    log = []
    node.register_hook(lambda gi, go: log.append(("post", go[0].item(), x.grad.item())))

    def accumulated(t):
        log.append(("accumulated", t.grad.item()))
        t.grad.add_(1)

    x.register_post_accumulate_grad_hook(accumulated)
    node.register_prehook(lambda go: log.append(("pre", go[0].item())) or (go[0] * 5,))
    x.register_hook(lambda g: log.append(("tensor", g.item())) or g * 2)
    (x * 3).backward()
    # The gradient itself became .grad.
    assert log == [("tensor", 3.0), ("pre", 6.0), ("accumulated", 30.0), ("post", 31.0, 31.0)]


def test_all_kinds_on_a_result(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 3
    log = []
    y.grad_fn.register_hook(lambda gi, go: log.append("post"))
    y.grad_fn.register_prehook(lambda go: log.append("pre") or (go[0] * 5,))
    y.register_hook(lambda g: log.append("tensor") or g * 2)
    y.retain_grad()
    y.register_hook(lambda g: log.append("tensor 2") or g + 1)
    y.backward()
    assert log == ["tensor", "tensor 2", "pre", "post"]
    assert y.grad.item() == 3.0  # after the tensor hooks, before the pre-hooks
    assert x.grad.item() == 45.0


def test_hooks_of_captured_inputs_run_once(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    z = y * 3
    assert [g.item() for g in torch.autograd.grad(z, [y], retain_graph=True)] == [30.0]
    assert [g.item() for g in torch.autograd.grad(z, [x, y], retain_graph=True)] == [60.0, 3.0]


def test_hooks_of_a_captured_leaf(torch):
    x = torch.ones(1, requires_grad=True)
    log = []
    x.register_hook(lambda g: log.append("tensor") or g * 10)
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    assert torch.autograd.grad(x * 2, x)[0].item() == 20.0
    assert log == ["tensor"]
    (x * 2).backward(inputs=[x])
    assert log == ["tensor", "tensor", "accumulated"]


def test_hooks_under_create_graph_are_recorded(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    y.register_hook(lambda g: g * x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)  # 2 x·x
    assert torch.autograd.grad(first, x)[0].item() == 8.0


@pytest.mark.parametrize("kind", ["tensor", "pre", "post"])
@pytest.mark.parametrize(
    ("returns", "error", "message"),
    [
        (lambda g: "word", TypeError, {"tensor": "expected Variable, but hook returned 'str'"}),
        (lambda g: ("word",), TypeError, {}),
        (lambda g: (g, g), RuntimeError, {"pre": "incorrect number of values", "post": "incorrect number of values"}),
        (lambda g: (g.double(),), RuntimeError, {"pre": "changed the type of value", "post": "changed the type"}),
        (lambda g: (g.sum(),), RuntimeError, {"pre": "changed the size of value", "post": "changed the size of value"}),
    ],
)
def test_wrong_replacements(torch, kind, returns, error, message):
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    if kind == "tensor":
        y.register_hook(returns)
        error = TypeError
    elif kind == "pre":
        y.grad_fn.register_prehook(lambda go: returns(go[0]))
    else:
        y.grad_fn.register_hook(lambda gi, go: returns(gi[0]))
    with pytest.raises(error, match=message.get(kind, "expected")):
        y.sum().backward()
    assert x.grad is None


def test_a_prehook_may_return_none_for_a_gradient(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (None,))
    y.backward()
    assert x.grad is None


def test_post_accumulate_hooks_are_checked(torch):
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot be registered on non-leaf tensors"):
        (x * 2).register_post_accumulate_grad_hook(print)
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        torch.ones(1).register_post_accumulate_grad_hook(print)
    handle = x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * 2).backward()
    handle.remove()
    (x * 2).backward()


def test_a_post_accumulate_hook_may_free_the_gradient(torch):
    x = torch.ones(2, requires_grad=True)

    def step(t):
        with torch.no_grad():
            t.sub_(t.grad, alpha=0.5)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).sum().backward()
    assert x.grad is None and x.tolist() == [0.0, 0.0]


def test_tensor_hooks_stay_with_the_value_that_they_were_registered_for(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    log = []
    y.register_hook(lambda g: log.append(("first", g.item())))
    y.mul_(5)
    y.register_hook(lambda g: log.append(("second", g.item())))
    y.mul_(7)
    y.backward()
    assert log == [("second", 7.0), ("first", 35.0)]


def test_retain_grad_moves_along(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.mul_(5)
    y.mul_(7)
    (y * 3).backward()
    assert y.grad.item() == 3.0


def test_retain_grad_of_views_and_bases_moves_along(torch):
    base = torch.ones(2, requires_grad=True).clone()
    view = base[:1]
    base.retain_grad()
    view.retain_grad()
    view.mul_(2)
    (base * torch.tensor([3.0, 4.0])).sum().backward(retain_graph=True)
    assert base.grad.tolist() == [3.0, 4.0]
    (view * 5).sum().backward()
    assert view.grad.tolist() == [5.0]


def test_hooks_of_a_view_stay_with_its_former_value(torch):
    base = torch.ones(2, requires_grad=True).clone()
    view = base[:1]
    log = []
    view.register_hook(lambda g: log.append("former"))
    base.mul_(2)
    assert view.grad_fn is not None
    view.register_hook(lambda g: log.append("present"))
    view.sum().backward()
    assert log == ["present"]


def test_a_hook_that_registers_and_removes_others_during_the_run(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2
    z = y * 3
    log = []
    doomed = y.register_hook(lambda g: log.append("doomed"))

    def hook(grad):
        log.append("z")
        doomed.remove()
        handle.remove()
        y.register_hook(lambda g: log.append("y"))
        y.grad_fn.register_hook(lambda gi, go: log.append("y's node"))

    handle = z.register_hook(hook)
    z.backward(retain_graph=True)
    assert log == ["z", "y", "y's node"]
    z.backward()
    assert log == ["z", "y", "y's node"] * 1 + ["y", "y's node"]


def test_hooks_that_raise_leave_everything_usable(torch):
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def hook(grad):
        raise KeyError("from the hook")

    handle = y.register_hook(hook)
    with pytest.raises(KeyError, match="from the hook"):
        y.backward(retain_graph=True)
    assert torch.is_grad_enabled() and x.grad is None
    handle.remove()
    y.backward()
    assert x.grad.item() == 2.0


def test_hooks_do_not_keep_tensors_alive():
    import retrograd as torch

    enabled = gc.isenabled()
    gc.disable()
    try:
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.retain_grad()
        handle = y.register_hook(lambda g: None)
        z = y * 3
        reference = weakref.ref(y)
        del y
        assert reference() is None
        z.sum().backward()
        handle.remove()
        node = weakref.ref(z.grad_fn)
        del z
        assert node() is None
    finally:
        if enabled:
            gc.enable()


@pytest.mark.parametrize("seed", range(40))
def test_random_hooks_as_in_torch(seed):
    """The same random graph with the same random hooks gives the same log and gradients in both packages."""
    reference = pytest.importorskip("torch")
    import retrograd

    assert _random_run(retrograd, seed) == _random_run(reference, seed)


def _random_run(torch, seed):
    rng = random.Random(seed)
    log = []
    leaves = [torch.tensor([float(i + 1), 2.0], requires_grad=True) for i in range(3)]
    tensors = list(leaves)
    handles = []
    for number in range(12):
        a, b = rng.choice(tensors), rng.choice(tensors)
        made = rng.choice([lambda a, b: a * b * 0.5, lambda a, b: a + b, lambda a, b: a.sin() + b * 0])(a, b)
        if rng.random() < 0.3 and not made.is_leaf:
            made.mul_(2.0)
        tensors.append(made)
        for _ in range(rng.randrange(3)):
            target = rng.choice(tensors)
            factor = rng.choice([None, 2.0, 0.5])
            kind = rng.choice(["tensor", "pre", "post", "retain", "accumulated"])
            if kind == "accumulated" and target.is_leaf:
                handles.append(
                    target.register_post_accumulate_grad_hook(lambda t, n=number: log.append((n, t.grad.tolist())))
                )
            elif kind == "retain":
                target.retain_grad()
            elif kind == "tensor":
                handles.append(target.register_hook(_hook(log, number, factor)))
            elif kind == "pre" and not target.is_leaf:
                handles.append(target.grad_fn.register_prehook(_all(_hook(log, number, factor), factor)))
            elif kind == "post" and not target.is_leaf:
                handles.append(target.grad_fn.register_hook(_post_hook(log, number)))
    loss = sum(tensors[3:], tensors[0]).sum()
    results = []
    loss.backward(retain_graph=True)
    for handle in handles:
        if rng.random() < 0.5:
            handle.remove()
    inputs = rng.sample(tensors, 3)
    results.append([None if g is None else g.tolist() for g in torch.autograd.grad(loss, inputs, allow_unused=True)])
    grads = [t.grad if t.is_leaf or t.retains_grad else None for t in tensors]
    results.extend(None if g is None else g.tolist() for g in grads)
    rounded = [_round(entry) for entry in log]
    return rounded, _round(results)


def _hook(log, number, factor):
    def hook(grad):
        log.append((number, grad.tolist()))
        return None if factor is None else grad * factor

    return hook


def _post_hook(log, number):
    return lambda gi, go: log.append(("post", number, [None if g is None else g.tolist() for g in go]))


def _all(hook, factor):
    def on_all(grads):
        after = tuple(None if g is None else hook(g) for g in grads)
        return None if factor is None else after

    return on_all


def _round(value):
    if isinstance(value, float):
        return float(f"{value:.4g}")
    return type(value)(_round(v) for v in value) if isinstance(value, (list, tuple)) else value


def _gives_none(torch):
    class GivesNone(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return None

    return GivesNone.apply


def test_post_accumulate_hooks_run_when_there_is_no_gradient(torch):
    x, log = torch.ones(2, requires_grad=True), []
    x.register_hook(lambda grad: log.append(("tensor", grad)))
    x.register_post_accumulate_grad_hook(lambda t: log.append(("accumulated", t.grad)))
    y = _gives_none(torch)(x)
    node = y.grad_fn.next_functions[0][0]
    node.register_prehook(lambda grads: log.append(("before", grads)))
    node.register_hook(lambda inputs, outputs: log.append(("after", inputs, outputs)))
    y.sum().backward()
    assert log == [("tensor", None), ("before", (None,)), ("accumulated", None), ("after", (), (None,))]


@pytest.mark.parametrize("create_graph", [False, True])
def test_post_accumulate_hooks_see_the_old_gradient_when_there_is_no_new_one(torch, create_graph):
    x, log = torch.ones(2, requires_grad=True), []
    (x * 2).sum().backward()
    x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.tolist()))
    _gives_none(torch)(x).sum().backward(create_graph=create_graph)
    _gives_none(torch)(x).sum().backward(inputs=[x], create_graph=create_graph)
    assert log == [[2.0, 2.0]] * 2
    torch.autograd.grad(_gives_none(torch)(x).sum(), x, allow_unused=True)
    assert len(log) == 2


def test_post_accumulate_hooks_of_a_leaf_that_is_none_any_more(torch):
    x, log = torch.ones(2, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda t: log.append((t.grad, t.requires_grad)))
    y = x * 2
    x.requires_grad_(False)
    y.sum().backward()
    assert log == [(None, False)] and x.grad is None
