"""Formulas of operators that programs define: what they are told and what they may return, beside torch."""

from __future__ import annotations

import gc
import warnings

import pytest

import retrograd


@pytest.fixture
def space(torch):
    """A namespace of the test's own."""
    with torch.library._scoped_library(f"formulas_{torch.__name__}", "FRAGMENT") as lib:
        yield lib


def product_of(torch, space):
    def product(x, y, k=2):
        return x * y * k

    product.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor, "k": int, "return": torch.Tensor}
    return torch.library.custom_op(f"{space.ns}::product", product, mutates_args=())


def tripled_of(torch, space):
    def tripled(xs, k):
        return [x * k for x in xs]

    T = torch.Tensor
    tripled.__annotations__ = {"xs": list[T], "k": int, "return": list[T]}
    return torch.library.custom_op(f"{space.ns}::tripled", tripled, mutates_args=())


@pytest.mark.parametrize("with_rule", [False, True])
def test_which_arguments_need_gradients(torch, space, with_rule):
    op, seen = product_of(torch, space), []

    def setup_context(ctx, inputs, output):
        seen.append(ctx.needs_input_grad[:3])
        ctx.save_for_backward(*inputs[:2])

    def backward(ctx, grad):
        seen.append(ctx.needs_input_grad)
        x, y = ctx.saved_tensors
        of_x, of_y, _ = ctx.needs_input_grad
        return grad * y * 3 if of_x else None, grad * x * 3 if of_y else None, None

    op.register_autograd(backward, setup_context=setup_context)
    if with_rule:
        op.register_vmap(lambda info, dims, x, y, k: (x * y * k, 0))
    x, y = torch.tensor([2.0], requires_grad=True), torch.tensor([5.0])
    op(x, y, 3).backward()
    assert x.grad.tolist() == [15.0] and seen == [(True, False, False)] * 2
    op(y, x, 3).backward()
    assert x.grad.tolist() == [30.0] and seen[2:] == [(False, True, False)] * 2


