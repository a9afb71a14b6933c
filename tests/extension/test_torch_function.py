"""Classes and modes with ``__torch_function__``, beside torch where it is installed."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

import retrograd


def plain_subclass(torch):
    class Plain(torch.Tensor):
        pass

    return Plain


def test_results_are_of_the_class(torch):
    cls = plain_subclass(torch)

    class Below(cls):
        pass

    class Other(torch.Tensor):
        pass

    x, y, t = torch.ones(2).as_subclass(cls), torch.ones(2).as_subclass(Below), torch.ones(2)
    for result, kind in (
        (x + t, cls), (t + x, cls), (x[0], cls), (x + y, Below), (y * x, Below), (torch.exp(x), cls), (x.sum(), cls),
        (torch.nn.functional.softmax(x, 0), cls), (x.view(2, 1), cls), (x.split(1)[0], cls), (x.T, cls), (x.data, cls),
        (torch.stack([t, x]), cls), (torch.max(x, 0).values, cls), (next(iter(x)), cls), (-x, cls), (2 - x, cls),
        (x == t, cls), (x.detach(), cls), (torch.linalg.norm(x), cls),
    ):  # fmt: skip
        assert type(result) is kind
    x += 1
    assert type(x) is cls and type(x.shape) is torch.Size and x.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError):
        x + torch.ones(2).as_subclass(Other)


def test_a_subclass_has_history(torch):
    x = torch.ones(2, requires_grad=True)
    y = (x.as_subclass(plain_subclass(torch)) * 3).exp().sum()
    y.backward()
    assert type(y).__name__ == "Plain" and type(x.grad) is torch.Tensor
    assert torch.allclose(x.grad, 3 * torch.exp(torch.tensor([3.0, 3.0])))


def test_the_constructor_shares_memory(torch):
    base = torch.ones(2)
    x = plain_subclass(torch)(base)
    assert x._is_view() and x._base is base
    with pytest.raises(RuntimeError, match="another instance of the same subclass"):
        copy.deepcopy(x)


class Table:
    """Not a tensor: a class that looks functions up."""

    known: dict = {}

    def __init__(self, value):
        self.value = value

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return cls.known[func](*args, **(kwargs or {})) if func in cls.known else NotImplemented


def test_arguments_that_are_no_tensors(torch):
    class Own(Table):
        known = {torch.mean: lambda x: x.value, torch.add: lambda a, b: "sum", torch.hstack: lambda xs: xs}

    x = Own(3)
    assert torch.mean(x) == 3
    assert torch.add(torch.ones(2), x) == "sum"
    assert torch.hstack([torch.ones(1), x])[1] is x
    for call in (lambda: torch.exp(x), lambda: torch.ones(2) * x, lambda: torch.stack([torch.ones(2), x])):
        with pytest.raises(TypeError):
            call()


def test_subclasses_are_asked_before_their_bases(torch):
    asked = []

    class A(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return NotImplemented

    class B(A):
        pass

    class C(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            asked.append(cls.__name__)
            return -1

    a, b, c = (torch.Tensor._make_subclass(cls, torch.ones(2)) for cls in (A, B, C))
    assert torch.add(a, c) == -1 and asked == ["A", "C"]
    asked.clear()
    assert torch.stack([a, b, c]) == -1 and asked == ["B", "A", "C"]
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        torch.mul(a, b)


def names_of(torch, run):
    """What a mode is told of, by name."""
    overrides = __import__(f"{torch.__name__}.overrides", fromlist=["x"])

    class Names(overrides.TorchFunctionMode):
        def __init__(self):
            self.names = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names.append(overrides.resolve_name(func))
            return func(*args, **(kwargs or {}))

    with Names() as mode:
        run()
    return mode.names


def test_what_a_mode_is_told(torch):
    x, n = torch.ones(2, 2), torch.ones(2, 2, dtype=torch.int64)
    for run, name in (
        (lambda: x + x, "Tensor.add"), (lambda: 2 + x, "Tensor.add"), (lambda: x - x, "Tensor.sub"),
        (lambda: 2 - x, "Tensor.__rsub__"), (lambda: x / 2, "Tensor.div"), (lambda: 2 / x, "Tensor.__rtruediv__"),
        (lambda: x**2, "Tensor.__pow__"), (lambda: x @ x, "Tensor.matmul"), (lambda: x < x, "Tensor.lt"),
        (lambda: x == x, "Tensor.__eq__"), (lambda: -x, "Tensor.neg"), (lambda: n & n, "Tensor.__and__"),
        (lambda: x[0], "Tensor.__getitem__"), (lambda: x.shape, "Tensor.shape.__get__"),
        (lambda: x.dtype, "Tensor.dtype.__get__"), (lambda: x.grad, "Tensor.grad.__get__"),
        (lambda: setattr(x, "requires_grad", False), "Tensor.requires_grad.__set__"), (lambda: x.size(), "Tensor.size"),
        (lambda: torch.zeros(2), "zeros"), (lambda: torch.tensor([1]), "tensor"), (lambda: torch.exp(x), "exp"),
        (lambda: x.exp(), "Tensor.exp"), (lambda: torch.nn.functional.relu(x), "nn.functional.relu"),
        (lambda: len(x), "Tensor.__len__"),
    ):  # fmt: skip
        assert names_of(torch, run)[0] == f"torch.{name}"
    assert names_of(torch, lambda: (isinstance(x, torch.Tensor), x.item, torch.is_tensor(x), hash(x))) == []


def test_modes_nest_and_can_be_switched_off(torch):
    overrides = __import__(f"{torch.__name__}.overrides", fromlist=["x"])
    seen = []

    class Mode(overrides.TorchFunctionMode):
        def __init__(self, name):
            self.name = name

        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(self.name)
            return func(*args, **(kwargs or {}))

    cls = plain_subclass(torch)
    x = torch.ones(2).as_subclass(cls)
    with Mode("outer"), Mode("inner"):
        torch.ones(1)
        assert seen == ["inner", "outer"]
        with torch._C.DisableTorchFunction():
            assert type(x + 1) is torch.Tensor
        assert seen == ["inner", "outer"]
        with torch._C.DisableTorchFunctionSubclass():
            assert type(x + 1) is torch.Tensor
        assert seen == ["inner", "outer"] * 2
    assert overrides._get_current_function_mode_stack() == []


def test_wrong_modes_and_calls(torch):
    overrides = __import__(f"{torch.__name__}.overrides", fromlist=["x"])

    class Wrong(overrides.TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args)

    with pytest.raises(RuntimeError, match="make it a plain method"), Wrong():
        torch.ones(2)
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(3)
    assert torch.ones(2).tolist() == [1.0, 1.0]


def test_functions_of_a_program_ask_too(torch):
    overrides = __import__(f"{torch.__name__}.overrides", fromlist=["x"])

    def double(x):
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(double, (x,), x)
        return x + x

    class Own(Table):
        known = {double: lambda x: "doubled"}

    assert double(2) == 4 and double(Own(1)) == "doubled"


def test_functions_stay_the_objects_that_they_are():
    """The switch gives functions other code: those that were imported before, and their parameters, are the same."""
    from retrograd import exp, overrides

    plain_subclass(retrograd)
    assert exp is retrograd.exp and overrides.resolve_name(exp) == "torch.exp"
    assert list(inspect.signature(retrograd.sum).parameters)[:2] == ["input", "dim"]
    assert list(inspect.signature(retrograd.Tensor.add).parameters)[:2] == ["input", "other"]
    for function in (retrograd.exp, retrograd.Tensor.exp, retrograd.nn.functional.relu, retrograd.Tensor.mean):
        assert pickle.loads(pickle.dumps(function)) is function
    assert retrograd.Tensor.exp is not retrograd.exp
    assert retrograd.cumsum(retrograd.ones(2), axis=0).tolist() == [1.0, 2.0]


def test_every_listed_function_asks():
    """What `get_overridable_functions` lists is told to a class, under the name that it resolves to."""
    from retrograd import overrides

    told = []

    class Ask(retrograd.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            told.append(func)
            return -1

    x = retrograd.Tensor._make_subclass(Ask, retrograd.ones(2))
    missed = []
    listed = overrides.get_overridable_functions()
    for space, functions in listed.items():
        for function in functions:
            if space is retrograd.nn.init or function.__name__ in ("__set__", "__repr__"):
                continue
            told.clear()
            try:
                function(x)
            except TypeError:
                continue  # it wants further arguments before it can be asked at all
            if not told:
                missed.append(overrides.resolve_name(function))
    assert sum(map(len, listed.values())) > 1000
    assert missed == []


def test_modes_are_asked_about_devices(torch):
    asked = []

    class Elsewhere(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            if func is torch.device:
                asked.append((args, kwargs))
                if args and isinstance(args[0], int):
                    args = ("xla", args[0])
                elif isinstance(kwargs.get("device"), int):
                    kwargs = {"device": f"xla:{kwargs['device']}"}
            return func(*args, **kwargs)

    with Elsewhere():
        assert str(torch.device(0)) == str(torch.device(device=0)) == "xla:0"
        torch.zeros(1, device="cpu").to("cpu")
        assert asked == [((0,), {}), ((), {"device": 0})]
        assert isinstance(torch.device("cpu"), torch.device)
    assert torch.device(device="cuda:1") == torch.device("cuda", 1) == torch.device(type="cuda", index=1)
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.device()
    with pytest.raises(TypeError, match="missing 1 required positional"):
        torch.device(device="cpu", index=0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'device'"):
        torch.device("cpu", device="cpu")
