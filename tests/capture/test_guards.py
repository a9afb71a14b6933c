"""Each guard of captured programs: what changes is seen, and leads to another program or to an error."""

import copy
from collections import deque
from types import ModuleType

import numpy as np
import pytest

import retrograd as torch
from capture.side_by_side import compare
from retrograd import nn
from retrograd.capture import CaptureError


def counted(function):
    """The captured function, and one that tells how many programs and recordings it has."""
    captured = torch.capture(function, backend="plain")
    return captured, lambda: sum(len(entries) for entries in captured._entries.values())


def test_strides_have_programs_of_their_own():
    f, programs = counted(lambda x: x.reshape(6) * 2)
    x = torch.arange(6.0).reshape(2, 3)
    wide = torch.arange(12.0).reshape(2, 6)[:, ::2]
    for _ in range(3):
        for one in (x, x.t(), wide, torch.arange(3.0).expand(2, 3)):
            assert torch.equal(f(one), one.reshape(6) * 2)
    assert programs() == 4


def test_requires_grad_of_arguments_is_watched():
    f, programs = counted(lambda x: x * x)
    for _ in range(3):
        for requires_grad in (False, True):
            x = torch.ones(2, requires_grad=requires_grad)
            y = f(x)
            assert y.requires_grad == requires_grad
            if requires_grad:
                y.sum().backward()
                assert x.grad.tolist() == [2.0, 2.0]
    assert programs() == 2


def test_modes_are_watched():
    w = torch.ones(2, requires_grad=True)

    @torch.capture(backend="plain")
    def f(x):
        return (w * x).detach().clone() if not torch.is_grad_enabled() else torch.autograd.grad((w * x).sum(), w)[0] * 3

    with torch.no_grad():
        assert [f(torch.full((2,), 5.0)).tolist() for _ in range(3)] == [[5.0, 5.0]] * 3
    assert [f(torch.full((2,), 5.0)).tolist() for _ in range(3)] == [[15.0, 15.0]] * 3
    with torch.inference_mode():
        found = [f(torch.full((2,), 5.0)) for _ in range(3)]
    assert [one.tolist() for one in found] == [[5.0, 5.0]] * 3


def test_the_default_dtype_is_watched():
    f = torch.capture(lambda: torch.ones(2) / 3, backend="plain")
    assert [f().dtype for _ in range(3)] == [torch.float32] * 3
    torch.set_default_dtype(torch.float64)
    try:
        assert [f().dtype for _ in range(3)] == [torch.float64] * 3
        assert f()[0].item() == 1 / 3
    finally:
        torch.set_default_dtype(torch.float32)


def test_state_is_read_where_it_lies():
    """A tensor that was written to since is another value of the same program; another tensor is another program."""
    model = nn.Linear(2, 1, bias=False)
    f, programs = counted(lambda x: model(x).detach().clone())
    x = torch.ones(1, 2)
    for value in (1.0, 2.0, 3.0):
        with torch.no_grad():
            model.weight.fill_(value)
        assert f(x).item() == 2 * value
    assert programs() == 1
    model.weight = nn.Parameter(torch.full((1, 2), 7.0))
    assert [f(x).item() for _ in range(3)] == [14.0] * 3
    assert programs() == 2


