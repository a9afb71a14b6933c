"""Small programs that wrap, count, log or defer tensors as public libraries do, written for torch and run on both.

Each takes the library as `torch` and returns plain values: what it saw and what it computed.
"""

from __future__ import annotations

import copy
import functools
import importlib
import io
from collections import Counter
from typing import Any

import pytest

import retrograd


def part(torch: Any, name: str) -> Any:
    return importlib.import_module(f"{torch.__name__}.{name}")


def numbers(tensor: Any) -> Any:
    return [round(float(x), 5) for x in tensor.detach().flatten().tolist()]


def a_logging_tensor(torch):
    tree_map = part(torch, "utils._pytree").tree_map
    seen = []

    class LoggingTensor(torch.Tensor):
        @staticmethod
        def __new__(cls, elem, *, requires_grad=False):
            made = torch.Tensor._make_wrapper_subclass(
                cls, elem.size(), strides=elem.stride(), storage_offset=elem.storage_offset(), dtype=elem.dtype,
                layout=elem.layout, device=elem.device, requires_grad=requires_grad,
            )  # fmt: skip
            made.elem = elem
            return made

        def __repr__(self):
            return f"LoggingTensor({self.elem})"

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            out = func(
                *tree_map(lambda t: t.elem if isinstance(t, cls) else t, args),
                **tree_map(lambda t: t.elem if isinstance(t, cls) else t, kwargs or {}),
            )
            seen.append(func.overloadpacket.__name__)
            return tree_map(lambda t: cls(t) if isinstance(t, torch.Tensor) else t, out)

    x = LoggingTensor(torch.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    y = (x * x).sum() + x.exp().mean()
    y.backward()
    # (Whether a gradient is kept by detach or by clone is the library's own affair.)
    return sorted(set(seen) - {"detach", "clone"}), numbers(x.grad.elem), type(x.grad).__name__, repr(x)[:14]


def a_quantised_weight(torch):
    F = torch.nn.functional
    aten = torch.ops.aten

    class Int8Tensor(torch.Tensor):
        @staticmethod
        def __new__(cls, values, scale):
            return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=scale.dtype)

        def __init__(self, values, scale):
            self.values_, self._memory, self._scale = values, "the user's", scale

        def dequantize(self):
            return self.values_.to(self._scale.dtype) * self._scale

        def __tensor_flatten__(self):
            return ["values_", "_scale"], None

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func is F.linear:
                weight = args[1]
                return F.linear(args[0], weight.dequantize(), args[2] if len(args) > 2 else None)
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            if func in (aten.detach.default, aten.clone.default, aten.alias.default):
                return cls(func(args[0].values_), args[0]._scale)
            if func is aten.t.default:
                return cls(args[0].values_.t(), args[0]._scale.t())
            raise NotImplementedError(str(func))

    layer = torch.nn.Linear(3, 2)
    with torch.no_grad():
        layer.weight.copy_(torch.arange(6.0).reshape(2, 3) / 7)
        layer.bias.zero_()
    scale = layer.weight.detach().abs().amax(1, keepdim=True) / 127
    values = (layer.weight.detach() / scale).round().to(torch.int8)
    layer.weight = torch.nn.Parameter(Int8Tensor(values, scale), requires_grad=False)
    x = torch.tensor([[1.0, -2.0, 0.5]], requires_grad=True)
    y = layer(x)
    y.sum().backward()
    try:
        layer.weight + 1
    except NotImplementedError as error:
        refused = str(error)
    kind = type(layer.weight).__name__
    return numbers(y), numbers(x.grad), refused, kind, tuple(layer.weight.t().shape), layer.weight._memory


def lazy_initialisation(torch):
    overrides = part(torch, "overrides")
    made = []

    class OnMeta(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func in (torch.empty, torch.zeros, torch.ones):
                made.append(func.__name__)
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    with OnMeta():
        model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 2))
    empty = [p.is_meta for p in model.parameters()]
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    model.to_empty(device="cpu")
    for p in model.parameters():
        torch.nn.init.constant_(p, 0.5)
    model[1].reset_running_stats()
    return sorted(Counter(made).items()), all(empty), size, numbers(model.eval()(torch.ones(1, 4)))


