"""Checkpoints: the same gradients as without, what is run again and when, what is noticed, and what dies when."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from contextlib import contextmanager, nullcontext

import pytest

import retrograd

pytestmark = pytest.mark.usefixtures("clean_state")


def leaf(torch, *values):
    return torch.tensor(values or (0.5, 1.0, 2.0), requires_grad=True)


def counted(function):
    """The function, with the number of its calls in `calls`."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        call.calls += 1
        return function(*args, **kwargs)

    call.calls = 0
    return call


def gradients(torch, function, *inputs, **options):
    copies = [x.detach().clone().requires_grad_() for x in inputs]
    out = torch.utils.checkpoint.checkpoint(function, *copies, **options) if options else function(*copies)
    out.sum().backward()
    return [x.grad for x in copies]


def assert_same(actual, expected):
    for a, b in zip(actual, expected, strict=True):
        assert a.tolist() == b.tolist()


# --------------------------------------------------------------------------------------------------- the same gradients


def chain(torch):
    return lambda x: (x.sin().exp() * x).tanh()


def several_uses(torch):
    return lambda x: x.exp() + x.exp() * x.cos()


def in_place(torch):
    return lambda x: x.sin().mul_(2).exp()


def views(torch):
    return lambda x: (x[:2] * x[1:]).view(2, 1).exp() @ x[None, :2]


def several_outputs(torch):
    return lambda x: sum(part.exp().sum() for part in x.unbind(0)) + x.max(0).values


def without_anything_saved(torch):
    return lambda x: x.clone() + 1


FUNCTIONS = [chain, several_uses, in_place, views, several_outputs, without_anything_saved]


@pytest.mark.parametrize("make", FUNCTIONS)
@pytest.mark.parametrize(
    "options", [{"use_reentrant": False}, {"use_reentrant": False, "early_stop": False}, {"use_reentrant": True}]
)
def test_gradients(torch, make, options):
    function, x = make(torch), leaf(torch)
    assert_same(gradients(torch, function, x, **options), gradients(torch, function, x))


def test_several_inputs_of_which_some_do_not_require_grad(torch):
    x, y, n = leaf(torch), torch.tensor([3.0, 4.0, 5.0]), 2
    for reentrant in (True, False):
        x.grad = None
        torch.utils.checkpoint.checkpoint(
            lambda x, y, n: x * y.exp() * n, x, y, n, use_reentrant=reentrant
        ).sum().backward()
        assert torch.allclose(x.grad, 2 * y.exp())


def test_keyword_arguments_and_nested_structures(torch):
    x, w = leaf(torch), leaf(torch, 1.0, 2.0, 3.0)
    f = lambda inputs, *, w: {"out": (inputs["x"] * w).exp(), "n": 1}
    out = torch.utils.checkpoint.checkpoint(f, {"x": x}, w=w, use_reentrant=False)
    assert out["n"] == 1
    actual = torch.autograd.grad(out["out"].sum(), (x, w))
    expected = torch.autograd.grad(f({"x": x}, w=w)["out"].sum(), (x, w))
    assert_same(actual, expected)


def test_second_order(torch):
    x = leaf(torch)

    def second(f):
        (first,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)

    f = lambda x: x.sin().exp() * x
    assert_same(second(lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)), second(f))


def test_nested(torch):
    x = leaf(torch)
    c = lambda f: lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    inner = counted(lambda x: x.sin().exp())
    outer = counted(lambda x: c(inner)(c(inner)(x).cos()).tanh())
    c(outer)(x).sum().backward()
    assert outer.calls == 2
    # Each once forward; then the second for its gradient (its inputs make the outer one run again, with both inside).
    assert inner.calls >= 4
    assert torch.allclose(x.grad, gradients(torch, lambda x: x.sin().exp().cos().sin().exp().tanh(), x)[0])


def test_backward_inside_the_function(torch):
    def f(x):
        y = x.sin().exp()
        (grad,) = torch.autograd.grad(y.sum(), x, create_graph=True)
        return grad * x.cos()

    x = leaf(torch)
    for early_stop in (True, False):
        options = {"use_reentrant": False, "early_stop": early_stop}
        assert_same(gradients(torch, f, x, **options), gradients(torch, f, x))


