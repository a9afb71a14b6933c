"""Where a step may find a number, and what it may do beside computing: all of it is seen, repeated or refused."""

import array
import collections
import contextvars
import copy
import ctypes
import functools
import importlib
import itertools
import logging
import math
import operator
import os
import random
import sys
import threading
import time
import types
import typing
import weakref

import numpy as np
import pytest

import retrograd as torch
import retrograd.nn.functional as F
from capture.side_by_side import compare, switched
from retrograd import nn
from retrograd.capture import CaptureError

K = 1.0
FUNCTION = math.sin
FIELDS = ("a", "b")
CONTEXT = contextvars.ContextVar("CONTEXT", default=1.0)
OWN = threading.local()


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "K", 1.0)
    monkeypatch.setattr(sys.modules[__name__], "FUNCTION", math.sin)
    monkeypatch.setenv("RETROGRAD_TEST_K", "1")
    monkeypatch.setattr(Object, "not_there_yet", 1.0, raising=False)
    monkeypatch.delattr(Object, "not_there_yet")


def put(**names):
    return lambda: globals().update(names)


class Object:
    """Something with attributes."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


class Counted:
    calls = 0


class Slotted:
    __slots__ = ("k", "more")


class Table(dict):
    def scale(self):
        return K


class Point(collections.namedtuple("Point", "a")):
    def scale(self):
        return K * self.a


class Descriptor:
    def __get__(self, owner, cls=None):
        return K


class Described:
    k = Descriptor()


class Meta(type):
    k = 1.0


class OfMeta(metaclass=Meta):
    pass


class Function(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * K


def module_of(**names):
    module = types.ModuleType("a_users_settings")
    vars(module).update(names)
    sys.modules["a_users_settings"] = module
    return module


def imported(x):
    from a_users_settings import number

    return x * number


class Number(float):
    def __repr__(self):
        return "a number"


def replace(container, content):
    def change():
        container.clear()
        container.update(content)

    return change


def places():
    """(name, step, what changes)"""
    one, many = Object(a=1.0, b=2.0), Object(a1=1.0, a2=2.0)
    yield "a builtin function", lambda x: x * FUNCTION(1.0), put(FUNCTION=math.cos)
    table = {"k": 1.0}
    get = table.get
    yield "a bound method of a dictionary", lambda x: x * get("k"), lambda: table.update(k=2.0)
    yield (
        "getattr by a list of names",
        lambda x: x * sum([getattr(one, n) for n in FIELDS]),
        lambda: setattr(one, "b", 5.0),
    )
    yield (
        "getattr by a name that is made",
        lambda x: x * sum([getattr(many, f"a{n}") for n in (1, 2)]),
        lambda: setattr(many, "a2", 5.0),
    )
    read, by_name = operator.attrgetter("inner.k"), Object(inner=Object(k=1.0))
    yield "attrgetter", lambda x: x * read(by_name), lambda: setattr(by_name.inner, "k", 5.0)
    w = torch.ones(3, requires_grad=True)
    yield (
        "the backward of a function",
        lambda x: torch.autograd.grad(Function.apply(w * x).sum(), w)[0],
        put(K=3.0),
    )
    settings = module_of(number=1.0)
    yield "an import inside", imported, lambda: setattr(settings, "number", 4.0)
    yield (
        "a module that is imported by its name",
        lambda x: x * importlib.import_module("a_users_settings").number,
        lambda: setattr(settings, "number", 5.0),
    )
    yield (
        "an entry of sys.modules",
        lambda x: x * sys.modules["a_users_settings"].number,
        lambda: setattr(settings, "number", 6.0),
    )
    hidden = type("Hidden", (), {"__module__": "_settings"})()
    hidden.k = 1.0
    yield "a class of a module with an underscore", lambda x: x * hidden.k, lambda: setattr(hidden, "k", 4.0)
    with_attribute = Table()
    with_attribute.k = 1.0
    yield "an attribute of a dictionary", lambda x: x * with_attribute.k, lambda: setattr(with_attribute, "k", 4.0)
    yield "a method of a dictionary", lambda x: x * with_attribute.scale(), put(K=4.0)
    point = Point(1.0)
    yield "a method of a tuple", lambda x: x * point.scale(), put(K=4.0)
    users, chain = collections.UserDict(k=1.0), collections.ChainMap({"k": 1.0})
    yield "UserDict", lambda x: x * users["k"], lambda: users.update(k=4.0)
    yield "ChainMap", lambda x: x * chain["k"], lambda: chain.update(k=4.0)
    behind = {"k": 1.0}
    proxy = types.MappingProxyType(behind)
    yield "a mapping proxy", lambda x: x * proxy["k"], lambda: behind.update(k=4.0)
    viewed = {"k": 1.0}
    of_values, of_items = viewed.values(), viewed.items()
    yield "the values of a dictionary", lambda x: x * sum(of_values), lambda: viewed.update(k=4.0)
    yield "the items of a dictionary", lambda x: x * dict(of_items)["k"], lambda: viewed.update(k=5.0)
    written = bytearray(b"\1")
    seen_through = memoryview(written)
    yield "a view of bytes", lambda x: x * seen_through[0], lambda: written.__setitem__(0, 9)
    some_bytes, numbers, number = bytearray(b"\1"), array.array("d", [1.0]), ctypes.c_double(1.0)
    yield "bytes", lambda x: x * some_bytes[0], lambda: some_bytes.__setitem__(0, 9)
    yield "an array of Python's", lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 9.0)
    yield "a number of C", lambda x: x * number.value, lambda: setattr(number, "value", 9.0)
    change = lambda: os.environ.update(RETROGRAD_TEST_K="3")
    yield "the environment", lambda x: x * float(os.environ["RETROGRAD_TEST_K"]), change
    yield "getenv", lambda x: x * float(os.getenv("RETROGRAD_TEST_K")), change
    CONTEXT.set(1.0)
    yield "a context variable", lambda x: x * CONTEXT.get(), lambda: CONTEXT.set(3.0)
    OWN.k = 1.0
    yield "a thread's own", lambda x: x * OWN.k, lambda: setattr(OWN, "k", 3.0)
    target = Object(k=1.0)
    weak = weakref.ref(target)
    yield "a weak reference", lambda x: x * weak().k, lambda: setattr(target, "k", 3.0)
    inner = torch.capture(lambda x: x * K, backend="plain")
    yield "a captured function inside", lambda x: inner(x) + 1, put(K=4.0)
    inner.k = 1.0
    yield "an attribute of a captured function", lambda x: x * inner.k, lambda: setattr(inner, "k", 4.0)
    slotted = Slotted()
    yield "a slot that was empty", lambda x: x * getattr(slotted, "k", 1.0), lambda: setattr(slotted, "k", 4.0)
    yield (
        "a default that an attribute of a class replaces",
        lambda x: x * getattr(Object, "not_there_yet", 1.0),
        lambda: setattr(Object, "not_there_yet", 4.0),
    )
    yield "a descriptor", lambda x: x * Described().k, put(K=4.0)
    yield "an attribute of a metaclass", lambda x: x * OfMeta.k, lambda: setattr(Meta, "k", 3.0)
    marked = torch.ones(3)
    marked.k = 1.0
    yield "an attribute of a tensor", lambda x: x * marked.k + marked, lambda: setattr(marked, "k", 4.0)
    v = torch.ones(3, requires_grad=True)
    v.grad = torch.ones(3)
    yield (
        "a .grad that is gone",
        lambda x: (v * x).detach() * (1 + (v.grad is not None)),
        lambda: setattr(v, "grad", None),
    )
    u = torch.ones(3, requires_grad=True)
    yield "a .grad that is there", lambda x: x * (1 + (u.grad is not None)), lambda: setattr(u, "grad", torch.ones(3))
    t = torch.ones(3)
    yield "the size of a tensor", lambda x: x * t.shape[0], lambda: t.set_(torch.ones(5))
    s = torch.ones(3)
    yield "whether a tensor requires grad", lambda x: x * (1 + s.requires_grad), lambda: s.requires_grad_()
    long, tensors, large = [1.0] * 300, {i: torch.ones(3) for i in range(300)}, np.ones(300)
    yield "a long list", lambda x: x * long[7], lambda: long.__setitem__(7, 5.0)
    yield "many tensors", lambda x: x * tensors[7], lambda: tensors.__setitem__(7, torch.zeros(3))
    yield "an array of some size", lambda x: x * float(large[7]), lambda: large.__setitem__(7, 5.0)
    layers = nn.Sequential(*[nn.Identity() for _ in range(300)])
    yield "many layers", lambda x: layers(x) * 2, lambda: layers.__setitem__(7, nn.Tanh())
    prior = torch.distributions.Normal(torch.zeros(3), torch.ones(3), validate_args=False)
    yield "a distribution", lambda x: prior.log_prob(x), lambda: setattr(prior, "loc", torch.ones(3))
    yield "an entry of globals()", lambda x: x * globals()["K"], put(K=4.0)
    measured = Number(2.0)
    measured.unit = 1.0
    yield "an attribute of a number", lambda x: x * measured * measured.unit, lambda: setattr(measured, "unit", 5.0)
    numbers = [Number(2.0)]
    yield "a number with a repr of its own", lambda x: x * numbers[0], lambda: numbers.__setitem__(0, Number(3.0))
    entries, table, whole = {1.0}, {"a": 1.0, "b": 2.0}, {1: 5.0}
    yield "the class of a member", lambda x: sum([x * isinstance(n, int) for n in entries]), replace(entries, {1})
    yield (
        "the order of a dictionary",
        lambda x: sum([x * i * v for i, v in enumerate(table.values())]),
        lambda: table.update(a=table.pop("a")),
    )
    yield "the class of a key", lambda x: sum([x * isinstance(n, int) for n in whole]), replace(whole, {1.0: 5.0})
    yield "the name of a key", lambda x: x * float("c" in named), replace(named := {"a": 5.0}, {"c": 5.0})
    within = [1.0]
    within.append(within)
    yield "a list in itself", lambda x: x * within[1][1][0], lambda: within.__setitem__(0, 3.0)
    hooked, factor = torch.ones(3, requires_grad=True), {"k": 1.0}
    hooked.register_hook(lambda grad: grad * factor["k"])
    yield (
        "a hook of a tensor",
        lambda x: torch.autograd.grad((hooked * x).sum(), hooked)[0],
        lambda: factor.update(k=3.0),
    )


@pytest.mark.parametrize("name, step, change", [pytest.param(*one, id=one[0]) for one in places()])
def test_what_a_step_reads_is_watched(name, step, change, monkeypatch):
    """Nine calls, and a change before the sixth: the eager ones come first, so what they changed is put back."""
    torch.manual_seed(0)
    x = [torch.full((3,), call + 1.0) for call in range(9)]
    captured = torch.capture(step, backend="plain")
    for call in range(9):
        if call == 5:
            change()
        assert torch.equal(captured(x[call]), step(x[call])), name
    assert captured.source
    assert sum(map(len, captured._entries.values())) <= 3


F_OF_TYPES = typing.TypeVar("F_OF_TYPES")


def test_types_are_not_looked_into():
    """Whose methods read entries of globals() by names that are made."""
    captured = torch.capture(lambda x: (F_OF_TYPES, typing.Union, x * 2)[2], backend="plain")
    assert [captured(torch.ones(1)).item() for _ in range(4)] == [2.0] * 4


def test_entries_of_globals_by_names_that_are_made():
    with pytest.raises(CaptureError, match=r"entries of globals\(\) whose names do not stand"):
        torch.capture(lambda x: x * globals()[chr(75)], backend="plain")(torch.ones(3))


def test_functions_of_the_package_that_somebody_replaces(monkeypatch):
    relu = nn.ReLU()
    compare(switched(lambda x: F.relu(x - 3), lambda: None))
    captured = torch.capture(lambda x: F.relu(x - 3) + relu(x), backend="plain")
    for call in range(9):
        if call == 3:
            monkeypatch.setattr(F, "relu", lambda x: x * 2)
        if call == 6:
            monkeypatch.setattr(nn.ReLU, "forward", lambda self, x: x * 3)
        x = torch.full((3,), float(call))
        assert torch.equal(captured(x), F.relu(x - 3) + relu(x))


# ---------------------------------------------------------------------------------------------------------- optimizers


class Descent(torch.optim.Optimizer):
    """An optimizer of the user's: its step is recorded as anything else."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.add_(p.grad, alpha=-group["lr"])


