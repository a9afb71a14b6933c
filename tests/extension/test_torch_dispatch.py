"""Classes and modes with ``__torch_dispatch__``, below autograd, beside torch where it is installed."""

from __future__ import annotations

import copy
import importlib
import pickle
import weakref

import pytest

import retrograd


def tools(torch):
    return importlib.import_module(f"{torch.__name__}.utils._python_dispatch")


def pytree(torch):
    return importlib.import_module(f"{torch.__name__}.utils._pytree")


def wrapper(torch, log=None):
    """A class of tensors that hold another one, and compute with it."""
    tree = pytree(torch)

    class Wrapper(torch.Tensor):
        @staticmethod
        def __new__(cls, elem, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(
                cls, elem.shape, strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
                device=elem.device, requires_grad=requires_grad,
            )  # fmt: skip
            made.elem = elem
            return made

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if log is not None:
                log.append(str(func))
            args, kwargs = tree.tree_map_only(cls, lambda t: t.elem, (args, kwargs or {}))
            return tree.tree_map_only(torch.Tensor, cls, func(*args, **kwargs))

        def __repr__(self):
            return f"Wrapper({self.elem})"

    return Wrapper


def test_gradients_through_a_wrapper(torch):
    log: list = []
    cls = wrapper(torch, log)
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    x = cls(torch.tensor([1.0, 2.0]), requires_grad=True)
    f = lambda x: (x.exp() * x).sum()
    f(plain).backward()
    y = f(x)
    assert type(y) is cls and y.requires_grad and not y.elem.requires_grad
    log = [name for name in log if "detach" not in name]  # which torch calls where it saves a result
    assert log == ["aten.exp.default", "aten.mul.Tensor", "aten.sum.default"]
    y.backward()
    assert type(x.grad) is cls and torch.allclose(x.grad.elem, plain.grad)
    (first,) = torch.autograd.grad(f(x), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    (expected,) = torch.autograd.grad(torch.autograd.grad(f(plain), plain, create_graph=True)[0].sum(), plain)
    assert torch.allclose(second.elem, expected)


@pytest.mark.parametrize("name", ["linear", "layer_norm", "cross_entropy", "batch_norm", "conv2d", "attention"])
def test_layers_of_networks_on_wrappers(torch, name):
    F = torch.nn.functional
    torch.manual_seed(0)
    f, shapes = {
        "linear": (F.linear, [(2, 3), (4, 3), (4,)]),
        "layer_norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)]),
        "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([0, 2])), [(2, 3)]),
        "batch_norm": (lambda x, w: F.batch_norm(x, None, None, w, training=True), [(4, 3), (3,)]),
        "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), [(1, 2, 4, 4), (3, 2, 3, 3)]),
        "attention": (lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True), [(1, 2, 3, 4)] * 2),
    }[name]
    values = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    plain = [value.clone().requires_grad_() for value in values]
    wrapped = [wrapper_of(torch)(value.clone(), requires_grad=True) for value in values]
    expected, result = f(*plain), f(*wrapped)
    assert torch.allclose(result.elem, expected.detach())
    (expected * torch.arange(expected.numel(), dtype=torch.float64).reshape(expected.shape)).sum().backward()
    (result * torch.arange(expected.numel(), dtype=torch.float64).reshape(expected.shape)).sum().backward()
    for one, other in zip(wrapped, plain, strict=True):
        assert torch.allclose(one.grad.elem, other.grad)


_CLASSES: dict = {}


def wrapper_of(torch):
    if torch.__name__ not in _CLASSES:
        _CLASSES[torch.__name__] = wrapper(torch)
    return _CLASSES[torch.__name__]


def test_in_place_and_views(torch):
    cls = wrapper(torch)
    x = cls(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
    y = x * 1
    version = y._version
    y.mul_(3)
    assert y._version == version + 1
    y.t().sum().backward()
    assert x.grad.elem.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    leaf = cls(torch.ones(2), requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        leaf.add_(1)
    view = y.detach()[0]
    assert type(view) is cls and view.stride() == y[0].stride()


def test_arguments_are_as_torch_has_them(torch):
    calls = []

    class Log(tools(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append((str(func), len(args), sorted(kwargs or {})))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, 3)
    with Log():
        torch.add(x, x)
        torch.add(x, x, alpha=2)
        x * 2
        x**2
        x > 1
        x.sum(1)
        torch.cumsum(x, 0, dtype=torch.float64)
        x.to(torch.float64)
        x.clone()
        torch.zeros(2, 3)
        torch.full((2,), 3.0)
        x[0]
        x.transpose(0, 1)
    assert calls == [
        ("aten.add.Tensor", 2, []), ("aten.add.Tensor", 2, ["alpha"]), ("aten.mul.Tensor", 2, []),
        ("aten.pow.Tensor_Scalar", 2, []), ("aten.gt.Scalar", 2, []), ("aten.sum.dim_IntList", 2, []),
        ("aten.cumsum.default", 2, ["dtype"]), ("aten._to_copy.default", 1, ["dtype"]), ("aten.clone.default", 1, []),
        ("aten.zeros.default", 1, ["device", "pin_memory"]), ("aten.full.default", 2, ["device", "pin_memory"]),
        ("aten.select.int", 3, []), ("aten.transpose.int", 3, []),
    ]  # fmt: skip


def test_modes_see_backward_passes_and_stand_below_autograd(torch):
    seen, recorded = [], []

    class Log(tools(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            seen.append(str(func))
            recorded.append(getattr(result, "grad_fn", None))
            return result

    x = torch.ones(2, requires_grad=True)
    with Log():
        y = (x * 2).sum()
        y.backward()
    assert seen[:3] == ["aten.mul.Tensor", "aten.sum.default", "aten.ones_like.default"]
    assert seen.count("aten.mul.Tensor") == 2 and y.grad_fn is not None
    assert recorded == [None] * len(seen)


def test_a_mode_answers_for_operators(torch):
    class Seven(tools(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            return torch.full_like(result, 7.0) if "exp" in str(func) else result

    x = torch.zeros(2, requires_grad=True)
    with Seven():
        y = x.exp()
    y.sum().backward()
    assert y.tolist() == [7.0, 7.0] and x.grad.tolist() == [7.0, 7.0]  # the gradient of exp is its result


def test_modes_nest(torch):
    dispatch = tools(torch)
    order = []

    class Named(dispatch.TorchDispatchMode):
        def __init__(self, name):
            super().__init__()
            self.name = name

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            order.append(self.name)
            return func(*args, **(kwargs or {}))

    with Named("outer") as outer, Named("inner") as inner:
        assert dispatch._get_current_dispatch_mode_stack() == [outer, inner]
        torch.ones(2)
        torch.ones(2).exp()
        with dispatch._disable_current_modes():
            torch.ones(2) + 1
    assert order == ["inner", "outer"] * 3
    assert not dispatch.is_in_torch_dispatch_mode()

    class Wrong(dispatch.TorchDispatchMode):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    with pytest.raises(RuntimeError, match="make it a plain method"), Wrong():
        torch.ones(2) + 1


def test_a_polite_mode_lets_the_class_answer(torch):
    cls = wrapper(torch)
    types_seen = []

    class Polite(tools(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            types_seen.append([t.__name__ for t in types])
            return NotImplemented if cls in types else func(*args, **(kwargs or {}))

    x = cls(torch.ones(2))
    with Polite():
        y = x.abs()
    assert type(y) is cls and types_seen == [["Wrapper"], []]


def test_memory_that_a_class_looks_after(torch):
    called = []

    class Own(torch.Tensor):
        @staticmethod
        def __new__(cls, data):
            return torch.Tensor._make_subclass(cls, data)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            called.append(str(func))
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Own(torch.tensor([1.0, 2.0]))
    assert (x + x).tolist() == [2.0, 4.0] and called == ["aten.add.Tensor"]

    class Stubborn(Own):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        Stubborn(torch.ones(2)).exp()

    class Silly(Own):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return "arf"

    with pytest.raises(RuntimeError, match="Unable to cast"):
        Silly(torch.ones(2)).exp()
    with pytest.raises(TypeError, match="must define __torch_dispatch__"):
        torch.Tensor._make_wrapper_subclass(type("None_", (torch.Tensor,), {}), (2,))


def test_saved_copied_and_pickled(torch, tmp_path):
    cls = wrapper_of(torch)
    cls.__module__, cls.__qualname__ = __name__, f"_found_{torch.__name__}"
    globals()[cls.__qualname__] = cls
    x = cls(torch.arange(3), requires_grad=False)
    for y in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert type(y) is cls and y.elem.tolist() == [0, 1, 2] and y.dtype == torch.int64
    torch.save(x, tmp_path / "x.pt")
    with torch.serialization.safe_globals([cls]):
        y = torch.load(tmp_path / "x.pt")
    assert type(y) is cls and y.elem.tolist() == [0, 1, 2]


def test_taken_apart_and_put_together(torch):
    dispatch = tools(torch)

    class Pair(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b):
            return torch.Tensor._make_wrapper_subclass(cls, a.shape, strides=a.stride(), dtype=a.dtype)

        def __init__(self, a, b):
            self.a, self.b = a, b

        def __tensor_flatten__(self):
            return ["a", "b"], None

        @staticmethod
        def __tensor_unflatten__(inner, meta, outer_size, outer_stride):
            return Pair(inner["a"], inner["b"])

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            halves = [
                func(*pytree(torch).tree_map_only(cls, lambda t, n=name: getattr(t, n), args), **(kwargs or {}))
                for name in "ab"
            ]
            return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, cls(*halves))

    x = Pair(torch.ones(2, 2), torch.zeros(2, 2))
    assert dispatch.is_traceable_wrapper_subclass(x) and not dispatch.is_traceable_wrapper_subclass(x.a)
    view = x.view(4)
    assert view.untyped_storage()._cdata == x.untyped_storage()._cdata
    assert (x * 2).untyped_storage()._cdata != x.untyped_storage()._cdata
    assert x.add_(1) is x and x.a.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    again = dispatch.transform_subclass(x, lambda name, t: t * 2)
    assert type(again) is Pair and again.b.tolist() == [[2.0, 2.0], [2.0, 2.0]]


def test_nothing_is_kept(no_cycles):
    """A wrapper and its graph go when the last name goes, without the garbage collector."""
    cls = wrapper(retrograd)
    with no_cycles():
        x = cls(retrograd.ones(2), requires_grad=True)
        y = (x.exp() * x).sum()
        y.backward()
        gone = weakref.ref(y)
        del y
        assert gone() is None
        del x


def test_gradcheck_of_a_wrapper():
    cls = wrapper(retrograd)
    x = cls(retrograd.rand(3, dtype=retrograd.float64), requires_grad=True)
    assert retrograd.autograd.gradcheck(lambda x: (x.exp() * x).sum(), (x,), check_forward_ad=True)
    assert retrograd.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
    matrix = retrograd.autograd.functional.jacobian(lambda x: x * x, x, vectorize=True)
    assert type(matrix) is cls and retrograd.allclose(matrix.elem, retrograd.diag(2 * x.elem))


def test_operators_as_objects(torch):
    aten = torch.ops.aten
    assert str(aten.mul.Tensor) == "aten.mul.Tensor" and aten.mul.Tensor.name() == "aten::mul.Tensor"
    assert aten.mul.Tensor.overloadpacket is aten.mul and "Tensor" in aten.mul.overloads()
    assert repr(aten.exp.default) == "<OpOverload(op='aten.exp', overload='default')>"
    assert [a.name for a in aten.mul.Tensor._schema.arguments] == ["self", "other"]
    assert aten.mul_.Tensor._schema.arguments[0].alias_info.is_write and aten.mul_.Tensor._schema.is_mutable
    assert aten.add.Tensor._schema.arguments[2].kwarg_only and aten.add.Tensor._schema.arguments[2].default_value == 1
    assert not aten.view.default._schema.arguments[0].alias_info.is_write
    assert str(aten.exp.default._schema) == "aten::exp(Tensor self) -> Tensor"
    assert any(tag.name == "pointwise" for tag in aten.exp.default.tags)
    if torch is retrograd:
        assert pickle.loads(pickle.dumps(aten.exp.default)) is aten.exp.default
    out = torch.zeros(2)
    assert aten.add.out(torch.ones(2), torch.ones(2), out=out) is out and out.tolist() == [2.0, 2.0]
    with pytest.raises(AttributeError, match="no overload name"):
        aten.exp.nothing
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        torch.ops.aten.nothing


def test_every_name_in_the_generated_operators_is_there():
    """A wrapper that few calls reach says nothing of a missing import until it is called."""
    import builtins
    import dis
    import types

    from retrograd._generated import dispatched

    missing = {
        step.argval
        for function in vars(dispatched).values()
        if isinstance(function, types.FunctionType) and function.__name__.startswith("run_")
        for step in dis.get_instructions(function.__code__)
        if step.opname == "LOAD_GLOBAL" and not hasattr(dispatched, step.argval) and not hasattr(builtins, step.argval)
    }
    assert missing == set()


def test_operators_are_copied_and_pickled_as_themselves() -> None:
    for op in (retrograd.ops.aten.add, retrograd.ops.aten.add.Tensor):
        assert copy.deepcopy(op) is op and copy.copy(op) is op and pickle.loads(pickle.dumps(op)) is op


def test_overloads_say_what_they_take_and_what_they_are_made_of(torch):
    a, out = torch.tensor(2.0), torch.tensor(0.0)
    torch.ops.aten.add.out(a, a, out=out)
    assert out.item() == 4.0
    with pytest.raises(RuntimeError, match="Unknown keyword argument 'out' for operator 'aten::add'"):
        torch.ops.aten.add.Tensor(a, a, out=out)
    x, w = torch.ones(2, 3), torch.ones(5, 3)
    assert torch.equal(torch.ops.aten.linear.default.decompose(x, w), x @ w.t())
    assert torch.ops.aten.sin.default.decompose(x) is NotImplemented


def test_indices_are_tensors_for_handlers_and_callers(torch):
    calls = []

    class Log(tools(torch).TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if "index" in str(func):
                shown = [list(map(str, (i.dtype, *i.shape))) if isinstance(i, torch.Tensor) else i for i in args[1]]
                calls.append((str(func), shown, *[type(value).__name__ for value in args[2:]]))
            return func(*args, **(kwargs or {}))

    x, rows = torch.arange(6.0).reshape(2, 3), torch.tensor([1, 0, 1])
    y = x.clone()
    with Log():
        assert x[:, rows[:2]].tolist() == [[1.0, 0.0], [4.0, 3.0]]
        assert x[x > 3].tolist() == [4.0, 5.0]
        y[rows] = y[rows] + 1
        assert torch.ops.aten.index.Tensor(x, [None, rows]).shape == (2, 3)
    assert calls == [
        ("aten.index.Tensor", [None, ["torch.int64", "2"]]),
        ("aten.index.Tensor", [["torch.bool", "2", "3"]]),
        ("aten.index.Tensor", [["torch.int64", "3"]]),
        ("aten.index_put_.default", [["torch.int64", "3"]], "Tensor"),
        ("aten.index.Tensor", [None, ["torch.int64", "3"]]),
    ]
    aten = torch.ops.aten
    assert aten.index.Tensor(x, [rows]).tolist() == x[rows].tolist()
    assert aten.index_put.default(x, [x > 3], torch.tensor(0.0)).tolist() == [[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]]
    aten.index_put_.default(y, indices=[rows[:1]], values=torch.tensor(1.0), accumulate=True)
    assert y.tolist() == [[1.0, 2.0, 3.0], [5.0, 6.0, 7.0]]
    several = torch.vmap(lambda row: aten.index_put.default(x, [row], torch.tensor(9.0)))(rows.reshape(3, 1))
    assert several.tolist() == [x.index_put([row], torch.tensor(9.0)).tolist() for row in rows]
