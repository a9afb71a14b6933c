"""Operators that programs define, beside torch where it is installed."""

from __future__ import annotations

import pytest

import retrograd


@pytest.fixture
def space(torch):
    """A namespace of the test's own."""
    with torch.library._scoped_library(f"ours_{torch.__name__}", "FRAGMENT") as lib:
        yield lib


def scaled_of(torch, space):
    def scaled(x, by=2.0, *, times=1):
        return x * by * times

    scaled.__annotations__ = {"x": torch.Tensor, "by": float, "times": int, "return": torch.Tensor}
    return torch.library.custom_op(f"{space.ns}::scaled", scaled, mutates_args=())


def test_schemas(torch, space):
    def f(xs, n=3, *, flag=False, names=None):
        return xs[0], xs[1]

    T = torch.Tensor
    f.__annotations__ = {"xs": list[T], "n": int, "flag": bool, "names": list[int] | None, "return": tuple[T, T]}
    text = "(Tensor[] xs, SymInt n=3, *, bool flag=False, SymInt[]? names=None) -> (Tensor, Tensor)"
    assert torch.library.infer_schema(f, mutates_args=()) == text
    op = torch.library.custom_op(f"{space.ns}::f", f, mutates_args=())
    assert str(op._opoverload._schema) == f"{space.ns}::f{text}"
    assert str(getattr(torch.ops, space.ns).f.default) == f"{space.ns}.f.default"
    assert getattr(torch.ops, space.ns).f.overloads() == ["default"]
    for wrong in (lambda x: x, lambda *xs: xs):
        with pytest.raises(ValueError, match="infer_schema"):
            torch.library.infer_schema(wrong, mutates_args=())


def test_autograd_and_vmap(torch, space):
    op = scaled_of(torch, space)
    x = torch.arange(3.0, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        op(x).sum().backward()

    def setup_context(ctx, inputs, keyword_only_inputs, output):
        ctx.factor = inputs[1] * keyword_only_inputs["times"]

    op.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=setup_context)
    y = getattr(torch.ops, space.ns).scaled(x, 3.0, times=2)
    y.sum().backward()
    assert y.tolist() == [0.0, 6.0, 12.0] and x.grad.tolist() == [6.0, 6.0, 6.0]
    op.register_vmap(lambda info, in_dims, x, by=2.0, *, times=1: (x * by * times, in_dims[0]))
    assert torch.vmap(op, in_dims=1)(torch.ones(3, 2)).tolist() == [[2.0, 2.0, 2.0]] * 2