class Scaled(torch.optim.SGD):
    scale = 1.0

    def step(self):
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    p.grad.mul_(self.scale)
        super().step()


@pytest.mark.parametrize("what", ["lr returned", "last_lr", "epoch", "user's", "subclass", "other parameter"])
def test_what_optimizers_and_schedulers_say_is_watched(what):
    def script(capture):
        w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
        optimizer = {"user's": Descent, "subclass": Scaled}.get(what, torch.optim.SGD)([w], lr=0.1)
        # One that a scheduler counts steps by itself.
        own = what in ("user's", "subclass")
        scheduler = None if own else torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)

        def step(x):
            optimizer.zero_grad()
            loss = (w * x).square().sum() + (v * x).sum()
            loss.backward()
            optimizer.step()
            if what == "lr returned":
                return optimizer.param_groups[0]["lr"]
            if what == "last_lr":
                return loss.detach() * scheduler.get_last_lr()[0]
            return loss.detach() * scheduler.last_epoch if what == "epoch" else loss

        captured = capture(step)
        found = []
        for call in range(9):
            if call == 5 and what == "other parameter":
                optimizer.param_groups[0]["params"][0] = v
            if call == 5 and what == "subclass":
                optimizer.scale = 0.1
            if call == 5 and what == "user's":
                optimizer.param_groups[0]["lr"] = 0.01
            found += [captured(torch.full((3,), 0.1 * call)), w.detach().clone(), v.detach().clone()]
            if call % 4 == 3 and not own:
                scheduler.step()
        return found, w.grad, v.grad

    compare(script)


