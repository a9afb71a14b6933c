"""What operators of programs make of their arguments and results, beside torch where it is installed."""

from __future__ import annotations

import typing

import numpy as np
import pytest


@pytest.fixture
def space(torch):
    with torch.library._scoped_library(f"values_{torch.__name__}", "FRAGMENT") as lib:
        yield lib


def echo(torch, space, schema, key="CPU", result=None):
    """An operator of a schema, and a list of what its kernel is given."""
    seen = []

    def kernel(*args, **kwargs):
        seen.append((args, kwargs))
        return args[0].clone() if result is None else result(*args)

    space.define(f"f{schema}")
    space.impl("f", kernel, key)
    return getattr(torch.ops, space.ns).f, seen


@pytest.mark.parametrize("kind, given, expected", [
    ("int", True, 1), ("int", np.int64(3), 3), ("float", 2, 2.0), ("float", np.float32(2.5), 2.5), ("bool", 1, True),
    ("bool", None, False), ("str", "a", "a"), ("Scalar", 2, 2), ("Scalar", 1j, 1j), ("int[]", (1, 2), [1, 2]),
    ("int[]", range(2), [0, 1]), ("SymInt[]", (1, 2), [1, 2]), ("float[]", [1, 2], [1.0, 2.0]), ("int[2]", 3, [3, 3]),
    ("float[2]", 2.5, [2.5, 2.5]), ("int[]?", None, None), ("int?", 4, 4), ("bool[]", [1, None], [True, False]),
    ("Tensor", None, None), ("Tensor?", None, None), ("Tensor?[]", [None], [None]), ("str[]", ["a"], ["a"]),
])  # fmt: skip
def test_arguments_become_what_the_schema_says(torch, space, kind, given, expected):
    f, seen = echo(torch, space, f"(Tensor x, {kind} v) -> Tensor")
    f(torch.ones(1), given)
    got = seen[0][0][1]
    assert got == expected and type(got) is type(expected)


def test_tensors_and_devices_as_arguments(torch, space):
    f, seen = echo(torch, space, "(Tensor x, Tensor[] ts, int n, float y, Device d) -> Tensor")
    x = torch.ones(1)
    f(x, (x, x), torch.tensor(2), torch.tensor(2.5), "cpu")
    args = seen[0][0]
    assert type(args[1]) is list and args[2:] == (2, 2.5, torch.device("cpu"))
    assert type(args[2]) is int and type(args[3]) is float


@pytest.mark.parametrize("kind, given, shown", [
    ("int", 1.0, "int"), ("int", "a", "int"), ("int", None, "int"), ("float", "a", "float"), ("float", 1j, "float"),
    ("bool", "a", "bool"), ("str", 1, "str"), ("Scalar", "a", "number"), ("int[]", 3, r"List\[int\]"),
    ("int[]", [1.5], r"List\[int\]"), ("Tensor", 3, "Tensor"), ("Tensor[]", [None], r"List\[Tensor\]"),
    ("int[]?", 3, r"Optional\[List\[int\]\]"), ("Device", 1, "Device"), ("str[]", [1], r"List\[str\]"),
])  # fmt: skip
def test_arguments_of_other_types_are_refused(torch, space, kind, given, shown):
    f, seen = echo(torch, space, f"(Tensor x, {kind} v) -> Tensor")
    with pytest.raises(RuntimeError, match=f"Expected a value of type '{shown}' for argument 'v' but instead found"):
        f(torch.ones(1), given)
    assert not seen


def test_calls_that_do_not_fit(torch, space):
    f, _ = echo(torch, space, "(Tensor x, int n, *, float y=1) -> Tensor")
    x = torch.ones(1)
    for args, kwargs, message in (
        ((x,), {}, "is missing value for argument 'n'"),
        ((x, 1, 2.0), {}, r"takes 2 positional argument\(s\) but 3 was/were given"),
        ((x, 1), {"z": 1}, "Unknown keyword argument 'z'"),
    ):
        with pytest.raises(RuntimeError, match=message):
            f(*args, **kwargs)
    assert "float y=1." in str(f.default._schema)


def test_kernels_have_their_own_defaults(torch, space):
    f, seen = echo(torch, space, "(Tensor x, int n=3, float y=1, *, bool b=False) -> Tensor")
    x = torch.ones(1)
    f(x)
    f(x, 3, True)
    f(x, 4, b=True)
    assert [(args[1:], kwargs) for args, kwargs in seen] == [((), {}), ((), {}), ((4,), {"b": True})]