def test_versions_go_on_as_in_an_eager_run():
    buffer = torch.zeros(2)
    f = torch.capture(lambda x: buffer.add_(x).mul_(2).sum(), backend="plain")
    versions = []
    for _ in range(5):
        f(torch.ones(2))
        versions.append(buffer._version)
    assert versions == [2, 4, 6, 8, 10]
    w = torch.ones(2, requires_grad=True)
    y = w * buffer  # saves the buffer
    f(torch.ones(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("writes", [lambda grad: None, lambda grad: grad.zero_()], ids=["added to", "and zeroed"])
def test_versions_of_gradients_go_on_as_in_an_eager_run(writes):
    def script(capture):
        w = torch.ones(2, requires_grad=True)

        def step(x):
            (w * x).sum().backward()
            writes(w.grad)
            return x * 2

        captured, versions = capture(step), []
        for _ in range(7):
            captured(torch.ones(2))
            versions.append(w.grad._version)
        return versions

    compare(script)


def test_attributes_and_module_hooks_are_watched():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.factor = 2

        def forward(self, x):
            return x * self.factor

    model = Scaled()
    f, programs = counted(lambda x: model(x).clone())
    assert [f(torch.ones(1)).item() for _ in range(3)] == [2.0] * 3
    model.factor = 3
    assert [f(torch.ones(1)).item() for _ in range(3)] == [3.0] * 3
    handle = model.register_forward_hook(lambda module, args, result: result + 1)
    assert [f(torch.ones(1)).item() for _ in range(3)] == [4.0] * 3
    handle.remove()
    assert f(torch.ones(1)).item() == 3.0
    assert programs() >= 3


def test_too_many_programs_are_said_once_with_the_guard_and_the_line():
    numbers = [0]
    f = torch.capture(lambda x: x + numbers[0], backend="plain")
    with pytest.warns(UserWarning) as said:
        for number in range(12):
            numbers[0] = number
            f(torch.zeros(1))  # this line
    assert len(said) == 1
    assert "numbers[0]" in str(said[0].message)
    with open(said[0].filename) as file:
        assert "# this line" in file.readlines()[said[0].lineno - 1]


@pytest.mark.parametrize("name", ["append", "number", "attribute"])
def test_hooks_that_act_outside_are_refused(name):
    seen, total, holder = [], {"calls": 0}, nn.Module()
    holder.count = 0
    w = torch.ones(2, requires_grad=True)

    def hook(grad):
        if name == "append":
            seen.append(1)
        elif name == "number":
            total["calls"] += 1
        else:
            holder.count += 1
        return grad * 2

    def step(x):
        y = w * x
        y.register_hook(hook)
        y.sum().backward()

    with pytest.raises(CaptureError, match=r"seen|total|holder"):
        torch.capture(step, backend="plain")(torch.ones(2))
    assert w.grad is None


def test_hooks_that_compute_are_captured():
    found = []
    for captured in (False, True):
        w = torch.ones(2, requires_grad=True)

        def step(x, w=w):
            w.grad = None
            y = w * x
            y.register_hook(lambda grad: grad * 3)
            y.sum().backward()
            return w.grad.clone()

        step = torch.capture(step, backend="plain") if captured else step
        found.append([step(torch.full((2,), float(i))) for i in range(5)])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.from_numpy(np.sqrt(x.numpy())),
        lambda x: torch.tensor(np.asarray(x) + 1),
        lambda x: torch.tensor(float(x.sum())),
        lambda x: torch.zeros(int(x.sum())),
        lambda x: x[x > 0],
        lambda x: x.masked_select(x > 0),
        lambda x: torch.unique(x),
        lambda x: torch.nn.functional.one_hot(x.long()),
        lambda x: [y for y in x if y > 0],
    ],
)
def test_foreign_calls_and_sizes_that_hang_on_values_name_their_line(function):
    x = torch.ones(3)
    with pytest.raises(CaptureError, match=r"cannot capture .*test_guards\.py:\d+"):
        torch.capture(function, backend="plain")(x)
    assert type(x._memory_) is np.ndarray, "the argument was not given back"
    assert (x + 1).sum().item() == 6


def test_a_mask_that_stays_may_index():
    mask = torch.tensor([True, False, True])
    f = torch.capture(lambda x: x[mask] * 2, backend="plain")
    assert [f(torch.arange(3.0)).tolist() for _ in range(4)] == [[0.0, 4.0]] * 4
    mask.fill_(True)
    with pytest.raises(CaptureError, match="its size hangs on values"):
        f(torch.arange(3.0))