def test_part_of_the_graph_inside_the_checkpoint(torch):
    x = leaf(torch)

    def f(x):
        y = x.sin().cos()
        return y, y.exp()

    y, z = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    (grad,) = torch.autograd.grad(z.sum(), y)
    assert torch.allclose(grad, y.exp())
    y.sum().backward()
    assert torch.allclose(x.grad, -x.sin().sin() * x.cos())


def test_nothing_is_done_without_grad_mode(torch):
    entered = []

    def context_fn():
        @contextmanager
        def note():
            entered.append(True)
            yield

        return note(), note()

    with torch.no_grad():
        y = torch.utils.checkpoint.checkpoint(torch.exp, leaf(torch), use_reentrant=False, context_fn=context_fn)
    assert not y.requires_grad and not entered


# ---------------------------------------------------------------------------------------------- when it is run again


def test_once_a_backward_pass(torch):
    f = counted(lambda x: x.sin().exp())
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False)
    y.sum().backward(retain_graph=True)
    assert f.calls == 2
    y.sum().backward()
    assert f.calls == 3
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_not_at_all_if_nothing_was_saved(torch):
    f = counted(lambda x: x + 1)
    torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False).sum().backward()
    assert f.calls == 1


@pytest.mark.parametrize("early_stop", [True, False])
def test_early_stop_ends_before_what_is_not_needed(torch, early_stop):
    after = counted(lambda x: x + 1)
    f = lambda x: after(x.sin().exp())
    torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, early_stop=early_stop).sum().backward()
    assert after.calls == (1 if early_stop else 2)


def test_early_stop_passes_handlers_of_the_function():
    def f(x):
        try:
            y = x.sin().cos()
        except Exception:
            return x
        raise_if_reached.append(True)
        return y

    raise_if_reached = []
    retrograd.utils.checkpoint.checkpoint(f, leaf(retrograd), use_reentrant=False).sum().backward()
    assert len(raise_if_reached) == 1


def test_early_stop_does_not_run_an_operator_whose_arguments_are_all_that_is_missing(torch):
    mode = counting_mode(torch)
    f = lambda x: x.exp().sin()
    x = leaf(torch)
    with mode:
        torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False).sum().backward()
    assert [name for name in mode.names if name in ("exp.default", "sin.default")].count("sin.default") == 1
    assert mode.names.count("exp.default") == 2


def test_early_stop_is_not_confused_by_calls_that_save_nothing(torch):
    x, y = leaf(torch), leaf(torch, 2.0, 3.0, 4.0)

    def f(x, y):
        with torch.no_grad():
            scale = x * y  # the operator that saves last, but saving nothing here
        constant = (x.detach() * y.detach()) * 2
        return (x.exp() * (scale + constant)) * y

    assert_same(gradients(torch, f, x, y, use_reentrant=False), gradients(torch, f, x, y))


def test_settings_nest_and_win(torch):
    cp = torch.utils.checkpoint
    after = counted(lambda x: x + 1)
    f = lambda x: after(x.sin())
    with cp.set_checkpoint_early_stop(False):
        with cp.set_checkpoint_early_stop(True):
            cp.checkpoint(f, leaf(torch), use_reentrant=False, early_stop=False).sum().backward()
        assert after.calls == 1
        cp.checkpoint(f, leaf(torch), use_reentrant=False, early_stop=True).sum().backward()
        assert after.calls == 3


def test_saved_attributes_recompute_too(torch):
    f = counted(lambda x: x.exp())
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch, 0.0), use_reentrant=False)
    assert y.grad_fn._saved_result.tolist() == [1.0]
    assert y.grad_fn._saved_result.tolist() == [1.0]
    assert f.calls == 3