@pytest.mark.parametrize("schema, result, expected", [
    ("(Tensor x) -> (Tensor, int)", lambda x: [x, 3], tuple), ("(Tensor x) -> Tensor[]", lambda x: (x, x), list),
])  # fmt: skip
def test_results_become_what_the_schema_says(torch, space, schema, result, expected):
    f, _ = echo(torch, space, schema, result=lambda x: result(x.clone()))
    assert type(f(torch.ones(1))) is expected


@pytest.mark.parametrize("schema, result, error", [
    ("(Tensor x) -> Tensor", 3, RuntimeError), ("(Tensor x) -> int", "a", RuntimeError),
    ("(Tensor x) -> ()", 3, RuntimeError),
    ("(Tensor x) -> (Tensor, Tensor)", 3, TypeError),
])  # fmt: skip
def test_results_of_other_types_are_refused(torch, space, schema, result, error):
    f, _ = echo(torch, space, schema, result=lambda x: result)
    with pytest.raises(error):
        f(torch.ones(1))


def test_tuples_of_one_result(torch, space):
    def f(x):
        return (x.clone(),)

    f.__annotations__ = {"x": torch.Tensor, "return": tuple[torch.Tensor]}
    op = torch.library.custom_op(f"{space.ns}::one", f, mutates_args=())
    assert str(op._opoverload._schema).endswith("-> ((Tensor))")
    x = torch.ones(1, requires_grad=True)
    op.register_autograd(lambda ctx, grad: grad * 3)
    (y,) = op(x)
    y.backward()
    assert x.grad.tolist() == [3.0]