def test_which_elements_of_lists_need_gradients(torch, space):
    op, seen = tripled_of(torch, space), []

    def backward(ctx, grads):
        seen.append(ctx.needs_input_grad)
        return [grad * 3 for grad in grads], None

    op.register_autograd(backward)
    x = torch.ones(2, requires_grad=True)
    op([x, torch.ones(1)], 3)[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and seen == [([True, False], False)]


@pytest.mark.parametrize("gradients", [lambda g: g, lambda g: (g,), lambda g: [g, g], lambda g: (g, None, None, g)])
def test_another_number_of_gradients_is_refused(torch, space, gradients):
    op = product_of(torch, space)
    op.register_autograd(lambda ctx, grad: gradients(grad))
    x = torch.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients|different than None"):
        op(x, x, 3).backward()


def test_arguments_that_are_left_out_need_no_gradient(torch, space):
    op = product_of(torch, space)
    x = torch.ones(1, requires_grad=True)
    for found in (lambda grad: (grad, None), lambda grad: (grad, None, None, None)):
        op.register_autograd(lambda ctx, grad, found=found: found(grad))
        x.grad = None
        op(x, x).backward()
        assert x.grad.tolist() == [1.0]


@pytest.mark.parametrize(
    "found", [lambda grads: (grads[:1], None), lambda grads: (None, None), lambda grads: (*grads, None)]
)
def test_gradients_of_a_list_are_a_list_of_its_length(torch, space, found):
    op = tripled_of(torch, space)
    op.register_autograd(lambda ctx, grads: found(grads))
    xs = [torch.ones(1, requires_grad=True) for _ in range(2)]
    with pytest.raises(RuntimeError, match="of the same structure as the inputs"):
        op(xs, 3)[0].backward()


def test_names_on_ctx_are_the_programs(torch, space):
    op = product_of(torch, space)

    def setup_context(ctx, inputs, output):
        ctx.spec, ctx.count, ctx.op = "mine", "too", inputs[2]

    def backward(ctx, grad):
        assert (ctx.spec, ctx.count) == ("mine", "too")
        return grad * ctx.op, None, None

    op.register_autograd(backward, setup_context=setup_context)
    x = torch.ones(1, requires_grad=True)
    op(x, torch.ones(1)).backward()
    assert x.grad.tolist() == [2.0]


def test_an_empty_list_has_an_empty_list_of_gradients(torch, space):
    def summed(xs, y):
        return sum(xs, y * 1)

    T = torch.Tensor
    summed.__annotations__ = {"xs": list[T], "y": T, "return": T}
    op = torch.library.custom_op(f"{space.ns}::summed", summed, mutates_args=())
    op.register_autograd(lambda ctx, grad: ([grad for _ in ctx.needs_input_grad[0]], grad))
    y = torch.ones(1, requires_grad=True)
    op([], y).backward()
    assert y.grad.tolist() == [1.0]


def test_what_an_operator_writes_is_not_recorded(torch, space):
    def shift(x, y):
        x.add_(y)
        return x * 2

    shift.__annotations__ = {"x": torch.Tensor, "y": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(f"{space.ns}::shift", shift, mutates_args={"x"})
    y = torch.ones(2, requires_grad=True)
    x = torch.zeros(2)
    result = op(x, y)
    assert x.tolist() == [1.0, 1.0] and not x.requires_grad
    assert result.tolist() == [2.0, 2.0] and result.requires_grad
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        result.sum().backward()
    leaf = torch.zeros(2, requires_grad=True)
    op(leaf, y)
    assert leaf.tolist() == [1.0, 1.0] and leaf.is_leaf


def test_what_a_kernel_saves_after_it_wrote_is_as_it_was(torch, space):
    space.define("squared(Tensor(a!) x, Tensor y) -> Tensor")
    space.impl("squared", lambda x, y: x.mul_(2) * y, "CPU")
    x, y = torch.ones(2), torch.ones(2, requires_grad=True)
    result = getattr(torch.ops, space.ns).squared(x, y)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
        result.sum().backward()
    assert y.grad.tolist() == [2.0, 2.0]


def test_an_open_dual_level_changes_nothing(torch, space):
    import importlib

    forward_ad = importlib.import_module(f"{torch.__name__}.autograd.forward_ad")
    space.define("doubled(Tensor x) -> Tensor")
    space.impl("doubled", lambda x: x * 2, "CPU")
    op = getattr(torch.ops, space.ns).doubled
    x = torch.ones(2, requires_grad=True)
    with forward_ad.dual_level(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        op(x).sum().backward()
        assert x.grad.tolist() == [2.0, 2.0]
        assert not op(torch.ones(2)).requires_grad
        dual = forward_ad.make_dual(torch.ones(2), torch.tensor([3.0, 4.0]))
        assert forward_ad.unpack_dual(op(dual)).tangent.tolist() == [6.0, 8.0]


# ------------------------------------------------------------------------------------------------------ registrations


def test_a_library_that_nobody_has_is_no_more(torch):
    name = f"fleeting_{torch.__name__}"
    lib = torch.library.Library(name, "DEF")
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x + 1, "CPU")
    space = getattr(torch.ops, name)
    assert space.f(torch.ones(1)).item() == 2.0
    del lib
    gc.collect()
    with pytest.raises(AttributeError):
        getattr(space, "f")  # noqa: B009
    again = torch.library.Library(name, "DEF")  # the namespace is free
    again.define("f(Tensor x) -> Tensor")
    again._destroy()


def test_of_retrograd_registrations_end_in_any_order() -> None:
    torch = retrograd
    f = torch.library.custom_op("ending::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    one, other = (torch.library.Library("ending", "FRAGMENT") for _ in range(2))
    x = torch.ones(1, requires_grad=True)
    for lib, factor in ((one, 3), (other, 5)):
        torch.library.register_autograd("ending::f", lambda ctx, grad, by=factor: grad * by, lib=lib)
    torch.library.register_fake("ending::f", torch.empty_like)
    one._destroy()
    assert torch.autograd.grad(f(x), x)[0].item() == 5.0
    other._destroy()
    with pytest.raises(RuntimeError, match="no autograd formula"):
        f(x).backward()
    assert f(torch.ones(1, device="meta")).is_meta  # which neither had registered


def test_kernels_without_values(torch, space):
    space.define("f(Tensor x) -> Tensor")
    torch.library.impl(f"{space.ns}::f", "meta", lambda x: x.new_empty(x.shape + (3,)), lib=space)
    assert tuple(getattr(torch.ops, space.ns).f(torch.ones(2, device="meta")).shape) == (2, 3)


def test_what_is_no_kind_of_devices_and_no_key(torch, space):
    space.define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        space.impl("f", lambda x: x, "Foo")
    op = product_of(torch, space)
    with pytest.raises(RuntimeError, match="Expected one of cpu"):
        op.register_kernel("foo")(lambda x, y, k: x)
    with pytest.raises(ValueError, match="got unexpected type for op"):
        torch.library.register_kernel(3, "cpu", lambda x: x)
    with pytest.raises(TypeError):
        space.define("g(Tensor x) -> Tensor", tags=[3])


@pytest.mark.parametrize(
    "schema",
    ["g(Tensor x, float y=inf) -> Tensor", "g(Tensor x, int y=foo) -> Tensor", "g.a.b(Tensor x) -> Tensor",
     "g(Tensor x) -> Tensor, Tensor", "elsewhere::g(Tensor x) -> Tensor"],
)  # fmt: skip
def test_schemas_that_are_none(torch, space, schema):
    with pytest.raises(RuntimeError, match=r"invalid numeric|expected eof|not a schema|provided namespace"):
        space.define(schema)
    assert not hasattr(getattr(torch.ops, space.ns), "g")


def test_no_form_of_several_fits(torch, space):
    space.define("f(Tensor x) -> Tensor")
    space.define("f.by(Tensor x, int k) -> Tensor")
    with pytest.raises(RuntimeError, match="failed to match any schema"):
        getattr(torch.ops, space.ns).f(torch.ones(1), "a")


def test_checks_of_an_operator_without_a_formula(torch, space):
    op = product_of(torch, space)
    op.register_fake(lambda x, y, k=2: torch.empty_like(x))
    x = torch.ones(2, requires_grad=True)
    found = torch.library.opcheck(op, (x, x), test_utils="test_autograd_registration")
    assert found == {"test_autograd_registration": "SUCCESS"}
    for name in ("test_aot_dispatch_dynamic", "test_aot_dispatch_static"):
        with pytest.raises(Exception, match="no autograd formula was registered"):
            torch.library.opcheck(op, (x, x), test_utils=name)


def test_where_a_rule_says_the_examples_are(torch, space):
    op = product_of(torch, space)
    op.register_vmap(lambda info, dims, x, y, k=2: (x * y, 5))
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.vmap(op)(torch.ones(2, 3), torch.ones(2, 3))


def test_lists_of_custom_functions_need_gradients_too(torch):
    import importlib

    autograd, seen = importlib.import_module(f"{torch.__name__}._library.autograd"), []

    @autograd.supports_tensorlist
    class Summed(torch.autograd.Function):
        @staticmethod
        def forward(ctx, xs, k):
            seen.append(ctx.needs_input_grad[:3])
            return sum(xs) * k

        @staticmethod
        def backward(ctx, grad):
            seen.append(ctx.needs_input_grad)
            return [grad if wanted else None for wanted in ctx.needs_input_grad[0]], None

    x = torch.ones(1, requires_grad=True)
    Summed.apply([x, torch.ones(1)], 3).backward()
    assert seen == [(True, False, False), ([True, False], False)] and x.grad.tolist() == [1.0]


def test_tags(torch, space):
    op = torch.library.custom_op(
        f"{space.ns}::f", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor", tags=[torch.Tag.pointwise]
    )
    assert list(op._opoverload.tags) == [torch.Tag.pt2_compliant_tag, torch.Tag.pointwise]


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_batch_without_a_rule_is_run_example_by_example(torch, space):
    def scaled(x, y, k=2):
        assert x.dim() == 1
        return torch.from_numpy(x.detach().numpy() * float(y.detach()) * k)

    T = torch.Tensor
    scaled.__annotations__ = {"x": T, "y": T, "k": int, "return": T}
    op = torch.library.custom_op(f"{space.ns}::scaled", scaled, mutates_args=())
    x, y = torch.arange(6.0).reshape(3, 2), torch.tensor([1.0, 2.0, 3.0])
    expected = [[0.0, 2.0], [8.0, 12.0], [24.0, 30.0]]
    assert torch.vmap(op)(x, y).tolist() == expected
    assert torch.vmap(op, in_dims=(1, 0), out_dims=1)(x.T, y).T.tolist() == expected
    assert torch.vmap(lambda a: op(a, y[1], 3))(x).tolist() == [[0.0, 6.0], [12.0, 18.0], [24.0, 30.0]]
    nested = torch.vmap(lambda a: torch.vmap(op, in_dims=(None, 0))(a, y))(x)
    assert nested[2].tolist() == [[8.0, 10.0], [16.0, 20.0], [24.0, 30.0]]

    op.register_autograd(lambda ctx, grad: (grad * 10, None, None))
    x.requires_grad_()
    torch.vmap(op)(x, y).sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0]] * 3

    space.define("shifted_(Tensor x) -> (Tensor, Tensor)")
    space.impl("shifted_", lambda x: (x + 1, x.sum()), "CPU")
    shifted, summed = torch.vmap(getattr(torch.ops, space.ns).shifted_)(x.detach())
    assert shifted.tolist() == (x.detach() + 1).tolist() and summed.tolist() == [1.0, 5.0, 9.0]


def test_of_retrograd_that_is_said() -> None:
    with retrograd.library._scoped_library("formulas", "FRAGMENT") as lib:
        op = product_of(retrograd, lib)
        with pytest.warns(UserWarning, match="the batching rule for formulas::product: it runs once for each of 2"):
            retrograd.vmap(op)(retrograd.ones(2, 3), retrograd.ones(2, 3))
        with retrograd.func.vmap_fallback("error"), pytest.raises(RuntimeError, match="You hit a vmap fallback"):
            retrograd.vmap(op)(retrograd.ones(2, 3), retrograd.ones(2, 3))


def test_an_operator_that_returns_nothing(torch, space):
    space.define("told(Tensor x) -> None")
    space.impl("told", lambda x: None, "CPU")
    assert getattr(torch.ops, space.ns).told(torch.ones(1)) is None