def test_group_recomputes_once_and_refuses_overlap(torch):
    cp = torch.utils.checkpoint

    @counted
    def f(x):
        y = x.sin()
        return y, y.cos()

    x = leaf(torch)
    y, z = cp.checkpoint(f, x, use_reentrant=False)
    with cp.GraphExecGroup():
        (grad,) = torch.autograd.grad(z.sum(), y)
        torch.autograd.grad(y, x, grad)
    assert f.calls == 2

    y = cp.checkpoint(lambda x: x.exp(), x, use_reentrant=False)
    with cp.GraphExecGroup() as group:
        assert cp.GraphExecGroup._get_current_group() is group
        y.sum().backward(retain_graph=True)
        with pytest.raises(cp.CheckpointError, match="Performing two backward calls that overlap"):
            y.sum().backward()
        with pytest.raises(RuntimeError, match="cannot be nested"), cp.GraphExecGroup():
            pass
    assert cp.GraphExecGroup._get_current_group() is None


def test_hooks_of_other_kinds(torch):
    x = leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        h = torch.utils.checkpoint.checkpoint(lambda x: x.exp().sin(), x * x, use_reentrant=False)
        y = h.exp()

    def f(x):
        with torch.autograd.graph.save_on_cpu():
            h = x.exp()
        return h.sin()

    z = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    (y.sum() + z.sum()).backward()
    assert torch.allclose(x.grad, gradients(torch, lambda x: (x * x).exp().sin().exp() + x.exp().sin(), x)[0])


def test_a_backward_hook_that_runs_backward(torch):
    x = leaf(torch)

    def f(x):
        y = x.sin().cos()
        return y, y.sin()

    y, z = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    total = y.sum()
    z.grad_fn.register_hook(lambda *_: total.backward(retain_graph=True))
    z.sum().backward(retain_graph=True)
    expected = gradients(torch, lambda x: x.sin().cos().sin() + x.sin().cos(), x)[0]
    assert torch.allclose(x.grad, expected)


def test_concurrent_backward_passes():
    torch = retrograd
    x = leaf(torch)
    y = torch.utils.checkpoint.checkpoint(lambda x: (x.sin().exp() * x).cos(), x, use_reentrant=False).sum()
    (expected,) = torch.autograd.grad(y, x, retain_graph=True)
    results, errors = [], []

    def work():
        try:
            for _ in range(20):
                results.append(torch.autograd.grad(y, x, retain_graph=True)[0].tolist())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert all(result == expected.tolist() for result in results)


# -------------------------------------------------------------------------------------------------- random numbers


@pytest.mark.parametrize("reentrant", [True, False])
def test_same_random_numbers_and_the_stream_goes_on(torch, reentrant):
    drawn = []

    def f(x):
        noise = torch.rand(3)
        drawn.append(noise.tolist())
        return (x * noise).exp()

    torch.manual_seed(7)
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=reentrant)
    before = torch.get_rng_state()
    y.sum().backward()
    assert drawn[0] == drawn[1]
    assert torch.equal(before, torch.get_rng_state())


def test_random_state_is_left_alone_on_request(torch):
    drawn = []

    def f(x):
        drawn.append(torch.rand(1).item())
        return x.exp()

    torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, preserve_rng_state=False).sum().backward()
    assert drawn[0] != drawn[1]


# ------------------------------------------------------------------------------------------------ what is not the same


def changing(first, *later):
    """A function that is `first` on its first call, then the others in turn (the last for good)."""
    functions = [first, *later]
    return lambda *args: (functions.pop(0) if len(functions) > 1 else functions[0])(*args)


def test_fewer_tensors(torch):
    f = changing(lambda x: x.sin().exp().sin(), lambda x: x.sin().exp())
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False)
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="A different number of tensors was saved") as info:
        y.sum().backward()
    assert "during forward: 3" in str(info.value) and "during recomputation: 2" in str(info.value)


def test_more_tensors(torch):
    f = changing(lambda x: x.sin().exp(), lambda x: x.sin().exp().sin())
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, early_stop=False)
    with pytest.raises(
        torch.utils.checkpoint.CheckpointError, match="trying to save more tensors during recomputation"
    ):
        y.sum().backward()


def test_other_shapes_and_none_of_it_if_asked(torch):
    x = leaf(torch, 1.0)
    make = lambda: changing(lambda x: x.sin().exp(), lambda x: x.sin() * torch.tensor([1.0, 2.0]))
    y = torch.utils.checkpoint.checkpoint(make(), x, use_reentrant=False)
    with pytest.raises(RuntimeError, match="tensors have different metadata") as info:
        y.sum().backward()
    assert "tensor at position 1" in str(info.value)
    f = changing(lambda x: x.sin().exp(), lambda x: x.double().sin().exp())
    y = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False, determinism_check="none")
    y.sum().backward()
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=False, determinism_check="strict")