class Counting(torch.optim.Optimizer):
    """An optimizer of the user's with numbers of its own."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})
        self.calls = 0

    def step(self, closure=None):
        self.calls += 1
        with torch.no_grad():
            for p in self.param_groups[0]["params"]:
                self.state[p]["n"] = self.state[p].get("n", 0) + 1
                p.add_(p.grad, alpha=-self.param_groups[0]["lr"] / self.state[p]["n"] / self.calls)


def test_an_optimizer_of_the_users_that_counts():
    def script(capture):
        w = torch.ones(3, requires_grad=True)
        optimizer = Counting([w])
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(x):
            optimizer.zero_grad()
            (w * x).square().sum().backward()
            optimizer.step()

        captured = capture(step)
        found = []
        for call in range(7):
            captured(torch.full((3,), 0.1 * call))
            scheduler.step()
            found.append(w.detach().clone())
        return found, optimizer.calls

    compare(script)
    w = torch.ones(3, requires_grad=True)
    optimizer = Counting([w])

    def step(x):
        (w * x).sum().backward()
        optimizer.step()

    with pytest.raises(CaptureError, match=r"changes optimizer\.(calls|state)"):
        torch.capture(step, backend="plain")(torch.ones(3))


def test_hooks_of_optimizers_write_to_what_they_find():
    def script(capture):
        w, average = torch.ones(3, requires_grad=True), torch.zeros(3)
        optimizer = torch.optim.SGD([w], lr=0.1)
        optimizer.register_step_post_hook(lambda *args: (average.mul_(0.5).add_(w.detach()), None)[1])
        optimizer.register_step_pre_hook(lambda *args: (w.grad.clamp_(-0.5, 0.5), None)[1])

        def step(x):
            optimizer.zero_grad()
            before = average * 2
            (w * x).square().sum().backward()
            optimizer.step()
            return before, average * 3, w.grad.sum()

        captured = capture(step)
        found = [captured(torch.full((3,), 0.1 * call)) for call in range(7)]
        return found, average, w, w.grad, average._version, w._version

    compare(script)


# ------------------------------------------------------------------------------------------------------ what is refused


def lines(*iterator):
    yield from iterator


@pytest.mark.parametrize(
    "make",
    [
        lambda: itertools.cycle([1.0, 1.0, 2.0]),
        lambda: iter([1.0, 1.0, 2.0, 3.0]),
        lambda: lines(1.0, 1.0, 2.0),
        lambda: map(float, [1, 1, 2]),
    ],
)
def test_iterators_are_refused(make):
    place = make()
    with pytest.raises(CaptureError, match="the iterator place, whose place nobody watches"):
        torch.capture(lambda x: x * next(place), backend="plain")(torch.ones(3))
    assert next(place) == 1.0


def test_random_numbers_of_the_system_are_refused():
    own = random.SystemRandom()
    with pytest.raises(CaptureError, match=r"reads random numbers of the system \(own\)"):
        torch.capture(lambda x: x * own.random(), backend="plain")(torch.ones(3))


@pytest.mark.parametrize("which", ["random", "np.random", "default_rng", "Random", "PCG64"])
def test_draws_of_others_are_refused_and_put_back(which):
    rng, own, raw = np.random.default_rng(0), random.Random(0), np.random.PCG64(0)
    draw = {
        "random": random.random,
        "np.random": np.random.rand,
        "default_rng": rng.random,
        "Random": own.random,
        "PCG64": raw.random_raw,
    }[which]
    random.seed(0)
    np.random.seed(0)
    step = {
        "random": lambda x: x * (2 if random.random() < 2 else 3),
        "np.random": lambda x: x * (2 if np.random.rand() < 2 else 3),
        "default_rng": lambda x: x * (2 if rng.random() < 2 else 3),
        "Random": lambda x: x * (2 if own.random() < 2 else 3),
        "PCG64": lambda x: x * (2 if raw.random_raw() >= 0 else 3),
    }[which]
    with pytest.raises(CaptureError, match="draws random numbers from"):
        torch.capture(step, backend="plain")(torch.ones(3))
    again = {"random": random.Random(0).random, "default_rng": np.random.default_rng(0).random}
    again["PCG64"] = np.random.PCG64(0).random_raw
    again["Random"], again["np.random"] = again["random"], np.random.RandomState(0).rand
    assert draw() == again[which]()


def test_effects_are_refused(tmp_path):
    logger = logging.getLogger("capture")
    path = tmp_path / "log"
    x = torch.ones(3)

    def thread(x):
        one = threading.Thread(target=x.add_, args=(1,))
        one.start()
        return x * 2

    def grad_mode(x):
        torch.set_grad_enabled(False)
        return x * 2

    def default_dtype(x):
        torch.set_default_dtype(torch.float64)
        return x * 2

    opened = open(tmp_path / "opened", "w")
    there = tmp_path / "there"
    there.write_text("2")
    np.save(tmp_path / "array.npy", np.ones(3))
    not_read_again = r"open\(\) of a file, which a replay would not read again at .*test_watched"

    for step, match in {
        lambda x: (opened.write("x"), x * 2)[1]: "changes the file opened",
        lambda x: (open(path, "a").write("x"), x * 2)[1]: r"open\(\) of a file that is written to at .*test_watched",
        lambda x: (path.write_text("x"), x * 2)[1]: r"open\(\) of a file that is written to at .*test_watched",
        lambda x: x * float(open(there).read()): not_read_again,
        lambda x: x * float(there.read_text()): not_read_again,
        lambda x: x * torch.from_numpy(np.load(tmp_path / "array.npy")): not_read_again,
        lambda x: x * eval("ABC"[2] + "1", {"C1": 2}): r"eval\(\), whose text may name anything at .*test_watched",
        lambda x: (exec("y = 1"), x)[1] * 2: r"exec\(\), whose text may name anything at .*test_watched",
        lambda x: (logger.warning("hello"), x * 2)[1]: "a message that is logged at .*test_watched",
        lambda x: x * 2 if time.time() > 0 else x: r"time\.time\(\), which a replay would not ask at .*test_watched",
        lambda x: x * x._version: "the version of a tensor",
        thread: "a thread that is started, .* at .*test_watched",
        grad_mode: "leaves another mode behind",
        default_dtype: "leaves another mode behind",
    }.items():
        for _ in range(2):
            with pytest.raises(CaptureError, match=match):
                torch.capture(step, backend="plain")(x)
        assert torch.is_grad_enabled()
        assert torch.get_default_dtype() is torch.float32 and torch.add(1, 1j).dtype is torch.complex64
    assert not path.exists()
    assert x.tolist() == [1.0] * 3


@pytest.mark.parametrize("fails_at", [0, 4])
def test_an_error_that_is_caught_is_control_flow(fails_at):
    def step(a):
        try:
            return torch.linalg.cholesky(a)
        except torch.linalg.LinAlgError:
            return a * 0 - 1

    captured = torch.capture(step, backend="plain")
    for call in range(6):
        a = torch.eye(3) * (-1.0 if call == fails_at else 1.0)
        if call == fails_at:
            with pytest.raises(CaptureError, match="whose error was caught"):
                captured(a)
        else:
            assert torch.equal(captured(a), step(a))


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.numbers.append(1),
        lambda world: world.some.append(2),
        lambda world: world.some.__setitem__(0, 7),
        lambda world: world.table.update(a=5),
        lambda world: world.table.pop("a"),
        lambda world: setattr(world, "by", 3.0),
        lambda world: world.model.register_buffer("b", torch.ones(1)),
        lambda world: setattr(world.model, "count", 1),
        lambda world: world.argument.append(1),
        lambda world: world.entries.add(5),
        lambda world: world.array.fill(5),
        lambda world: world.bytes.append(5),
        lambda world: setattr(Counted, "calls", Counted.calls + 1),
        lambda world: setattr(world.slotted, "k", 2.0),
        lambda world: setattr(world.slotted, "more", 3.0),
    ],
)
def test_what_a_refused_step_has_changed_is_as_it_was(change):
    world = Object(numbers=[], some=[1, 2], table={"a": 1}, by=2.0, model=nn.Linear(1, 1), argument=[3])
    world.slotted = Slotted()
    world.slotted.k = 1.0
    world.model.count, world.entries, world.array, world.bytes = 0, {1}, np.ones(2), bytearray(b"ab")

    def state():
        return (
            list(world.numbers), list(world.some), dict(world.table), world.by, world.model.count,
            list(world.model._buffers), list(world.argument), set(world.entries), world.array.tolist(),
            bytes(world.bytes), Counted.calls, world.slotted.k, hasattr(world.slotted, "more"),
        )  # fmt: skip

    def step(x, argument):
        change(world)
        return x * world.by

    before = state()
    for _ in range(2):
        with pytest.raises(CaptureError, match=r"a step that (changes|keeps)"):
            torch.capture(step, backend="plain")(torch.ones(1), world.argument)
        assert state() == before


def test_what_a_step_has_changed_before_it_is_refused_is_as_it_was():
    some, table = [1], {"n": 0}

    def step(x, given):
        some.append(2)
        table["n"] += 1
        given["more"] = 3
        return x * x.sum().item()

    given = {}
    with pytest.raises(CaptureError, match=r"cannot capture item\(\)"):
        torch.capture(step, backend="plain")(torch.ones(3), given)
    assert (some, table, given) == ([1], {"n": 0}, {})


def test_what_a_refused_step_keeps_can_be_used():
    kept = [None] * 70_000  # so many that nobody watches them

    @functools.lru_cache
    def mask(size):
        return torch.ones(size) * 2

    def step(x):
        kept[0] = x * 3
        return x * mask(3)

    with pytest.raises(CaptureError, match="keeps a tensor"):
        torch.capture(step, backend="plain")(torch.ones(3))
    assert (kept[0] + 1).tolist() == [4.0] * 3
    assert (mask(3) * 2).tolist() == [4.0] * 3
    captured = torch.capture(lambda x: x * mask(3), backend="plain")
    assert [captured(torch.ones(3)).tolist() for _ in range(3)] == [[2.0] * 3] * 3


def test_what_a_refused_step_has_done_to_an_optimizer_is_as_it_was():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=torch.tensor(0.5), momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    calls = []

    def step(x, last):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()
        scheduler.step()
        if last:
            calls.append(1)

    captured = torch.capture(step, backend="plain")
    for _ in range(4):
        captured(torch.ones(3), False)

    def state():
        momentum, rate = optimizer.state[w]["momentum_buffer"], optimizer.param_groups[0]["lr"]
        return [(one.tolist(), one._version) for one in (w, momentum, rate)], scheduler.last_epoch

    before = state()
    with pytest.raises(CaptureError, match="changes calls"):
        captured(torch.ones(3), True)
    assert state() == before


def test_the_state_of_a_grad_scaler_that_a_step_changes_is_refused():
    model = nn.Linear(3, 3)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)

    def step(x):
        optimizer.zero_grad()
        scaler.scale(model(x).square().sum()).backward()
        scaler.unscale_(optimizer)

    with pytest.raises(CaptureError, match=r"changes scaler\._per_optimizer_states"):
        torch.capture(step, backend="plain", split=True)(torch.ones(2, 3))
    step(torch.ones(2, 3))  # which says that it has been called already, if the state is not as it was


def test_cached_parametrizations_are_eager():
    class Double(nn.Module):
        def forward(self, w):
            return w * 2

    def script(capture):
        model = nn.Linear(3, 3)
        nn.utils.parametrize.register_parametrization(model, "weight", Double())
        captured = capture(lambda x: model(x).detach())
        found = [captured(torch.ones(3)) for _ in range(3)]
        for _ in range(2):
            with nn.utils.parametrize.cached():
                model.weight
                with torch.no_grad():
                    model.parametrizations.weight.original.add_(1)
                found.append(captured(torch.ones(3)))
        return found

    compare(script)


def test_a_copy_of_a_captured_function_is_one_of_the_copy():
    class Trainer:
        def __init__(self):
            self.w = torch.zeros(3)
            self.step = torch.capture(self._step, backend="plain")

        def _step(self, x):
            self.w.add_(x)
            return self.w * 2

    one = Trainer()
    for _ in range(4):
        one.step(torch.ones(3))
    one.step.name = "step"
    two = copy.deepcopy(one)
    assert two.step.name == "step"
    for call in range(4):
        assert two.step(torch.ones(3)).tolist() == [2.0 * (5 + call)] * 3
    assert one.w.tolist() == [4.0] * 3
    assert two.w.tolist() == [8.0] * 3