def tensors_with_units(torch):
    handled = {}

    def implements(function):
        def decorator(rule):
            functools.update_wrapper(rule, function)
            handled[function] = rule
            return rule

        return decorator

    class Quantity(torch.Tensor):
        _unit = ""

        @classmethod
        def of(cls, data, unit):
            made = torch.as_tensor(data).as_subclass(cls)
            made._unit = unit
            return made

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func in handled:
                return handled[func](*args, **(kwargs or {}))
            out = super().__torch_function__(func, types, args, kwargs or {})
            units = {a._unit for a in args if isinstance(a, cls)}
            if isinstance(out, cls):
                out._unit = units.pop() if len(units) == 1 else ""
            return out

    @implements(torch.add)
    def add(a, b, *, alpha=1):
        if a._unit != b._unit:
            raise ValueError(f"{a._unit} and {b._unit}")
        with torch._C.DisableTorchFunctionSubclass():
            return Quantity.of(torch.add(a, b, alpha=alpha), a._unit)

    @implements(torch.mul)
    def mul(a, b):
        with torch._C.DisableTorchFunctionSubclass():
            return Quantity.of(torch.mul(a, b), a._unit + getattr(b, "_unit", ""))

    a, b = Quantity.of([1.0, 2.0], "m"), Quantity.of([3.0, 4.0], "s")
    try:
        torch.add(a, b)
    except ValueError as error:
        refused = str(error)
    w = torch.ones(2, requires_grad=True)
    c = torch.mul(a, b)
    (c * w).sum().backward()
    return (
        c._unit, numbers(c), refused, a.sum()._unit, type(a[0]).__name__, a[0]._unit, numbers(w.grad),
        copy.copy(a)._unit,
    )  # fmt: skip


def a_masked_tensor(torch):
    tree_map = part(torch, "utils._pytree").tree_map
    aten = torch.ops.aten

    class Masked(torch.Tensor):
        @staticmethod
        def __new__(cls, data, mask):
            return torch.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

        def __init__(self, data, mask):
            self._data, self._mask = data, mask

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            mask = next(a._mask for a in args if isinstance(a, cls))
            if func in (aten.sum.default, aten.mean.default):
                data = torch.where(mask, args[0]._data, 0)
                total = data.sum()
                return total if func is aten.sum.default else total / mask.sum()
            plain = tree_map(lambda a: a._data if isinstance(a, cls) else a, args)
            out = func(*plain, **(kwargs or {}))
            return cls(out, mask) if out.shape == mask.shape else out

    x = Masked(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([True, False, True]))
    y = (x * 2 + 1).relu()
    return type(y).__name__, numbers(y._data), float(y.sum()), float(y.mean()), y.shape[0]