def test_errors_name_the_tensor_its_operation_and_its_line():
    torch = retrograd

    def first(x):
        return x.sin().exp()

    def second(x):
        return x.sin() * torch.tensor([1.0, 2.0])

    y = torch.utils.checkpoint.checkpoint(changing(first, second), leaf(torch, 1.0), use_reentrant=False)
    with pytest.raises(RuntimeError) as info:
        y.sum().backward()
    message = str(info.value)
    line = first.__code__.co_firstlineno + 1
    assert f"saved by exp at {__file__}:{line} in first" in message
    assert f"saved by mul at {__file__}:{second.__code__.co_firstlineno + 1} in second" in message
    assert "torch.Size([1])" in message and "torch.Size([2])" in message

    y = torch.utils.checkpoint.checkpoint(changing(first, lambda x: x.sin()), leaf(torch, 1.0), use_reentrant=False)
    with pytest.raises(RuntimeError, match=r"Not recomputed: tensor at position 1, saved by exp at .*in first"):
        y.sum().backward()


@pytest.mark.parametrize("how", ["argument", "setting"])
def test_debug_lists_the_operators(how):
    torch = retrograd  # torch's own log does not get on with pytest's
    cp = torch.utils.checkpoint
    f = changing(lambda x: x.sin().exp(), lambda x: x.sin().cos() * torch.ones(2))
    with cp.set_checkpoint_debug_enabled(True) if how == "setting" else nullcontext():
        y = cp.checkpoint(f, leaf(torch, 1.0), use_reentrant=False, early_stop=False, debug=how == "argument")
    with pytest.raises(cp.CheckpointError, match="You are seeing this error because you passed `debug=True`") as info:
        y.sum().backward()
    message = str(info.value)
    assert "aten.exp.default" in message and "aten.cos.default" in message
    assert "(2 of 2 in original)" in message and "(3 of 3 in recompute)" in message
    assert f"{__file__}:{f.__code__.co_firstlineno}" in message
    assert isinstance(info.value.__cause__, cp.CheckpointError)
    with cp.set_checkpoint_debug_enabled(False):
        y = cp.checkpoint(changing(torch.exp, torch.neg), leaf(torch, 1.0), use_reentrant=False, debug=True)
    with pytest.raises(cp.CheckpointError) as info:
        y.sum().backward()
    assert "You are seeing" not in str(info.value)


def test_debug_excludes_contexts(torch):
    with pytest.raises(ValueError, match="incompatible with non-default context_fn"):
        torch.utils.checkpoint.checkpoint(
            torch.exp, leaf(torch), use_reentrant=False, debug=True, context_fn=lambda: (nullcontext(), nullcontext())
        )


def test_saved_tensors_can_be_read_once(torch):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="already unpacked once"):
                ctx.saved_tensors
            return 2 * x * grad

    x = leaf(torch)
    torch.utils.checkpoint.checkpoint(lambda x: Square.apply(x.exp()), x, use_reentrant=False).sum().backward()
    assert torch.allclose(x.grad, 2 * (2 * x).exp())


def test_inputs_modified_since(torch):
    x = leaf(torch)
    h = x * 1
    y = torch.utils.checkpoint.checkpoint(lambda h: h.sin().exp(), h, use_reentrant=False)
    with torch.no_grad():
        h.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_errors_of_the_function_leave_nothing_behind(torch):
    x = leaf(torch)

    def f(x):
        x.exp()
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    y = torch.utils.checkpoint.checkpoint(changing(lambda x: x.exp(), f), x, use_reentrant=False, early_stop=False)
    with pytest.raises(KeyError, match="mine"):
        y.sum().backward()
    z = x.exp()
    assert z.grad_fn._saved_result.tolist() == z.tolist()


# ------------------------------------------------------------------------------------------------------------- contexts