def test_an_exception_of_the_user_in_the_middle_leaves_everything_as_it_was():
    buffer, w = torch.zeros(2), torch.ones(2, requires_grad=True)
    fail = [True]

    def step(x):
        buffer.add_(1)
        (w * x).sum().backward()
        if fail[0]:
            raise KeyError("mine")
        return buffer.clone()

    f = torch.capture(step, backend="plain")
    with pytest.raises(KeyError, match="mine"):
        f(torch.ones(2))
    assert buffer.tolist() == [0.0, 0.0]
    assert buffer._version == 0
    assert w.grad is None
    fail[0] = False
    assert f(torch.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("how", ["zero_grad", "hook", "by hand", "put back"])
def test_gradients_that_are_gone_after_the_step(how, check):
    """A step that ends without .grad leaves none, and one that finds a .grad adds to it, as an eager one does."""

    def make():
        torch.manual_seed(0)
        model = nn.Linear(2, 2)
        optimizers = [torch.optim.SGD([p], 0.1) for p in model.parameters()]

        def update(parameter):
            next(o for o in optimizers if o.param_groups[0]["params"][0] is parameter).step()
            parameter.grad = None

        if how == "hook":
            for parameter in model.parameters():
                parameter.register_post_accumulate_grad_hook(update)

        def step(x):
            kept = [p.grad for p in model.parameters()]
            if how == "put back":
                model.zero_grad()
            model(x).sum().backward()
            if how == "by hand":
                with torch.no_grad():
                    for p in model.parameters():
                        p.sub_(0.1 * p.grad)
                        p.grad = None
            elif how != "hook":
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()
            if how == "put back":
                for p, grad in zip(model.parameters(), kept, strict=True):
                    p.grad = grad

        return model, step

    (model, step), (twin, eager) = make(), make()
    captured = torch.capture(step, backend="plain", check=check)
    for call in range(9):
        x = torch.full((1, 2), float(call))
        if call in (5, 7) and how != "hook":
            model(x).sum().backward()
            twin(x).sum().backward()
        captured(x)
        eager(x)
        for one, two in zip(model.parameters(), twin.parameters(), strict=True):
            assert torch.equal(one, two)
            assert (one.grad is None) == (two.grad is None)
            assert one.grad is None or torch.equal(one.grad, two.grad)


def test_an_argument_that_requires_grad_since_the_step():
    w = torch.tensor([1.0, 2.0], requires_grad=True)

    @torch.capture(backend="plain")
    def step(x):
        x.requires_grad_()
        (w * x.square()).sum().backward()

    for call in range(5):
        w.grad = None
        x = torch.full((2,), float(call))
        step(x)
        assert x.requires_grad
        assert x.grad.tolist() == [2.0 * call, 4.0 * call]
        assert w.grad.tolist() == [call**2] * 2


@pytest.mark.parametrize(
    "read",
    [
        lambda table, i: table[i] * 1,
        lambda table, i: table[i, 1] * 1,
        lambda table, i: table[:, i % 2] * 1,
        lambda table, i: table[i, None] * 1,
        lambda table, i: table.index_put((torch.tensor([0]),), table[i]),
    ],
)
def test_an_index_without_dimensions_is_a_value(read):
    """It is refused, or watched: the program for one number is not taken for another one."""
    table = torch.arange(8.0).reshape(4, 2)
    numbers = [torch.tensor(i) for i in (1, 1, 1, 2, 3, 1, 0)]
    with pytest.raises(CaptureError, match="which needs the value of a tensor"):
        torch.capture(read, backend="plain")(table, numbers[0])
    captured = torch.capture(read, backend="plain", split=True)
    for i in numbers:
        assert torch.equal(captured(table, i), read(table, i))


def test_writing_at_an_index_without_dimensions():
    table = torch.zeros(4, 2)

    @torch.capture(backend="plain", split=True)
    def step(i, x):
        table[i] = x

    for i in (1, 1, 1, 2, 3, 1):
        table.zero_()
        step(torch.tensor(i), torch.ones(2))
        assert table.sum(1).tolist() == [2.0 * (k == i) for k in range(4)]


class Settings:
    """What a script has in its main module."""

    factor = 1.0
    shared = {"bias": 0.0}

    def __init__(self):
        self.scale = 1.0

    @property
    def both(self):
        return self.scale * OUTSIDE["by"]

    def __call__(self, y):
        return y * self.both * self.factor + self.shared["bias"]


OUTSIDE = {"by": 1.0}


@pytest.mark.parametrize("module", ["__main__", "settings"])
def test_objects_of_the_users_classes_are_watched(monkeypatch, module):
    monkeypatch.setattr(Settings, "__module__", module)
    settings = Settings()
    table = np.array([1.0, 2.0])
    f, programs = counted(lambda x: settings(x) + float(table[0]))

    def check():
        for value in (1.0, 2.0, 3.0):
            x = torch.full((2,), value)
            expected = x * settings.scale * OUTSIDE["by"] * settings.factor + settings.shared["bias"] + float(table[0])
            assert torch.equal(f(x), expected)

    check()
    settings.scale = 2.0  # of the object
    check()
    monkeypatch.setitem(OUTSIDE, "by", 3.0)  # what its methods read
    check()
    monkeypatch.setattr(Settings, "factor", 4.0)  # of its class
    check()
    monkeypatch.setitem(Settings.shared, "bias", 5.0)
    check()
    table[0] = 6.0  # a small array
    check()
    assert programs() == 6


def test_hooks_that_come_later_are_seen():
    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())

    def run(x):
        model.zero_grad()
        y = model(x)
        y.sum().backward()
        return y.detach()

    captured = torch.capture(run, backend="plain")

    def check():
        for number in range(3):
            x = torch.full((1, 2), 1.0 + number)
            y, grad = captured(x), model[0].weight.grad
            assert torch.equal(y, run(x))
            assert torch.equal(grad, model[0].weight.grad)

    check()
    handles = [model[0].weight.register_hook(lambda grad: grad * 2)]
    check()
    handles.append(model[0].weight.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(3), None)[1]))
    check()
    handles.append(nn.modules.module.register_module_forward_hook(lambda module, args, result: result * 2))
    check()
    for handle in handles:
        handle.remove()
        check()