def test_where_there_is_no_kernel(torch, space):
    f, _ = echo(torch, space, "(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match="no fake impl or Meta kernel registered"):
        f(torch.ones(1, device="meta"))
    space.define("g(int n) -> Tensor")
    space.impl("g", lambda n: torch.ones(n), "CPU")
    with pytest.raises(NotImplementedError, match="no tensor arguments"):
        getattr(torch.ops, space.ns).g(3)
    space.define("h(Tensor x) -> Tensor")
    space.impl("h", lambda x: x * 2, "CompositeExplicitAutograd")
    assert getattr(torch.ops, space.ns).h(torch.ones(2, device="meta")).shape == (2,)

    def k(x):
        return x * 2

    k.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
    op = torch.library.custom_op(f"{space.ns}::k", k, mutates_args=())
    with pytest.raises(RuntimeError, match="There was no fake impl registered for <CustomOpDef"):
        op(torch.ones(1, device="meta"))


def test_fake_kernels_may_be_registered_once(torch, space):
    name, fake = f"{space.ns}::a", torch.library.register_fake
    op = lambda: getattr(torch.ops, space.ns).a(torch.ones(2, device="meta")).shape
    space.define("a(Tensor x) -> Tensor")
    fake(name, lambda x: x * 1, lib=space)
    with pytest.raises(RuntimeError, match=r"already has a fake impl.*test_schema_values\.py:\d+"):
        fake(name, lambda x: x * 1, lib=space, allow_override=False)
    fake(name, lambda x: x[1:], lib=space)
    assert op() == (1,)
    space.define("b(Tensor x) -> Tensor")
    space.impl("b", lambda x: x * 1, "Meta")
    with pytest.raises(RuntimeError, match=r"already has .*Meta implementation"):
        fake(f"{space.ns}::b", lambda x: x * 1, lib=space, allow_override=False)
    space.define("c(Tensor x) -> Tensor")
    space.impl("c", lambda x: x * 1, "CompositeImplicitAutograd")
    for register in (lambda: fake(f"{space.ns}::c", lambda x: x * 1, lib=space),
                     lambda: space.impl("c", lambda x: x * 1, "Meta")):  # fmt: skip
        with pytest.raises(RuntimeError, match="CompositeImplicitAutograd"):
            register()


def test_sizes_that_depend_on_values(torch, space):
    space.define("a(Tensor x) -> Tensor")
    torch.library.register_fake(f"{space.ns}::a", lambda x: torch.library.get_ctx().new_dynamic_size(), lib=space)
    with pytest.raises(RuntimeError, match="data-dependent shape"):
        getattr(torch.ops, space.ns).a(torch.ones(2, device="meta"))
    assert torch.library.get_ctx() is None


def test_autograd_kernels_call_the_operator_below_them(torch, space):
    space.define("f(Tensor x) -> Tensor")
    space.impl("f", lambda x: x.sin(), "CPU")
    op = getattr(torch.ops, space.ns).f.default

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            with torch._C._AutoDispatchBelowAutograd():
                return op(x)

        @staticmethod
        def backward(ctx, grad):
            return grad * ctx.saved_tensors[0].cos() * 7

    space.impl("f", F.apply, "Autograd")
    x = torch.tensor(0.0, requires_grad=True)
    op(x).backward()
    assert x.grad.item() == 7.0
    with torch._C._AutoDispatchBelowAutograd():
        assert not (x * 2).requires_grad


def test_types_of_parameters(torch):
    infer = torch.library.infer_schema
    T = torch.Tensor

    def f(x, y):
        return x

    def of(kind, result=T):
        f.__annotations__ = {"x": T, "y": kind, "return": result}
        return infer(f, mutates_args=())

    for kind, shown in ((torch.types.Number, "Scalar"), (typing.Sequence[typing.Optional[T]], "Tensor?[]"),  # noqa: UP045
                        (typing.Optional[typing.List[int]], "SymInt[]?"), ("list[int]", "SymInt[]"),  # noqa: UP006, UP045
                        ("typing.Optional[int]", "SymInt?")):  # fmt: skip
        assert of(kind) == f"(Tensor x, {shown} y) -> Tensor"
    for kind in (list[typing.Optional[int]], typing.Callable, list[str], typing.Optional[list[T]], set):  # noqa: UP045
        with pytest.raises(ValueError, match="unsupported type"):
            of(kind)
    with pytest.raises(ValueError, match=r"unsupported type .*For example, list\[int\]"):
        of(tuple[int, int])
    with pytest.raises(ValueError, match=r"Unsupported type annotation list\[Absent\]\. It is not a type\."):
        of("list[Absent]")
    for result in (tuple[T, ...], str, typing.Optional[T]):  # noqa: UP045
        with pytest.raises(ValueError, match="Return has unsupported type"):
            of(int, result)


def test_opcheck_of_operators_of_torch(torch):
    x = torch.ones(3, requires_grad=True)
    assert set(torch.library.opcheck(torch.ops.aten.sin.default, (x,)).values()) == {"SUCCESS"}
    with pytest.raises(ValueError, match="OpOverload"):
        torch.library.opcheck(torch.sin, (x,))
    assert torch.Tag.pt2_compliant_tag in torch.ops.aten.sin.default.tags


def test_libraries_of_compiled_operators(torch):
    with pytest.raises(OSError, match=r"Could not load this library: .*absent\.so"):
        torch.ops.load_library("absent.so")


def test_questions_about_schemas(torch):
    utils = __import__(f"{torch.__name__}._library.utils", fromlist=["utils"])
    for text, expected in (("f(Tensor x) -> Tensor", True), ("f(Tensor(a) x) -> Tensor", True),
                           ("f(Tensor(a!) x) -> Tensor", False), ("f(Tensor(a) x) -> Tensor(a)", False),
                           ("f(Tensor x) -> ()", False)):  # fmt: skip
        assert utils.is_functional_schema(text) is expected
    assert utils.lookup_op("aten::sum.dim_IntList") == torch.ops.aten.sum.dim_IntList
    kinds = [a.type for a in torch._C.parse_schema("f(Tensor[]? a, Tensor?[] b, Tensor c, int[] d) -> ()").arguments]
    assert [utils.is_tensorlist_like_type(kind) for kind in kinds] == [True, True, False, False]
    x = torch.ones(2)
    assert torch._C._any_requires_grad([x, x.clone().requires_grad_()]) and not torch._C._any_requires_grad(x, a=x)
    assert torch._C._any_output_is_alias_to_input_or_output((x,), None, (x[1:],))
    assert not torch._C._any_output_is_alias_to_input_or_output((x,), {}, (x * 2,))


def test_functions_of_lists_of_tensors(torch):
    autograd = __import__(f"{torch.__name__}._library.autograd", fromlist=["autograd"])

    @autograd.supports_tensorlist
    class Shifted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, xs, by):
            return [x + by for x in xs]

        @staticmethod
        def backward(ctx, grads):
            assert ctx.needs_input_grad == ([True, False], False)
            return [grad * 2 for grad in grads], None

    xs = [torch.ones(1, requires_grad=True), torch.ones(1)]
    ys = Shifted.apply(xs, 3)
    assert [y.item() for y in ys] == [4.0, 4.0]
    sum(ys).backward()
    assert xs[0].grad.item() == 2.0
    with pytest.raises(NotImplementedError, match=r"Function\.forward directly"):
        Shifted.forward(None, xs, 3)