def test_contexts_of_forward_and_recomputation(torch):
    log = []

    @contextmanager
    def note(name):
        log.append(name)
        yield
        log.append(f"end of {name}")

    y = torch.utils.checkpoint.checkpoint(
        lambda x: x.exp() + 1, leaf(torch), use_reentrant=False, early_stop=False,
        context_fn=lambda: (note("forward"), note("recompute")),
    )  # fmt: skip
    assert log == ["forward", "end of forward"]
    y.sum().backward()
    assert log[2:] == ["recompute", "end of recompute"]


def test_a_context_that_swallows_the_error(torch):
    @contextmanager
    def swallow():
        try:
            yield
        except ValueError:
            pass

    def f(x):
        raise ValueError

    with pytest.raises(RuntimeError, match="suppressed an exception"):
        torch.utils.checkpoint.checkpoint(
            f, leaf(torch), use_reentrant=False, context_fn=lambda: (swallow(), nullcontext())
        )


def counting_mode(torch):
    import importlib

    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    class Mode(dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.names = []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.names.append(func.__name__)
            return func(*args, **(kwargs or {}))

    return Mode()


def test_dispatch_modes_as_contexts(torch):
    forward, recompute = counting_mode(torch), counting_mode(torch)
    y = torch.utils.checkpoint.checkpoint(
        lambda x: x.exp() * 2, leaf(torch), use_reentrant=False, context_fn=lambda: (forward, recompute)
    )
    assert forward.names == ["exp.default", "mul.Tensor"]
    y.sum().backward()
    assert recompute.names == ["exp.default", "detach.default"]


# ------------------------------------------------------------------------------------------------ selective checkpoints


def saving(torch, *ops, **options):
    return functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, list(ops), **options)


def test_saved_results_are_used(torch):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    f = lambda x: (x @ x).tanh().sin()
    mm = torch.ops.aten.mm.default
    expected = gradients(torch, f, x)
    assert_same(gradients(torch, f, x, use_reentrant=False, context_fn=saving(torch, mm)), expected)
    assert_same(
        gradients(torch, f, x, use_reentrant=False, context_fn=saving(torch, mm, torch.ops.aten.tanh.default)), expected
    )


def runs_of(kernels, function):
    """How often each of these kernels runs in a call, whoever calls it: a wrapper, a formula or the compiled core."""
    codes = [kernel.__code__ for kernel in kernels]
    seen = []
    before = sys.getprofile()
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(before)
    return [seen.count(code) for code in codes]


def test_kernels_of_saved_results_do_not_run():
    torch = retrograd
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    f = lambda x: (x @ x).sigmoid().sin()
    checkpoint = functools.partial(torch.utils.checkpoint.checkpoint, f, x, use_reentrant=False)

    def runs(forward):
        kernels = [retrograd.kernels.mm, retrograd.kernels.sigmoid]
        return runs_of(kernels, lambda: torch.autograd.grad(forward().sum(), x))

    assert runs(lambda: f(x)) == [3, 1]  # two products are those of the gradient
    assert runs(checkpoint) == [4, 2]
    assert runs(lambda: checkpoint(context_fn=saving(torch, torch.ops.aten.mm.default))) == [3, 2]


@pytest.mark.parametrize("make", [make for make in FUNCTIONS if make is not in_place])
def test_saving_everything(make):
    torch = retrograd
    everything = functools.partial(
        torch.utils.checkpoint.create_selective_checkpoint_contexts,
        lambda ctx, op, *args, **kwargs: torch.utils.checkpoint.CheckpointPolicy.MUST_SAVE,
    )
    function, x = make(torch), leaf(torch)
    actual = gradients(torch, function, x, use_reentrant=False, context_fn=everything)
    assert_same(actual, gradients(torch, function, x))


def test_policy_sees_operators_arguments_and_results(torch):
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((str(op), len(args), tuple(ctx.op_output.shape), ctx.is_recompute))
        return op == torch.ops.aten.exp.default  # a bool will do

    context_fn = functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, policy)
    y = torch.utils.checkpoint.checkpoint(
        lambda x: (x.exp() * 2).sin(), leaf(torch), use_reentrant=False, context_fn=context_fn
    )
    assert seen == [
        ("aten.exp.default", 1, (3,), False),
        ("aten.mul.Tensor", 2, (3,), False),
        ("aten.sin.default", 1, (3,), False),
    ]
    y.sum().backward()
    assert len(seen) == 3


