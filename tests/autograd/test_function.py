"""Custom functions: what forward, backward and jvp may do, and what is refused."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import namedtuple

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def function(torch, forward, backward=None, name="Fn", **others):
    """A Function class from plain functions."""
    methods = {"forward": staticmethod(forward)}
    if backward is not None:
        methods["backward"] = staticmethod(backward)
    for key, value in others.items():
        methods[key] = staticmethod(value) if callable(value) else value
    return type(torch.autograd.Function)(name, (torch.autograd.Function,), methods)


def exp(torch):
    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    return function(torch, forward, lambda ctx, g: g * ctx.saved_tensors[0], "Exp")


def leaf(torch, *values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


# ----------------------------------------------------------------------------------------------------------- the basics


def test_values_gradients_and_second_derivatives(torch):
    x = leaf(torch, 0.0, 1.0)
    y = exp(torch).apply(x)
    assert y.tolist() == x.detach().exp().tolist()
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = torch.autograd.grad(second.sum(), x)
    for derivative in (first, second, third):
        assert derivative.tolist() == pytest.approx(y.tolist())


def test_the_node(torch):
    Fn = exp(torch)
    x = leaf(torch, 1.0)
    y = Fn.apply(x)
    assert y.grad_fn.name() == "ExpBackward" and type(y.grad_fn) is Fn._backward_cls
    assert y.grad_fn._forward_cls is Fn
    assert isinstance(y.grad_fn, torch.autograd.graph.Node)
    assert issubclass(Fn._backward_cls, torch.autograd.function.BackwardCFunction)
    assert y.grad_fn.next_functions[0][0].variable is x
    y.grad_fn.metadata["a"] = 1
    assert y.grad_fn.metadata == {"a": 1}


def test_ctx_is_the_node(torch):
    seen = []

    def forward(ctx, x):
        ctx.anything = [1, 2]
        seen.append(ctx)
        return x * 2

    def backward(ctx, g):
        ctx.later = g
        return g * 2

    x = leaf(torch, 1.0)
    y = function(torch, forward, backward).apply(x)
    assert seen[0] is y.grad_fn and y.grad_fn.anything == [1, 2]
    y.backward()
    assert y.grad_fn.later.tolist() == [1.0]


@pytest.mark.parametrize(
    "name",
    [
        "shape", "dtype", "num_inputs", "device", "size", "fn", "variable", "inputs", "name", "grads", "message",
        "node", "_inputs", "_outputs", "_saved", "saved_tensors_names", "output_nr",
    ],
)  # fmt: skip
def test_names_on_ctx_belong_to_the_user(torch, name):
    def forward(ctx, x, y):
        setattr(ctx, name, x.shape)
        return x * y, x + y

    def backward(ctx, g, h):
        assert tuple(getattr(ctx, name)) == (2,)
        return g + h, h

    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 1.0, 2.0)
    a, b = function(torch, forward, backward).apply(x * 1, y * 1)
    (a * b + b).sum().backward()
    assert x.grad.tolist() == [4.0, 9.0] and y.grad.tolist() == [2.0, 5.0]
    (gradient,) = torch.autograd.grad(function(torch, forward, backward).apply(x, y)[1].sum(), y)
    assert gradient.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("name", ["name", "num_inputs", "fn", "saved_tensors_names"])
def test_names_on_ctx_disturb_neither_errors_nor_pictures(name):
    def forward(ctx, x):
        setattr(ctx, name, "mine")
        ctx.save_for_backward(x)
        return x * 2, x * 3

    graph = retrograd.autograd.graph
    x = leaf(retrograd, 1.0, 2.0)
    y, z = function(retrograd, forward, lambda ctx, g, h: (g, g, g)).apply(x)
    loss = (y + z).sum()
    assert "FnBackward" in graph.tree(loss) and 'label="1"' in graph.dot(loss) and "FnBackward" in repr(y)
    assert graph.saved_memory(loss).by_operation == {"FnBackward": 16}
    with retrograd.autograd.set_detect_anomaly(True):
        with pytest.warns(UserWarning, match="Error detected in FnBackward"):
            with pytest.raises(RuntimeError, match="function FnBackward returned an incorrect number of gradients"):
                loss.backward()


def test_a_name_on_ctx_does_not_disturb_errors_about_saved_tensors():
    def forward(ctx, x):
        ctx.name = "mine"
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(retrograd, 1.0) * 1
    y = function(retrograd, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    z = function(retrograd, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"output 0 of Add, is at version 1.* FnBackward saved it"):
        z.backward()
    z = function(retrograd, forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    z.backward()
    with pytest.raises(RuntimeError, match=r"a second time.*The node is FnBackward"):
        z.backward()


def test_the_start_of_a_pass_does_not_look_at_names_on_ctx():
    def forward(ctx, x):
        ctx.shape, ctx.dtype = x.numpy().shape, x.numpy().dtype
        return x * 2, x * 3

    x = leaf(retrograd, 1.0)
    _, z = function(retrograd, forward, lambda ctx, g, h: g * 2 + h * 3).apply(x)
    z.backward(retrograd.ones(1))
    assert x.grad.item() == 3.0


@pytest.mark.parametrize("name", ["extras", "next_edges", "array_class"])
def test_the_names_that_the_engine_keeps_are_refused(name):
    def forward(ctx, x):
        setattr(ctx, name, 1)
        return x

    with pytest.raises(AttributeError, match="choose another name"):
        function(retrograd, forward).apply(leaf(retrograd, 1.0))


def test_forward_records_nothing_and_backward_what_the_pass_records(torch):
    modes = []

    def forward(ctx, x):
        modes.append(torch.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        modes.append(torch.is_grad_enabled())
        return g * 2

    x = leaf(torch, 1.0)
    Fn = function(torch, forward, backward)
    Fn.apply(x).backward()
    torch.autograd.grad(Fn.apply(x), x, create_graph=True)
    assert modes == [False, False, False, True]


def test_other_arguments_and_outputs(torch):
    def forward(ctx, scale, x, flag, name, *, extra=2):
        ctx.scale = scale
        return scale, x * scale, None, flag, name

    def backward(ctx, *grads):
        assert [g is None for g in grads] == [True, False, True, True, True]
        return None, grads[1] * ctx.scale, None, None

    x = leaf(torch, 1.0)
    result = function(torch, forward, backward).apply(3, x, True, "name")
    assert result[0] == 3 and result[2:] == (None, True, "name")
    result[1].backward()
    assert x.grad.tolist() == [3.0]


def test_without_tensors(torch):
    assert function(torch, lambda ctx, a, b: (a + b, "x")).apply(1, 2) == (3, "x")


def test_inputs_that_require_no_grad(torch):
    seen = []

    def forward(ctx, x, y):
        seen.append(ctx.needs_input_grad)
        return x * y

    def backward(ctx, g):
        return g, g  # a gradient for what needs none is dropped

    Fn = function(torch, forward, backward)
    x, y = leaf(torch, 1.0), leaf(torch, 2.0).detach()
    Fn.apply(x, y).backward()
    assert not Fn.apply(y, y).requires_grad
    with torch.no_grad():
        z = Fn.apply(x, y)
    assert not z.requires_grad and z.grad_fn is None
    assert seen == [(True, False), (False, False), (True, False)]
    assert y.grad is None


def test_setup_context(torch):
    def forward(x, power=3):
        return x**power, power

    def setup_context(ctx, inputs, output):
        x, power = inputs
        assert output[1] == power
        ctx.save_for_backward(x)
        ctx.power = power

    def backward(ctx, g, _):
        (x,) = ctx.saved_tensors
        return g * ctx.power * x ** (ctx.power - 1), None

    Fn = function(torch, forward, backward, setup_context=setup_context)
    x = leaf(torch, 2.0)
    Fn.apply(x)[0].backward()
    Fn.apply(x, 2)[0].backward()
    assert x.grad.tolist() == [12.0 + 4.0]


def test_vjp_is_another_name_for_backward(torch):
    x = leaf(torch, 2.0)
    function(torch, lambda ctx, x: x * 3, vjp=lambda ctx, g: g * 3).apply(x).backward()
    assert x.grad.tolist() == [3.0]
    both = function(torch, lambda ctx, x: x * 3, lambda ctx, g: g, vjp=lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        both.apply(x).backward()


def test_class_methods_work(torch):
    class Fn(torch.autograd.Function):
        factor = 5

        @classmethod
        def forward(cls, ctx, x):
            return x * cls.factor

        @classmethod
        def backward(cls, ctx, g):
            return g * cls.factor

    x = leaf(torch, 1.0)
    Fn.apply(x).backward()
    assert x.grad.tolist() == [5.0]


def test_one_function_within_another(torch):
    inner = exp(torch)

    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = inner.apply(ctx.x) * 2
        return ctx.y.detach()

    def backward(ctx, g):
        return torch.autograd.grad(ctx.y, ctx.x, g)[0]

    x = leaf(torch, 0.0)
    function(torch, forward, backward).apply(inner.apply(x)).backward()
    assert x.grad.item() == pytest.approx(2 * 2.718281828)


# ---------------------------------------------------------------------------------------------------- what is not there


def test_unwritten_methods(torch):
    x = leaf(torch, 1.0)
    with pytest.raises(NotImplementedError, match="must implement the forward"):
        function(torch, torch.autograd.Function.forward).apply(x)
    with pytest.raises(NotImplementedError, match="must implement either the backward or vjp"):
        function(torch, lambda ctx, x: x * 2).apply(x).backward()
    with pytest.raises(NotImplementedError, match="override the vmap staticmethod or set generate_vmap_rule=True"):
        torch.autograd.Function.vmap(None, ())
    assert torch.autograd.Function.generate_vmap_rule is False


def test_instances(torch):
    Fn = exp(torch)
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Fn()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        instance(leaf(torch, 1.0))
    with pytest.warns(DeprecationWarning):
        assert torch.autograd.function.InplaceFunction(True).inplace is True


def test_instances_are_no_nodes():
    with pytest.warns(DeprecationWarning):
        instance = exp(retrograd)()
    for name in ("next_functions", "register_hook", "name", "metadata", "_sequence_nr"):
        with pytest.raises(RuntimeError, match=f"Attribute '{name}' is invalid"):
            getattr(instance, name)


# ------------------------------------------------------------------------------------------------------ wrong gradients


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda g: g, r"function FnBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, None, g), r"returned an incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: [g, None], r"returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (3, None), r"expected Variable or None \(got int\)"),
        (lambda g: ("a", None), r"expected Variable or None \(got str\)"),
        (lambda g: (g, g), "returned a gradient different than None at position 2"),
        (lambda g: (g[:0].new_zeros(7), None), "returned an invalid gradient at index 0 - got .*expected shape"),
    ],
)
def test_wrong_gradients(torch, returned, match):
    Fn = function(torch, lambda ctx, x, k: x * k, lambda ctx, g: returned(g))
    x = leaf(torch, 1.0, 2.0)
    with pytest.raises(RuntimeError, match=match):
        Fn.apply(x, 3).sum().backward()
    assert x.grad is None


def test_nones_too_many_are_ignored(torch):
    x = leaf(torch, 1.0)
    function(torch, lambda ctx, x: x * 2, lambda ctx, g: (g, None, None)).apply(x).backward()
    assert x.grad.tolist() == [1.0]


def test_gradients_are_made_to_fit(torch):
    x = torch.ones(2, requires_grad=True)
    function(torch, lambda ctx, x: x * 2, lambda ctx, g: torch.ones(3, 2, dtype=torch.float64)).apply(
        x
    ).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.dtype == torch.float32


def test_none_is_passed_on_as_undefined(torch):
    x = leaf(torch, 1.0)
    Fn = function(torch, lambda ctx, x: x * 2, lambda ctx, g: None)
    Fn.apply(x * x).backward()
    assert x.grad is None
    assert torch.autograd.grad(Fn.apply(x), x, allow_unused=True) == (None,)


# -------------------------------------------------------------------------------------------------- undefined gradients


@pytest.mark.parametrize("materialize", [True, False])
def test_materialized_gradients(torch, materialize):
    seen = []

    def forward(ctx, x):
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3, 7

    def backward(ctx, *grads):
        seen.extend(None if g is None else g.tolist() for g in grads)
        return grads[0]

    x = leaf(torch, 1.0, 2.0)
    function(torch, forward, backward).apply(x)[0].sum().backward()
    assert seen == [[1.0, 1.0], [0.0, 0.0] if materialize else None, None]


def test_outputs_without_gradient(torch):
    seen = []

    def forward(ctx, x):
        order = x.argsort()
        copy = x * 1
        ctx.mark_non_differentiable(copy, order)
        return copy, order, x * 2, x > 0

    def backward(ctx, *grads):
        seen.extend(g.tolist() for g in grads)
        return grads[2] * 2

    x = leaf(torch, 2.0, 1.0)
    copy, order, double, positive = function(torch, forward, backward).apply(x)
    assert [t.requires_grad for t in (copy, order, double, positive)] == [False, False, True, False]
    double.sum().backward()
    assert seen == [[0.0, 0.0], [0, 0], [1.0, 1.0], [0, 0]] and x.grad.tolist() == [2.0, 2.0]


def test_zeros_for_outputs_without_gradient_can_be_left_out(torch):
    def forward(ctx, x):
        copy = x * 1
        ctx.mark_non_differentiable(copy)
        ctx._materialize_non_diff_grads = False
        return copy, x * 2

    def backward(ctx, a, b):
        assert a is None
        return b

    x = leaf(torch, 2.0)
    function(torch, forward, backward).apply(x)[1].backward()
    assert x.grad.tolist() == [1.0]


# -------------------------------------------------------------------------------------------------------- saved tensors


def test_saved_tensors_and_nones(torch):
    def forward(ctx, x, y):
        ctx.save_for_backward(None, x, y)
        return x * y

    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    z = function(torch, forward, lambda ctx, g: (g * ctx.saved_tensors[2], g * ctx.saved_tensors[1])).apply(x, y)
    nothing, a, b = z.grad_fn.saved_tensors
    assert nothing is None and a is x and b is y
    assert len(z.grad_fn._raw_saved_tensors) == 3
    z.backward()
    assert (x.grad.item(), y.grad.item()) == (3.0, 2.0)
    for name in ("saved_tensors", "_raw_saved_tensors"):
        with pytest.raises(RuntimeError, match="after they have already been freed"):
            getattr(z.grad_fn, name)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.backward()


def test_nothing_saved(torch):
    x = leaf(torch, 2.0)
    y = function(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply(x)
    assert y.grad_fn.saved_tensors == () and y.grad_fn._raw_saved_tensors == ()
    y.backward(retain_graph=True)
    y.backward()
    y.backward()  # it needs nothing that was freed
    assert x.grad.tolist() == [6.0]


def test_saved_tensors_are_checked_for_writes(torch):
    Fn = exp(torch)
    x = leaf(torch, 1.0)
    y = Fn.apply(x)
    with torch.no_grad():
        y.mul_(2)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*is at version 1; expected version 0"):
        y.backward()


def test_only_tensors_are_saved(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x, 3)
        return x

    with pytest.raises(TypeError, match="save_for_backward can only save variables, but argument 1 is of type int"):
        function(torch, forward).apply(leaf(torch, 1.0))
    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        function(torch, lambda ctx, x: ctx.save_for_forward(3)).apply(leaf(torch, 1.0))


def test_saved_tensor_hooks(torch):
    seen = []

    def pack(t):
        seen.append("pack")
        return t

    def unpack(t):
        seen.append("unpack")
        return t

    x = leaf(torch, 0.0)
    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = exp(torch).apply(x)
    y.backward()
    assert seen == ["pack", "unpack"] and x.grad.tolist() == [1.0]


def test_saved_tensors_that_are_read_once(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        reference = weakref.ref(x)
        del x
        assert reference() is None
        return g

    once = function(torch, forward, backward, clear_saved_tensors_on_access=True)
    x = leaf(torch, 1.0)
    once.apply(x.clone()).backward()
    assert x.grad.tolist() == [1.0]
    twice = function(torch, forward, lambda ctx, g: ctx.saved_tensors + ctx.saved_tensors,
                     clear_saved_tensors_on_access=True)  # fmt: skip
    with pytest.raises(RuntimeError, match="can only be accessed once"):
        twice.apply(x).backward()


def test_gradients_in_a_box(torch):
    def backward(ctx, grads):
        assert isinstance(grads, list) and len(grads) == 2
        reference = weakref.ref(grads[0])
        result = grads[0] * 2 + grads[1] * 3
        grads.clear()
        assert reference() is None
        return result

    Fn = function(torch, lambda ctx, x: (x * 2, x * 3), backward, boxed_grads_call=True)
    x = leaf(torch, 1.0)
    a, b = Fn.apply(x)
    (a * 1 + b * 1).backward()
    assert x.grad.tolist() == [5.0]


def test_running_a_node_by_hand(torch):
    x = leaf(torch, 1.0)
    a, _ = function(torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3).apply(x)
    one = torch.ones(1, dtype=torch.float64)
    assert a.grad_fn.apply(one, one * 2).tolist() == [8.0]


# ---------------------------------------------------------------------------------- inputs as outputs, views and writes


def test_an_input_as_it_is(torch):
    Fn = function(torch, lambda ctx, x: x, lambda ctx, g: g * 2, "Same")
    x = leaf(torch, 1.0, 2.0)
    y = Fn.apply(x)
    assert y is not x and y._is_view() and y._base is x and x.is_leaf
    assert y.grad_fn.name() == "SameBackward"
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    plain = x.detach()
    z = Fn.apply(plain)
    assert z is not plain and not z.requires_grad and z.data_ptr() == plain.data_ptr()
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y.mul_(2)


def test_an_input_as_it_is_without_recording(torch):
    Fn = function(torch, lambda ctx, x: x, lambda ctx, g: g)
    x = leaf(torch, 1.0)
    with torch.no_grad():
        y = Fn.apply(x)
    assert y is not x and not y.requires_grad and x.requires_grad and y.data_ptr() == x.data_ptr()


def test_a_view_of_an_input(torch):
    def backward(ctx, g):
        return torch.cat([g * 10, g * 0])

    Fn = function(torch, lambda ctx, x: x[:1], backward, "Head")
    x = leaf(torch, 1.0, 2.0)
    y = Fn.apply(x.clone())
    (y * y).sum().backward()
    assert x.grad.tolist() == [20.0, 0.0]
    with pytest.raises(RuntimeError, match="Output 0 of Head is a view and is being modified"):
        y += 1
    base = x.clone()
    y = Fn.apply(base)
    base.add_(1)
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified inplace"):
        y.grad_fn
    with torch.no_grad():
        y = Fn.apply(x)
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode and is being modified inplace"):
        y.zero_()


def test_several_views(torch):
    Fn = function(torch, lambda ctx, x: (x[:1], x * 2), lambda ctx, g, h: h, "Two")
    view, other = Fn.apply(leaf(torch, 1.0, 2.0).clone())
    other.add_(1)  # not a view
    with pytest.raises(RuntimeError, match=r"Output 0 of Two is a view .* returns multiple views"):
        view.add_(1)


def test_a_pure_view_can_be_written_to(torch):
    called = []

    def forward(ctx, x):
        ctx._is_pure_view = True
        return x[:1]

    def backward(ctx, g):
        called.append(1)
        return torch.cat([g, g * 0])

    Fn = function(torch, forward, backward)
    x = leaf(torch, 1.0, 2.0)
    y = Fn.apply(x.clone())
    y.mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 0.0] and not called  # the view was replayed
    with pytest.raises(RuntimeError, match="Pure view custom Function can only have one input Tensor and one output"):
        function(torch, lambda ctx, x: (forward(ctx, x), x + 1), backward).apply(x)


def add_in_place(torch):
    def forward(ctx, x, y):
        x.add_(y)
        ctx.mark_dirty(x)
        return x

    return function(torch, forward, lambda ctx, g: (g, g * 10), "Add")


def test_an_input_that_is_modified(torch):
    Fn = add_in_place(torch)
    x, y = leaf(torch, 1.0), leaf(torch, 2.0)
    middle = x * 2
    version = middle._version
    result = Fn.apply(middle, y)
    assert result is middle and middle.tolist() == [4.0] and middle.grad_fn.name() == "AddBackward"
    assert middle._version > version
    result *= 3
    result.backward()
    assert (x.grad.item(), y.grad.item()) == (6.0, 30.0)
    plain = torch.zeros(1, dtype=torch.float64)
    assert Fn.apply(plain, y) is plain and plain.requires_grad
    assert Fn.apply(plain.detach(), y.detach()).requires_grad is False


def test_a_leaf_may_not_be_modified(torch):
    x, y = leaf(torch, 1.0), leaf(torch, 2.0)
    Fn = add_in_place(torch)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        Fn.apply(x, y)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        Fn.apply(x.view(1), y)
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        Fn.apply((x * 1).unbind()[0], y[0])


def test_a_view_that_is_modified(torch):
    x, y = leaf(torch, 1.0, 2.0), leaf(torch, 3.0)
    base = x * 2
    add_in_place(torch).apply(base[:1], y)
    assert base.tolist() == [5.0, 4.0]
    (base * base).sum().backward()
    assert x.grad.tolist() == [20.0, 16.0] and y.grad.tolist() == [100.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_view_that_is_modified_and_is_not_the_first_argument(create_graph):
    """torch takes the first edge for that of the view, whatever it is of, and gives wrong gradients."""

    def forward(ctx, k, y, x):
        x.mul_(y)
        ctx.mark_dirty(x)
        ctx.save_for_backward(y)
        return x

    def backward(ctx, g):
        return None, g * 7, g * ctx.saved_tensors[0]

    x, y = leaf(retrograd, 1.0, 2.0), leaf(retrograd, 3.0)
    base = x * 2
    function(retrograd, forward, backward).apply(1, y, base[:1])
    gradients = retrograd.autograd.grad(base.sum(), (x, y), create_graph=create_graph)
    assert [g.tolist() for g in gradients] == [[6.0, 2.0], [7.0]]


def test_two_modified_inputs(torch):
    def forward(ctx, x, y):
        ctx.mark_dirty(x, y)
        return x.mul_(2), y.mul_(3)

    x, y = leaf(torch, 1.0), leaf(torch, 1.0)
    a, b = x * 1, y * 1
    if torch is retrograd:
        b.retain_grad()  # torch runs into an internal assertion
    c, d = function(torch, forward, lambda ctx, g, h: (g * 2, h * 3)).apply(a, b)
    assert c is a and d is b and d.output_nr == 1
    (c * 5 + d * 7).backward()
    assert (x.grad.item(), y.grad.item()) == (10.0, 21.0)
    assert torch is not retrograd or b.grad.item() == 7.0


def test_wrong_dirty_tensors(torch):
    x = leaf(torch, 1.0) * 2

    def not_returned(ctx, x):
        ctx.mark_dirty(x)
        return x.clone()

    with pytest.raises(RuntimeError, match="marked as dirty during the forward method were not returned as output"):
        function(torch, not_returned).apply(x)

    def two_outputs(ctx, x):
        ctx.mark_dirty(x)
        return x, x.clone()

    with pytest.raises(RuntimeError, match="modifies inplace an input that is a view of another Tensor"):
        function(torch, two_outputs).apply(x[:])

    def not_an_input(ctx, x):
        y = x.clone()
        ctx.mark_dirty(y)
        return y

    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        function(torch, not_an_input, lambda ctx, g: g).apply(x)

    def a_view_of_something_else(ctx, x):
        y = x.clone()[:]
        ctx.mark_dirty(y)
        return y

    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        function(torch, a_view_of_something_else).apply(x)
    with pytest.raises(RuntimeError, match="mark_dirty can only accept variables"):
        function(torch, lambda ctx, x: ctx.mark_dirty(3)).apply(x)
    with pytest.raises(RuntimeError, match="mark_non_differentiable only accepts variable arguments"):
        function(torch, lambda ctx, x: ctx.mark_non_differentiable(3)).apply(x)


def test_an_input_that_is_returned_and_saved_by_setup_context(torch):
    Fn = function(torch, lambda x: x, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
    with pytest.raises(RuntimeError, match="returned as-is as output is being saved for backward"):
        Fn.apply(leaf(torch, 1.0))


def test_one_output_twice(torch):
    def forward(ctx, x):
        y = x * 2
        return y, y

    x = leaf(torch, 1.0)
    a, b = function(torch, forward, lambda ctx, g, h: g * 2 + h * 20).apply(x)
    assert a is b
    (a * 3).backward()
    assert x.grad.tolist() == [60.0]  # the second place has the history


# ------------------------------------------------------------------------------------------------------------ once only


def test_once_differentiable(torch):
    seen = []

    @torch.autograd.function.once_differentiable
    def backward(ctx, g):
        seen.append(torch.is_grad_enabled())
        return g * 2, None

    Fn = function(torch, lambda ctx, x, k: x * 2, backward)
    x = leaf(torch, 3.0)
    Fn.apply(x, 1).backward()
    assert x.grad.tolist() == [2.0]
    (gradient,) = torch.autograd.grad(Fn.apply(x, 1) * x, x, create_graph=True)
    assert gradient.tolist() == [12.0]
    with pytest.raises(RuntimeError, match="differentiate twice a function that was marked with @once_differentiable"):
        gradient.backward()
    assert seen == [False, False]


# ---------------------------------------------------------------------------------------------- errors, memory, threads


def test_errors_leave_everything_as_it_was(torch):
    def failing_forward(ctx, x):
        ctx.save_for_backward(x)
        raise ValueError("forward")

    def failing_backward(ctx, g):
        raise ValueError("backward")

    x = leaf(torch, 1.0)
    with pytest.raises(ValueError, match="forward"):
        function(torch, failing_forward).apply(x)
    assert torch.is_grad_enabled()
    y = function(torch, lambda ctx, x: x * 2, failing_backward).apply(x)
    for _ in range(2):
        with pytest.raises(ValueError, match="backward"):
            torch.autograd.grad(y, x, create_graph=True)
    assert torch.is_grad_enabled() and x.grad is None


def test_no_cycles(no_cycles):
    def forward(ctx, x, save):
        y = x.exp()
        ctx.mark_non_differentiable(y)
        z = x * 2
        ctx.save_for_backward(*{"nothing": (), "inputs": (x,), "outputs": (y, z)}[save])
        return y, z

    Fn = function(retrograd, forward, lambda ctx, g, h: (h * 2, None))
    dirty = add_in_place(retrograd)
    with no_cycles():
        x = leaf(retrograd, 1.0)
        for save in ("nothing", "inputs", "outputs"):
            Fn.apply(x * 1, save)
            Fn.apply(x * 1, save)[1].backward()
        dirty.apply(x * 1, x)
        dirty.apply((x * 1)[:], x)
        del x


def test_a_modified_view_that_is_saved_does_not_leak(no_cycles):
    def forward(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        ctx.save_for_backward(x)
        return x

    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 2 + x * 0

    Fn = function(retrograd, forward, backward)
    with no_cycles():
        x = leaf(retrograd, 1.0, 1.0)
        base = x * 1
        view = base[:1]
        y = Fn.apply(view)
        retrograd.autograd.grad(base.sum(), x, create_graph=True)
        assert y.grad_fn.next_functions
        base.sum().backward()
        assert x.grad.tolist() == [2.0, 1.0]
        del x, base, view, y


def test_threads(torch):
    Fn = exp(torch)
    leaves = [leaf(torch, float(i)) for i in range(4)]
    threads = [threading.Thread(target=lambda x=x: Fn.apply(x).backward()) for x in leaves]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [x.grad.item() for x in leaves] == pytest.approx([x.detach().exp().item() for x in leaves])


def test_hooks_on_the_node(torch):
    seen = []
    x = leaf(torch, 1.0)
    y = exp(torch).apply(x)
    y.register_hook(lambda g: seen.append("tensor"))
    y.grad_fn.register_prehook(lambda g: seen.append("pre"))
    y.grad_fn.register_hook(lambda gi, go: seen.append("post"))
    y.backward()
    assert seen == ["tensor", "pre", "post"]


def test_gradients_of_some_inputs_only(torch):
    def backward(ctx, g):
        return g * 2, g * 3

    x, y = leaf(torch, 1.0), leaf(torch, 1.0)
    z = function(torch, lambda ctx, x, y: x * 2 + y * 3, backward).apply(x, y)
    assert torch.autograd.grad(z, y)[0].tolist() == [3.0]


def test_deprecated(torch):
    def forward(ctx, x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            ctx.mark_shared_storage((x, x))
        assert [w.category for w in caught] == [FutureWarning]
        return x

    y = function(torch, forward).apply(leaf(torch, 1.0))
    with pytest.warns(DeprecationWarning, match="'saved_variables' is deprecated"):
        assert y.grad_fn.saved_variables == ()


# --------------------------------------------------------------------------------------------------------- forward mode


def test_jvp(torch):
    fwAD = torch.autograd.forward_ad

    def forward(ctx, k, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.k = k
        return k * x * y, "other"

    def jvp(ctx, k, x_t, y_t):
        assert k is None
        x, y = ctx.saved_tensors
        return ctx.k * (x_t * y + x * y_t), None

    def backward(ctx, g, _):
        x, y = ctx.saved_tensors
        return None, ctx.k * g * y, ctx.k * g * x

    Fn = function(torch, forward, backward, jvp=jvp)
    x, y = leaf(torch, 2.0), leaf(torch, 3.0)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones(1, dtype=torch.float64))
        out, _ = Fn.apply(5, dual, y)
        assert fwAD.unpack_dual(out).tangent.tolist() == [15.0]
        out.backward()
    assert x.grad.tolist() == [15.0]


def test_jvp_is_needed(torch):
    fwAD = torch.autograd.forward_ad
    x = leaf(torch, 2.0)
    with fwAD.dual_level():
        dual = fwAD.make_dual(x, torch.ones(1, dtype=torch.float64))
        with pytest.raises(NotImplementedError, match="must implement the jvp function"):
            exp(torch).apply(dual)
        assert exp(torch).apply(x).tolist() == x.exp().tolist()  # not dual


@pytest.mark.parametrize(
    ("forward", "jvp", "match"),
    [
        (lambda ctx, x: x * 2, lambda ctx, t: (t, t), "returned an invalid number of forward gradients"),
        (lambda ctx, x: x, lambda ctx, t: t * 1, "is returning a view .or an input as-is. but the jvp is not"),
        (lambda ctx, x: x[:], lambda ctx, t: t.clone()[:], "jvp is not returning a view of the given"),
        (lambda ctx, x: (x * 2, x > 0), lambda ctx, t: (t, t), "You should return None at that position instead"),
        (lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), lambda ctx, t: t * 2, "must modify the corresponding gradient"),
        (lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), lambda ctx, t: t, "must modify the corresponding gradient"),
    ],
)
def test_wrong_tangents(forward, jvp, match):
    fwAD = retrograd.autograd.forward_ad
    with fwAD.dual_level():
        dual = fwAD.make_dual(retrograd.ones(2), retrograd.ones(2))
        with pytest.raises(RuntimeError, match=match):
            function(retrograd, forward, jvp=jvp).apply(dual)


def test_jvp_of_views_and_in_place(torch):
    fwAD = torch.autograd.forward_ad
    view = function(torch, lambda ctx, x: x[:1], jvp=lambda ctx, t: t[:1])
    write = function(torch, lambda ctx, x: ctx.mark_dirty(x) or x.mul_(2), jvp=lambda ctx, t: t.mul_(2))
    with fwAD.dual_level():
        dual = fwAD.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        assert fwAD.unpack_dual(view.apply(dual)).tangent.tolist() == [3.0]
        assert write.apply(dual) is dual
        assert fwAD.unpack_dual(dual).tangent.tolist() == [6.0, 8.0]


@pytest.mark.parametrize("part", ["whole", "view"])
def test_forward_over_reverse_of_a_saved_output(torch, part):
    """The tangent of what a function has saved of its own output goes into the tangent of its gradient."""
    fwAD = torch.autograd.forward_ad

    def forward(ctx, x):
        result = x.exp()
        ctx.save_for_backward(result)
        ctx.save_for_forward(result)
        return result

    def write(ctx, x):
        x.exp_()
        ctx.mark_dirty(x)
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x

    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    Exp = function(torch, forward, backward, jvp=lambda ctx, t: t * ctx.saved_tensors[0])
    Exp_ = function(torch, write, backward, jvp=lambda ctx, t: t.mul_(ctx.saved_tensors[0]))
    x = leaf(torch, 0.0, 1.0)
    for inplace in (False, True):
        with fwAD.dual_level():
            dual = fwAD.make_dual(x, torch.tensor([2.0, 3.0], dtype=torch.float64))
            whole = dual.clone()
            given = whole[1:] if part == "view" else whole
            result = Exp_.apply(given) if inplace else Exp.apply(given)
            gradient, = torch.autograd.grad(result.sum(), dual, create_graph=True)
            tangent = fwAD.unpack_dual(gradient).tangent
            wanted = fwAD.make_dual(x.detach(), torch.tensor([2.0, 3.0], dtype=torch.float64)).exp()
            expected = fwAD.unpack_dual(wanted).tangent
            if part == "view":
                expected = expected * torch.tensor([0.0, 1.0], dtype=torch.float64)
            torch.testing.assert_close(tangent.detach(), expected)


def test_hessian_of_a_function_that_saves_its_output(torch):
    class Exp(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.exp()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    class Unsaved(Exp):
        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(output)

    x = torch.tensor([0.0, 1.0])
    expected = torch.diag(x.exp())
    torch.testing.assert_close(torch.func.hessian(lambda x: Exp.apply(x).sum())(x), expected)
    torch.testing.assert_close(torch.func.hessian(lambda x: torch.vmap(Exp.apply)(x).sum())(x), expected)
    torch.testing.assert_close(torch.vmap(torch.func.hessian(Exp.apply))(x), x.exp())
    with pytest.raises((IndexError, AssertionError)):  # for backward alone is not for jvp (torch asserts)
        torch.func.jvp(torch.vmap(Unsaved.apply), (x,), (x,))


# --------------------------------------------------------------------------------------------------------- beyond torch

Pair = namedtuple("Pair", "a b")


def combine(ctx, tensors, weights=(), *, bias=None):
    """The sum of everything, nested."""
    ctx.seen = ctx.needs_input_grad
    total = tensors["x"] + tensors["more"][0] * 2 + tensors["more"][1].a * 3
    for weight in weights:
        total = total + weight
    if bias is not None:
        total = total + bias
    return {"total": total, "count": 3, "parts": [total * 2]}


def combine_backward(ctx, grads):
    g = grads["total"] + grads["parts"][0] * 2
    assert grads["count"] is None
    tensors = {"x": g, "more": [g * 2, Pair(g * 3, None)]}
    return tensors, [g * 4, None], {"bias": g * 5}


def test_nested_arguments_and_outputs():
    Fn = function(retrograd, combine, combine_backward)
    x, y, z, w, b = (leaf(retrograd, 1.0) for _ in range(5))
    tensors = {"x": x, "more": [y, Pair(z, "name")]}
    out = Fn.apply(tensors, [w, 1.0], bias=b)
    assert out["count"] == 3
    assert out["total"].grad_fn.seen == ({"x": True, "more": [True, Pair(True, False)]}, [True, False], {"bias": True})
    (out["total"] + out["parts"][0]).backward()
    assert [t.grad.item() for t in (x, y, z, w, b)] == [3.0, 6.0, 9.0, 12.0, 15.0]
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 3\)"):
        Fn.apply(tensors, [w, 1.0])["total"].backward()


def test_arguments_by_name():
    def forward(ctx, x, scale=1.0, other=None):
        ctx.scale = scale
        return x * scale if other is None else x * scale + other

    all_of_them = function(retrograd, forward, lambda ctx, g: (g * ctx.scale, None, g * 7))
    x, y = leaf(retrograd, 1.0), leaf(retrograd, 1.0)
    all_of_them.apply(x, other=y).backward()
    assert (x.grad.item(), y.grad.item()) == (1.0, 7.0)
    first_only = function(retrograd, forward, lambda ctx, g: g * ctx.scale)
    first_only.apply(x, scale=5.0).backward()  # as in torch: nothing for arguments given by name
    assert x.grad.item() == 6.0
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        first_only.apply(x, unknown=1)


def test_none_for_a_whole_part():
    Fn = function(retrograd, lambda ctx, xs, y: xs[0] * xs[1] * y, lambda ctx, g: (None, g))
    x, y = leaf(retrograd, 1.0), leaf(retrograd, 1.0)
    Fn.apply([x, x], y).backward()
    assert x.grad is None and y.grad.item() == 1.0


def test_a_single_tuple():
    Fn = function(retrograd, lambda ctx, xs: xs[0] * xs[1], lambda ctx, g: (g * 2, g * 3))
    x, y = leaf(retrograd, 1.0), leaf(retrograd, 1.0)
    Fn.apply((x, y)).backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 3.0)


@pytest.mark.parametrize(
    ("returned", "match"),
    [
        (lambda g: {"x": g, "z": g}, r"unknown keys \['z'\]"),
        (lambda g: [g, g], "a dict with the keys"),
        (lambda g: {"x": g, "more": [g]}, "a list of 2 was expected, not list of 1"),
        (lambda g: {"x": 3}, r"expected Variable or None \(got int\)"),
    ],
)
def test_gradients_in_the_wrong_nesting(returned, match):
    Fn = function(retrograd, lambda ctx, t: t["x"] * t["more"][0], lambda ctx, g: returned(g))
    x = leaf(retrograd, 1.0)
    with pytest.raises(RuntimeError, match=match):
        Fn.apply({"x": x, "more": [x, x]}).backward()


def test_containers_without_tensors_are_left_alone():
    circle = []
    circle.append(circle)
    seen = []

    def forward(ctx, x, *others):
        seen.extend(others)
        return x * 2, others[0]

    Fn = function(retrograd, forward, lambda ctx, g, _: (g, None, None, None))
    settings = {"a": 1}
    out, same = Fn.apply(leaf(retrograd, 1.0), settings, (1, 2), circle)
    assert same is settings and seen[2] is circle and out.grad_fn.needs_input_grad == (True, False, False, False)
    out.backward()


def test_named_tuples_come_back():
    Fn = function(retrograd, lambda ctx, x: Pair(x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    x = leaf(retrograd, 1.0)
    result = Fn.apply(x)
    assert isinstance(result, Pair)
    (result.a + result.b).backward()
    assert x.grad.item() == 5.0


def test_nested_io_function():
    class Old(retrograd.autograd.function.NestedIOFunction):
        @staticmethod
        def forward_extended(ctx, tensors):
            return tensors[0] * tensors[1][0]

        @staticmethod
        def backward_extended(ctx, g):
            return [g * 2, [g * 3]]

    x, y = leaf(retrograd, 1.0), leaf(retrograd, 1.0)
    Old.apply([x, [y]]).backward()
    assert (x.grad.item(), y.grad.item()) == (2.0, 3.0)


def test_an_input_returned_as_it_is_may_not_be_saved_even_if_nothing_is_recorded(torch):
    class AsItIs(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

    with pytest.raises(RuntimeError, match="returned as-is as output is being saved"):
        AsItIs.apply(torch.ones(2))
    with torch.no_grad():
        assert not AsItIs.apply(torch.ones(2, requires_grad=True)).requires_grad