def test_lists_of_tensors_have_gradients(torch, space):
    def joined(xs):
        return torch.cat(xs)

    joined.__annotations__ = {"xs": list[torch.Tensor], "return": torch.Tensor}
    op = torch.library.custom_op(f"{space.ns}::joined", joined, mutates_args=())

    def setup_context(ctx, inputs, output):
        ctx.sizes = [len(x) for x in inputs[0]]

    op.register_autograd(lambda ctx, grad: (list(grad.split(ctx.sizes)),), setup_context=setup_context)
    a, b = torch.ones(2, requires_grad=True), torch.ones(1, requires_grad=True)
    (op([a, b]) * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert a.grad.tolist() == [1.0, 2.0] and b.grad.tolist() == [3.0]


def test_by_schema(torch, space):
    assert space.define("twice(Tensor x, int n=2) -> Tensor") == "twice"
    space.impl("twice", lambda x, n=2: x * n, "CPU")
    op = getattr(torch.ops, space.ns).twice
    assert op(torch.ones(2)).tolist() == [2.0, 2.0] and op.default(torch.ones(2), 3).tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="already a kernel"):
        space.impl("twice", lambda x, n=2: x, "CPU", allow_override=False)
    with torch.library._scoped_library(space.ns, "FRAGMENT") as other:
        other.impl("twice", lambda x, n=2: x * 5, "CPU")
        assert op(torch.ones(2)).tolist() == [5.0, 5.0]
    assert op(torch.ones(2)).tolist() == [2.0, 2.0]
    space.define("whole(Tensor x) -> Tensor")
    torch.library.impl(space, "whole", "CompositeImplicitAutograd")(lambda x: x.exp() * 2)
    x = torch.zeros(2, requires_grad=True)
    getattr(torch.ops, space.ns).whole(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    space.define("missing(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="missing"):
        getattr(torch.ops, space.ns).missing(torch.ones(2))
    with pytest.raises((RuntimeError, TypeError)):
        op()
    for wrong, kind in (("aten", "DEF"), ("prim", "DEF"), (space.ns, "NOTHING")):
        with pytest.raises((ValueError, RuntimeError)):
            torch.library.Library(wrong, kind)


def test_writing_to_arguments(torch, space):
    def fill(x, value):
        x.fill_(value)

    fill.__annotations__ = {"x": torch.Tensor, "value": float, "return": None}
    op = torch.library.custom_op(f"{space.ns}::fill", fill, mutates_args={"x"})
    x = torch.zeros(2)
    assert op(x, 4.0) is None and x.tolist() == [4.0, 4.0] and x._version > 0
    with pytest.raises(RuntimeError, match="register autograd formula"):
        op.register_autograd(lambda ctx, grad: grad)


def test_modes_and_classes_see_them(torch, space):
    import importlib

    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    op = scaled_of(torch, space)
    op.register_autograd(lambda ctx, grad: (grad, None))
    seen = []

    class Log(dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append((str(func), len(args), kwargs))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Log():
        y = op(x, times=3)
    assert seen[0] == (f"{space.ns}.scaled.default", 1, {"times": 3}) and y.grad_fn is not None


def test_opcheck(torch, space):
    op = scaled_of(torch, space)
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(Exception, match=r"fake|autograd"):
        torch.library.opcheck(op, (x,))
    op.register_fake(lambda x, by=2.0, *, times=1: torch.empty_like(x))
    op.register_autograd(
        lambda ctx, grad: (grad * ctx.by, None),
        setup_context=lambda ctx, inputs, keyword_only_inputs, output: setattr(ctx, "by", inputs[1]),
    )
    assert set(torch.library.opcheck(op, (x, 2.0)).values()) == {"SUCCESS"}

    def same(x):
        return x

    same.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    aliasing = torch.library.custom_op(f"{space.ns}::same", same, mutates_args=())
    with pytest.raises(Exception, match="alias"):
        torch.library.opcheck(aliasing, (torch.ones(2),), test_utils="test_schema")

    def sneaky(x):
        x.add_(1)
        return x * 1

    sneaky.__annotations__ = same.__annotations__
    writes = torch.library.custom_op(f"{space.ns}::sneaky", sneaky, mutates_args=())
    with pytest.raises(Exception, match="mutated"):
        torch.library.opcheck(writes, (torch.ones(2),), test_utils="test_schema")


def test_what_is_refused_says_why():
    lib = retrograd.library.Library("aten", "IMPL")
    with pytest.raises(RuntimeError, match="TorchDispatchMode"):
        lib.impl("add.Tensor", lambda *args: None, "CPU")
    with pytest.raises(RuntimeError, match="does not exist"):
        retrograd.library.register_fake("nowhere::nothing", lambda: None)
    with pytest.raises(ValueError, match="taken"):
        retrograd.library.define("registry::f", "(Tensor x) -> Tensor")


def test_saved_by_a_checkpoint(torch, space):
    import functools

    count = []

    def sine(x):
        count.append(1)
        return x.sin()

    sine.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(f"{space.ns}::sine", sine, mutates_args=())
    op.register_autograd(
        lambda ctx, grad: grad * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )
    keep = functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, [op._opoverload])
    x = torch.ones(2, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda x: op(x).exp(), x, use_reentrant=False, context_fn=keep)
    y.sum().backward()
    assert len(count) == 1
    assert torch.allclose(x.grad, torch.exp(torch.sin(torch.ones(2))) * torch.cos(torch.ones(2)))


def test_tags(torch, space):
    assert torch.Tag is torch._C.Tag
    space.define("tagged(Tensor x) -> Tensor", tags=[torch.Tag.pointwise, torch.Tag.core])
    found = getattr(torch.ops, space.ns).tagged.default.tags
    assert {torch.Tag.pointwise, torch.Tag.core} <= set(found)


@pytest.mark.parity
def test_the_tags_are_torchs():
    torch = pytest.importorskip("torch")

    assert {name: int(tag) for name, tag in torch.Tag.__members__.items()} == {
        name: tag.value for name, tag in retrograd.Tag.__members__.items()
    }


def written(torch, space, mutates, **options):
    def half(x):
        x.numpy()[...] /= 2

    half.__annotations__ = {"x": torch.Tensor, "return": None}
    return torch.library.custom_op(f"{space.ns}::half", half, mutates_args=mutates, **options)


@pytest.mark.parametrize("mutates", [{"x"}, "unknown"])
def test_what_is_written_to_has_another_version(torch, space, mutates):
    op = written(torch, space, mutates)
    x = torch.ones(3)
    before = x._version
    op(x)
    assert x.tolist() == [0.5] * 3 and x._version > before


def test_what_may_not_be_said(torch, space):
    with pytest.raises(ValueError, match="in mutates_args were not found"):
        written(torch, space, {"y"})
    with pytest.raises(ValueError, match="string"):
        written(torch, space, "x")
    with pytest.raises(ValueError, match=r"the op mutates \{'x'\}"):
        torch.library.custom_op(f"{space.ns}::f", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    with pytest.raises(NotImplementedError, match="kwarg-only Tensor args"):
        torch.library.custom_op(f"{space.ns}::f", lambda x: x, mutates_args=(), schema="(*, Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="Functions without tensor inputs"):
        torch.library.custom_op(
            f"{space.ns}::f", lambda: 0, mutates_args=(), schema="() -> Tensor", device_types="cpu"
        )
    for schema, phrase in (
        ("f(Tensor a) -> nothing", "unknown type specifier"), ("f(what a) -> Tensor", "unknown type specifier"),
        ("f(int64_t a) -> Tensor", "Use `SymInt` or `int`"), ("f(double a) -> Tensor", "Use `float`"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=phrase):
            space.define(schema)
    with pytest.raises(ValueError, match="expected schema to look like"):
        torch.library.define(f"{space.ns}::f", "f(Tensor x) -> Tensor")
    with pytest.raises(ValueError, match="namespace"):
        torch.library.define("f", "(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda"):
        torch.library.impl(f"{space.ns}::f", "something")
    if torch is retrograd:  # what is refused defines nothing; torch's kernel-only checks come after the definition
        assert not hasattr(getattr(torch.ops, space.ns), "f")


def test_results_are_not_arguments(torch, space):
    for returned in (lambda x: x, lambda x: x.view(-1), lambda x: x[1:]):
        op = torch.library.custom_op(f"{space.ns}::same", returned, mutates_args=(), schema="(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="may not alias"):
            op(torch.ones(2, 2))
    twice = torch.library.custom_op(
        f"{space.ns}::same", lambda x: (y := x + 1, y), mutates_args=(), schema="(Tensor x) -> (Tensor, Tensor)"
    )
    with pytest.raises(RuntimeError, match="may not alias"):
        twice(torch.ones(2))


def test_nothing_is_set_up_where_nothing_is_recorded(torch, space):
    op, calls = scaled_of(torch, space), []
    op.register_autograd(
        lambda ctx, grad: (grad, None),
        setup_context=lambda ctx, inputs, keyword_only_inputs, output: calls.append(1),
    )
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        assert not op(x).requires_grad
    op(torch.ones(2))
    assert not calls
    assert op(x).requires_grad and calls == [1]


def test_kernels_that_are_off_for_a_while(torch, space):
    op = torch.library.custom_op(f"{space.ns}::f", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
    op.register_kernel("cpu")(lambda x: x + 2)
    one = torch.zeros(1)
    assert op(one).item() == 2
    with op.set_kernel_enabled("cpu", enabled=False):
        assert op(one).item() == 1
        with op.set_kernel_enabled("cpu", enabled=True):
            assert op(one).item() == 2
        assert op(one).item() == 1
    assert op(one).item() == 2


def test_forms_defaults_and_devices(torch, space):
    T = torch.Tensor

    def one(x, kind=torch.float64):
        return x.to(kind)

    one.__annotations__ = {"x": T, "kind": torch.dtype, "return": T}
    cast = torch.library.custom_op(f"{space.ns}::cast", one, mutates_args=())
    assert cast(torch.ones(1)).dtype == torch.float64
    torch.library.custom_op(f"{space.ns}::f", lambda x: x + 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    torch.library.custom_op(
        f"{space.ns}::f.two", lambda x, y: x + y, mutates_args=(), schema="(Tensor x, Tensor y) -> Tensor"
    )
    f = getattr(torch.ops, space.ns).f
    assert f(torch.ones(1)).item() == 3 and f(torch.ones(1), torch.ones(1)).item() == 2
    assert set(f.overloads()) == {"default", "two"}

    def make(device):
        return torch.ones(3)

    make.__annotations__ = {"device": torch.device, "return": T}
    made = torch.library.custom_op(f"{space.ns}::make", make, mutates_args=(), device_types="cpu")
    assert made(device="cpu").tolist() == [1, 1, 1]
    with pytest.raises(RuntimeError, match="does not have a kernel registered for cuda"):
        made("cuda")


def test_define_with_a_library_is_a_decorator(torch, space):
    @torch.library.define(space, "old(Tensor x) -> Tensor")
    def old(x):
        return x * 3

    op = getattr(torch.ops, space.ns).old
    assert op(torch.ones(1)).item() == 3 and op.default._defined_in_python
    assert not torch.ops.aten.sin.default._defined_in_python