def test_bad_policies(torch):
    create = torch.utils.checkpoint.create_selective_checkpoint_contexts
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got: 2"):
        create([2])
    with pytest.raises(ValueError, match="update the OpOverloadPacket to a specific OpOverload"):
        create([torch.ops.aten.sin])
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create(2)


def test_operators_themselves_in_the_list():
    torch = retrograd
    f, x = lambda x: x.exp().sin(), leaf(torch)
    assert_same(
        gradients(torch, f, x, use_reentrant=False, context_fn=saving(torch, torch.exp)), gradients(torch, f, x)
    )


def test_saved_results_that_were_modified(torch):
    f = lambda x: x.sin().mul_(2).exp()
    sin = torch.ops.aten.sin.default
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=saving(torch, sin))
    with pytest.raises(RuntimeError, match="has been mutated"):
        y.sum().backward()
    context_fn = saving(torch, sin, allow_cache_entry_mutation=True)
    torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=context_fn).sum().backward()


def test_only_one_backward_pass_through_saved_results(torch):
    f = lambda x: x.sin().cos().exp()
    context_fn = saving(torch, torch.ops.aten.sin.default)
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=context_fn)
    y.sum().backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.sum().backward()


def test_other_operators_in_the_recomputation(torch):
    f = changing(lambda x: x.sin().exp(), lambda x: x.cos().exp())
    context_fn = saving(torch, torch.ops.aten.sin.default)
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=context_fn)
    with pytest.raises(RuntimeError, match=r"cos\.default encountered during backward but not found in storage"):
        y.sum().backward()


def test_saved_results_die_when_they_are_used_and_with_the_graph():
    torch = retrograd
    arrays = []

    def policy(ctx, op, *args, **kwargs):
        return op == torch.ops.aten.exp.default

    def f(x):
        y = x.exp()
        arrays.append(weakref.ref(y._numbers_))
        return y.sin()

    context_fn = functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, policy)
    gc.disable()
    try:
        y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=context_fn)
        assert arrays[0]() is not None
        y.sum().backward(retain_graph=True)
        assert arrays[0]() is None
        y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False, context_fn=context_fn)
        del y
        assert arrays[-1]() is None
    finally:
        gc.enable()


# ---------------------------------------------------------------------------------------------------------- reentrant


def test_warns_without_use_reentrant(torch):
    x = leaf(torch)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        torch.utils.checkpoint.checkpoint(lambda x: x.exp(), x)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        torch.utils.checkpoint.checkpoint_sequential([torch.exp, torch.sin], 2, x)


def test_reentrant_runs_all_of_the_function_again(torch):
    after = counted(lambda x: x + 1)
    f = lambda x: after(x.sin())
    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=True)
    assert y.grad_fn.name() == "CheckpointFunctionBackward"
    y.sum().backward()
    assert after.calls == 2


def test_reentrant_several_outputs_and_other_arguments(torch):
    x, y = leaf(torch), leaf(torch, 1.0, 2.0, 3.0)
    f = lambda x, n, y: (x * y, (x * n).exp())
    a, b = torch.utils.checkpoint.checkpoint(f, x, 3, y, use_reentrant=True)
    (a.sum() + b.sum()).backward()
    assert torch.allclose(x.grad, y + 3 * (3 * x).exp())
    assert torch.allclose(y.grad, x)