class Space:
    """A class that is used as a place for settings."""

    by = 2.0

    class Inner:
        by = 1.0


class Slotted:
    __slots__ = ("by",)


def scaled(x):
    return x * scaled.by


@pytest.mark.parametrize("where", ["class", "inner class", "python module", "slots", "deque", "set", "function"])
def test_other_places_for_numbers_are_watched(monkeypatch, where):
    place = ModuleType("settings")
    place.by = 1.0
    slotted = Slotted()
    slotted.by = 1.0
    queue, numbers = deque([1.0]), {1.0}
    monkeypatch.setattr(scaled, "by", 1.0, raising=False)
    function, change = {
        "class": (lambda x: x * Space.by, lambda: monkeypatch.setattr(Space, "by", 3.0)),
        "inner class": (lambda x: x * Space.Inner.by, lambda: monkeypatch.setattr(Space.Inner, "by", 3.0)),
        "python module": (lambda x: x * place.by, lambda: setattr(place, "by", 3.0)),
        "slots": (lambda x: x * slotted.by, lambda: setattr(slotted, "by", 3.0)),
        "deque": (lambda x: x * queue[0], lambda: queue.appendleft(3.0)),
        "set": (lambda x: x * max(numbers), lambda: numbers.add(3.0)),
        "function": (scaled, lambda: setattr(scaled, "by", 3.0)),
    }[where]
    f, programs = counted(function)
    for _ in range(2):
        for value in (1.0, 2.0, 4.0):
            x = torch.full((2,), value)
            assert torch.equal(f(x), function(x))
        change()
    assert programs() == 2


def test_attributes_that_no_function_names_may_change():
    class Trainer:
        def __init__(self):
            self.scale, self.calls = 1.0, 0

        def step(self, x):
            return x * self.scale

    trainer = Trainer()
    f, programs = counted(trainer.step)
    for value in range(12):
        trainer.calls += 1
        assert torch.equal(f(torch.full((2,), float(value))), torch.full((2,), float(value)))
    assert programs() == 1


READS = {
    "item": lambda t: t.item(),
    "float": float,
    "an index": lambda t: [1, 2, 3, 4, 5][t],
    "tolist": lambda t: t.tolist(),
    "a format": lambda t: float(f"{t:.1f}"),
    "str": lambda t: len(str(t)),
    "a fill value": lambda t: torch.full((3,), t),
    "an entry": lambda t: torch.tensor([t, t, t]),
}


@pytest.mark.parametrize("name", READS)
def test_values_that_are_read_before_an_operator_sees_the_tensor(name):
    read, state = READS[name], torch.tensor(2)

    @torch.capture
    def step(x):
        return x * read(state)

    with pytest.raises(CaptureError, match=r"cannot capture .* at .*test_guards.py:\d+ in"):
        step(torch.ones(3))