def a_deferred_program(torch):
    dispatch = part(torch, "utils._python_dispatch")
    pytree = part(torch, "utils._pytree")

    class Recorder(dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.calls, self.kept = [], []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            self.kept += [args, out]
            self.calls.append((func, args, kwargs or {}, out))
            return out

        def replay(self, given):
            known = dict(given)

            def look(value):
                return known.get(id(value), value) if isinstance(value, torch.Tensor) else value

            for func, args, kwargs, out in self.calls:
                found = func(*pytree.tree_map(look, args), **pytree.tree_map(look, kwargs))
                for old, new in zip(pytree.tree_leaves(out), pytree.tree_leaves(found), strict=True):
                    known[id(old)] = new
            return known

    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    with Recorder() as mode:
        y = torch.softmax(x @ x, -1).cumsum(0)
    again = mode.replay({id(x): x + 1})[id(y)]
    expected = torch.softmax((x + 1) @ (x + 1), -1).cumsum(0)
    return numbers(again), bool(torch.equal(again, expected)), len(mode.calls) >= 3


def counts_by_module(torch):
    counter = part(torch, "utils.flop_counter").FlopCounterMode(display=False)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with counter:
        model(torch.ones(3, 4)).sum().backward()
    found = {name: {str(op): n for op, n in ops.items()} for name, ops in counter.get_flop_counts().items()}
    return counter.get_total_flops(), found


def a_mode_that_counts(torch):
    dispatch = part(torch, "utils._python_dispatch")

    class Count(dispatch.TorchDispatchMode):
        def __init__(self):
            super().__init__()
            self.seen = Counter()

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen[func.overloadpacket.__name__] += 1
            return func(*args, **(kwargs or {}))

    w = torch.ones(2, 2, requires_grad=True)
    with Count() as outer:
        with Count() as inner:
            (w @ w).relu().sum().backward()
        w.exp()
    del inner.seen["detach"]  # of saved results and gradients, as often as the library needs
    return sorted(inner.seen.items()), outer.seen["exp"], inner.seen["exp"], outer.seen["mm"], inner.seen["mm"]


def a_duck_with_the_protocol(torch):
    handled = {}

    class Diagonal:
        def __init__(self, n, value):
            self.n, self.value = n, value

        def tensor(self):
            return self.value * torch.eye(self.n)

        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if func not in handled or not all(issubclass(t, (torch.Tensor, Diagonal)) for t in types):
                return NotImplemented
            return handled[func](*args, **(kwargs or {}))

    handled[torch.mean] = lambda d: d.value / d.n
    handled[torch.matmul] = lambda a, b: torch.matmul(
        *[one.tensor() if isinstance(one, Diagonal) else one for one in (a, b)]
    )
    d = Diagonal(3, 2.0)
    try:
        torch.add(d, 1)
    except TypeError as error:
        refused = "no implementation found" in str(error)
    is_like = part(torch, "overrides").is_tensor_like
    return round(torch.mean(d), 5), numbers(torch.matmul(d, torch.ones(3))), refused, is_like(d), is_like(3)


def a_parameter_with_a_note(torch):
    class Noted(torch.nn.Parameter):
        def __new__(cls, data, note=""):
            made = super().__new__(cls, data, requires_grad=True)
            made._special, made._edge, made.note = "theirs", "theirs too", note
            return made

        def __deepcopy__(self, memo):
            return type(self)(self.data.clone(), self.note)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = Noted(torch.arange(3.0), "a weight")

        def forward(self, x):
            return (x * self.w).sum()

    layer = Layer()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer(torch.ones(3)).backward()
    optimizer.step()
    twin = copy.deepcopy(layer)
    file = io.BytesIO()
    torch.save(layer.state_dict(), file)
    file.seek(0)
    twin.load_state_dict(torch.load(file, weights_only=False))
    return (
        numbers(layer.w), numbers(twin.w), twin.w.note, twin.w._special, layer.w._edge,
        [n for n, _ in layer.named_parameters()], isinstance(twin.w, torch.nn.Parameter),
    )  # fmt: skip


def two_in_one(torch):
    dispatch, pytree = part(torch, "utils._python_dispatch"), part(torch, "utils._pytree")

    class Two(torch.Tensor):
        @staticmethod
        def __new__(cls, a, b, requires_grad=False):
            return torch.Tensor._make_wrapper_subclass(
                cls, a.shape, strides=a.stride(), storage_offset=a.storage_offset(), dtype=a.dtype,
                requires_grad=requires_grad,
            )  # fmt: skip

        def __init__(self, a, b, requires_grad=False):
            self.a, self.b = a, b

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            outs = [
                func(*pytree.tree_map_only(cls, pick, args), **pytree.tree_map_only(cls, pick, kwargs))
                for pick in (lambda t: t.a, lambda t: t.b)
            ]
            if not isinstance(outs[0], torch.Tensor):
                return outs[0]
            out = cls(*outs)
            return dispatch.return_and_correct_aliasing(func, args, kwargs, out)

    t = Two(torch.ones(2, 3), torch.full((2, 3), 2.0), requires_grad=True)
    u = t.clone()
    view = u.view(3, 2)[0]
    view.mul_(10)
    (u * t).sum().backward()
    return numbers(t.grad.a), numbers(t.grad.b), numbers(u.a), view._is_view(), tuple(view.shape), type(t.grad).__name__


SCRIPTS = [
    a_logging_tensor, a_quantised_weight, lazy_initialisation, tensors_with_units, a_masked_tensor, a_deferred_program,
    counts_by_module, a_mode_that_counts, a_duck_with_the_protocol, a_parameter_with_a_note, two_in_one,
]  # fmt: skip


@pytest.mark.parity
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_a_script_gives_what_it_gives_on_torch(script: Any) -> None:
    torch = pytest.importorskip("torch")

    assert script(retrograd) == script(torch)