def test_reentrant_refuses_what_it_cannot_do(torch):
    x = leaf(torch)
    cp = torch.utils.checkpoint
    y = cp.checkpoint(torch.exp, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        torch.autograd.grad(y, x)
    y = cp.checkpoint(torch.exp, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with \.grad"):
        y.backward(inputs=[x])
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        cp.checkpoint(torch.exp, x, use_reentrant=True, scale=2)
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        cp.checkpoint(torch.exp, x, use_reentrant=True, debug=True)
    y = cp.checkpoint(lambda x: x.detach().exp(), x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        y.sum().backward()
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        cp.checkpoint(torch.exp, x.detach(), use_reentrant=True)


def test_detach_variable(torch):
    x = leaf(torch) * 2
    y, n = torch.utils.checkpoint.detach_variable((x, 3))
    assert y.is_leaf and y.requires_grad and n == 3 and y.data_ptr() == x.data_ptr()
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        torch.utils.checkpoint.detach_variable([x])


# ----------------------------------------------------------------------------------------------------------- sequential


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(torch, segments, reentrant):
    x = leaf(torch)
    steps = [counted(f) for f in (torch.sin, torch.exp, torch.cos, torch.tanh, torch.exp)]
    y = torch.utils.checkpoint.checkpoint_sequential(steps, segments, x, use_reentrant=reentrant)
    y.sum().backward()
    assert torch.allclose(x.grad, gradients(torch, lambda x: x.sin().exp().cos().tanh().exp(), x)[0])
    again = [step.calls - 1 for step in steps]
    assert again == [1 if i < len(steps) // segments * (segments - 1) else 0 for i in range(len(steps))]


def test_sequential_refuses_other_keywords(torch):
    with pytest.raises(ValueError, match="Unexpected keyword arguments: early_stop"):
        torch.utils.checkpoint.checkpoint_sequential([torch.exp], 1, leaf(torch), use_reentrant=False, early_stop=False)


# ------------------------------------------------------------------------------------------------------------ lifetimes


def test_activations_are_not_kept():
    torch = retrograd
    alive = []

    def f(x):
        for _ in range(4):
            x = x.sin()
            alive.append(weakref.ref(x))
        return x * 1

    y = torch.utils.checkpoint.checkpoint(f, leaf(torch), use_reentrant=False)
    assert all(ref() is None for ref in alive)
    y.sum().backward(retain_graph=True)
    assert all(ref() is None for ref in alive)


@pytest.mark.parametrize("reentrant", [True, False])
def test_no_cycles(no_cycles, reentrant):
    torch = retrograd
    with no_cycles():
        x = leaf(torch)
        torch.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).tanh(), x, use_reentrant=reentrant)
        y = torch.utils.checkpoint.checkpoint(lambda x: (x.exp() * x).tanh(), x, use_reentrant=reentrant)
        y.sum().backward()
        del x, y


def test_no_cycles_nested_and_selective(no_cycles):
    torch = retrograd
    c = lambda f: lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    context_fn = saving(torch, torch.exp)
    with no_cycles():
        x = leaf(torch)
        y = c(lambda x: c(lambda x: x.exp().sin())(x).cos())(x)
        y = y + torch.utils.checkpoint.checkpoint(
            lambda x: x.exp().sin(), x, use_reentrant=False, context_fn=context_fn
        )
        z = c(lambda x: x.exp().sin())(x)
        torch.autograd.grad(z.sum(), x, create_graph=True)
        y.sum().backward()
        del x, y, z


# ------------------------------------------------------------------------------------------------- operators as objects


def test_names_of_operators(torch):
    aten = torch.ops.aten
    x = torch.zeros(2)
    with counting_mode(torch) as mode:
        x.exp(), x + 1, x * x, x.mul_(2), torch.pow(x, 2), x.max(0), x.view(-1)
    assert mode.names == [
        "exp.default", "add.Tensor", "mul.Tensor", "mul_.Tensor", "pow.Tensor_Scalar", "max.dim", "view.default",
    ]  # fmt: skip
    assert str(aten.exp.default) == "aten.exp.default"
    assert aten.exp.default.overloadpacket is aten.exp
    assert aten.exp.default is aten.exp.default
    assert aten.exp.default(x).tolist() == [1.0, 1.0]
    with pytest.raises(AttributeError):
        aten.no_such_operator
    with pytest.raises(AttributeError):
        aten.exp.no_such_overload


def test_modes_nest(torch):
    outer, inner = counting_mode(torch), counting_mode(torch)
    with outer, inner:
        torch.ones(2).exp()
    assert "exp.default" in outer.names and "exp.default" in inner.names


def test_handles_are_where_torch_has_them(torch):
    handle = leaf(torch).register_hook(lambda grad: None)
    assert isinstance(handle, torch.utils.hooks.RemovableHandle)