@pytest.mark.parametrize("whose", ["argument", "world"])
def test_values_of_gradients_that_are_read(whose):
    leaf = torch.ones(3, requires_grad=True)
    leaf.grad = torch.ones(3)

    @torch.capture
    def step(x, w):
        return x * (w if whose == "argument" else leaf).grad.tolist()[0]

    with pytest.raises(CaptureError, match=r"cannot capture tolist\(\)"):
        step(torch.ones(3), leaf)


def test_learning_rates_that_are_tensors_and_scheduled_inside():
    def script(capture):
        model = nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.5))
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            scheduler.step()

        captured = capture(step)
        for call in range(6):
            captured(torch.full((1, 3), float(call)))
        return optimizer.param_groups[0]["lr"], scheduler.get_last_lr(), list(model.parameters())

    compare(script)


def test_learning_rates_that_are_tensors_are_live():
    def script(capture):
        rate, model = torch.tensor(0.5), nn.Linear(3, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)

        def step(x):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
            rate.mul_(0.5)

        captured = capture(step)
        for call in range(6):
            if call == 4:
                rate.fill_(0.125)
            captured(torch.full((1, 3), float(call)))
        return rate, list(model.parameters())

    compare(script)


@pytest.mark.parametrize("flag", [False, True])
def test_requires_grad_of_the_world_that_a_step_changes_is_refused(flag):
    state = torch.ones(3, requires_grad=not flag)

    @torch.capture
    def step(x):
        state.requires_grad_(flag)
        return x * 2

    with pytest.raises(CaptureError, match="requires_grad of a tensor of shape"):
        step(torch.ones(3))
    assert state.requires_grad is not flag


def test_flags_that_are_put_back_are_as_they_were():
    """As GANs do it."""

    def script(capture):
        judge, maker = nn.Linear(2, 1), nn.Linear(3, 2)

        def step(x):
            judge.requires_grad_(False)
            maker.zero_grad()
            judge(maker(x)).sum().backward()
            judge.requires_grad_(True)

        captured = capture(step)
        for call in range(5):
            captured(torch.full((1, 3), float(call)))
        return [one.grad for one in maker.parameters()], [one.requires_grad for one in judge.parameters()]

    compare(script)


@pytest.mark.parametrize("whose", ["argument", "world"])
def test_histories_that_stay_are_refused(whose):
    weight, state = torch.ones(3, requires_grad=True), torch.zeros(3)

    @torch.capture
    def step(x):
        (x if whose == "argument" else state).mul_(weight)

    given = torch.ones(3)
    with pytest.raises(CaptureError, match="cannot capture a step that changes"):
        step(given)
    assert not given.requires_grad
    assert not state.requires_grad


def test_a_gradient_that_is_an_argument_is_refused():
    weight = torch.ones(3, requires_grad=True)

    @torch.capture
    def step(x):
        weight.grad = x

    with pytest.raises(CaptureError, match=r"a \.grad that is memory of an argument"):
        step(torch.ones(3))
    assert weight.grad is None


def test_copies_of_tensors_that_no_operator_has_seen():
    def script(capture):
        state, found = torch.ones(3), []
        step = capture(lambda x: x * copy.deepcopy([state])[0])
        for call in range(7):
            found.append(step(torch.ones(3)))
            state.add_(call // 4)
        return found

    compare(script)


def test_where_arguments_lie_is_watched_if_a_step_asks():
    def script(capture):
        step = capture(lambda x: x * x.storage_offset())
        parts = [torch.ones(9)[:3], torch.ones(12)[4:7]]
        return [step(parts[call // 4]) for call in range(8)]

    compare(script)


@pytest.mark.parametrize("read", [lambda w: w.tolist(), lambda w: w.grad.tolist()])
def test_values_that_are_read_after_an_optimizers_step(read):
    weight = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.0)  # as schedules begin that warm up

    @torch.capture
    def step(x):
        optimizer.zero_grad()
        (weight * x).sum().backward()
        optimizer.step()
        return x * read(weight)[0]

    with pytest.raises(CaptureError, match=r"cannot capture tolist\(\)"):
        step(torch.ones(3))
