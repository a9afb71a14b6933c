"""Arguments of captured steps: containers and objects of all kinds, memory that is shared, what steps do to them."""

import collections
import dataclasses
import functools
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from capture.side_by_side import compare
from retrograd import nn
from retrograd.capture import CaptureError

Pair = collections.namedtuple("Pair", "x y")


@dataclasses.dataclass
class Batch:
    x: Any
    scale: float = 1.0

    def scaled(self):
        return self.x * self.scale


@dataclasses.dataclass(slots=True)
class Slotted:
    x: Any


def tensor(number):
    return torch.full((3,), number + 1.0)


@pytest.mark.parametrize(
    "step, arguments",
    [
        (lambda b: b.x * 2 + b.y, lambda i: (Pair(tensor(i), tensor(2 * i)),)),
        (lambda b: b.scaled(), lambda i: (Batch(tensor(i), 1.0 + (i > 3)),)),
        (lambda b: b.x * 2, lambda i: (Slotted(tensor(i)),)),
        (lambda b: b["x"] * 2, lambda i: (collections.OrderedDict(x=tensor(i)),)),
        (lambda x, part: x[part] * 2, lambda i: (tensor(i).cumsum(0), slice(i % 2, i % 2 + 2))),
        (lambda x, numbers: sum([x * n for n in numbers]), lambda i: (tensor(i), range(1 + i % 3))),
        (lambda x, number: x * float(number), lambda i: (tensor(i), np.float32(i // 4))),
        (lambda x, k: x * x.factor, lambda i: (with_factor(tensor(i), float(i // 4)), 0)),
        (lambda x, y: x * 2 + y, lambda i: (torch.arange(12.0).view(2, 6)[:, :3] + i, torch.ones(2, 6)[:, 3:])),
    ],
    ids=["namedtuple", "dataclass", "slots", "dict", "slice", "range", "numpy number", "attribute", "halves"],
)
def test_arguments_are_taken_apart(step, arguments):
    """None of them is taken for the one of an earlier call."""
    compare(lambda capture: [function(*arguments(i)) for function in [capture(step)] for i in range(9)])


class Celsius(float):
    """With an attribute."""


class Quiet(float):
    def __repr__(self):
        return "quiet"


class Scaled(list):
    __slots__ = ("scale",)


def made(cls, content, **attributes):
    one = cls(content)
    for name, value in attributes.items():
        setattr(one, name, value)
    return one


@dataclasses.dataclass(eq=False)
class Node:
    x: Any
    parent: Any = None
    children: list = dataclasses.field(default_factory=list)

    def total(self):
        return self.x + sum([child.total() for child in self.children])


def family(call):
    root = Node(tensor(call))
    root.children += [Node(tensor(i), root) for i in range(2 + call // 5)]
    return root


def nested(depth):
    found = [1]
    for _ in range(depth):
        found = [found]
    return found


def doubled(times):
    found = [1]
    for _ in range(times):
        found = [found, found]
    return found


def in_itself(x):
    found = [x]
    found.append(found)
    return found


@pytest.mark.parametrize(
    "step, arguments",
    [
        (lambda t: sum([k * v for k, v in t.items()]), lambda i: ({[1, 1.0, True][i // 3]: torch.tensor([True])},)),
        (lambda x, c: x * c * c.unit, lambda i: (tensor(i), made(Celsius, 2.0, unit=1 + i // 5))),
        (lambda x, c: x * c, lambda i: (tensor(i), Quiet(1 + i // 5))),
        (lambda part: part[0] * part.scale, lambda i: (made(Scaled, [tensor(i)], scale=1 + i // 5),)),
        (lambda x, n: x * (n % 7), lambda i: (tensor(i), 10**5000 + i // 5)),
        (lambda part: part[1][1][0] * 2, lambda i: (in_itself(tensor(i)),)),
        (lambda root: root.total(), lambda i: (family(i),)),
        (lambda x, shared: x * 2, lambda i: (tensor(i), doubled(60))),
        (lambda x, one, two: x * (1 + (one is two)), lambda i: (tensor(i), part := [1], part if i > 4 else [1])),
    ],
    ids=[
        "classes of keys", "a number with an attribute", "a number with a repr of its own", "slots of a list",
        "a huge number", "a list in itself", "nodes with parents", "lists that are shared", "one list twice",
    ],
)  # fmt: skip
def test_arguments_that_are_odd(step, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # lists with slots are known by identity
        compare(
            lambda capture: [function(*arguments(i)) for function in [capture(step)] for i in range(9)], replays=False
        )


def test_arguments_that_are_nested_too_deep_end_in_eager_calls_and_one_warning():
    captured = torch.capture(lambda x, part: x * 2, backend="plain")
    with pytest.warns(UserWarning, match=r"nested more than 200 deep.*eagerly") as found:
        assert [captured(tensor(0), nested(5000)).tolist() for _ in range(4)] == [[2.0] * 3] * 4
    assert len(found) == 1
    with pytest.raises(CaptureError, match="nested more than 200 deep"):
        captured.prepare(tensor(0), nested(5000))


def test_an_argument_in_itself_whose_tensors_are_differentiated():
    """Its copy with other tensors would have to be in itself."""
    captured = torch.capture(lambda part, x: part[0] * x, backend="plain")
    x = torch.ones(3, requires_grad=True)
    with pytest.raises(CaptureError, match="contains itself"):
        captured(in_itself(x * 2), x)
    empty = in_itself(2.0)
    for _ in range(3):
        captured(empty, x * 2).sum().backward()
    assert x.grad.tolist() == [12.0] * 3


def test_slots_of_a_data_class_that_a_refused_step_changes():
    one = Slotted(1.0)
    with pytest.raises(CaptureError, match="changes"):
        torch.capture(lambda one, x: (setattr(one, "x", 2.0), x * 2)[1], backend="plain")(one, tensor(0))
    assert one.x == 1.0


def with_factor(x, factor):
    x.factor = factor
    return x


@pytest.mark.parametrize("given", ["module", "settings", "array", "partial", "list of modules"])
def test_things_among_the_arguments_are_looked_into(given):
    def script(capture):
        model = nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))
        settings = Batch(None)
        array = np.ones(3)
        table = {"by": 1.0}
        step, thing = {
            "module": (lambda m, x: m(x).detach(), model),
            "settings": (lambda s, x: x * s.scale, settings),
            "array": (lambda a, x: x * float(a[0]), array),
            "partial": (lambda f, x: f(x), functools.partial(lambda table, x: x * table["by"], table)),
            "list of modules": (lambda ms, x: ms[0](x).detach(), [model]),
        }[given]
        captured = capture(step)
        found = []
        for call in range(9):
            if call == 5:
                model.eval()
                settings.scale = array[0] = table["by"] = 3.0
            found.append(captured(thing, tensor(call)))
        return found

    compare(script)


def test_a_model_and_its_optimizer_as_arguments():
    def script(capture):
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)

        def step(model, optimizer, x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        captured = capture(step)
        found = []
        for call in range(8):
            found.append(captured(model, optimizer, tensor(call)))
            scheduler.step()
            if call == 5:
                optimizer.add_param_group({"params": [torch.zeros(2, requires_grad=True)]})
        return found, list(model.parameters()), [p.grad for p in model.parameters()]

    compare(script)


def test_a_captured_method_has_programs_for_each_object():
    def script(capture):
        class Trainer:
            def __init__(self, factor):
                self.factor = factor

            @capture
            def step(self, x):
                return x * self.factor

        one, two = Trainer(1.0), Trainer(7.0)
        found = []
        for call in range(8):
            if call == 5:
                one.factor = 2.0
            found += [one.step(tensor(call)), two.step(tensor(call))]
        return found

    compare(script)


@pytest.mark.parametrize(
    "step",
    [
        lambda x, log, settings: (log.append(1.0), x * 2)[1],
        lambda x, log, settings: (settings.__setitem__("n", 3), x * 2)[1],
        lambda x, log, settings: (settings.update(y=x * 2), x * 2)[1],
    ],
    ids=["append", "number", "tensor"],
)
def test_containers_that_a_step_changes_are_refused(step):
    log, settings = [], {"n": 0}
    with pytest.raises(CaptureError, match=r"cannot capture a step that (changes (log|settings)|keeps a tensor)"):
        torch.capture(step, backend="plain")(tensor(0), log, settings)


def test_numbers_that_are_others_each_time_end_in_eager_calls_and_one_warning():
    captured = torch.capture(lambda x, beta: x * beta, backend="plain")
    with pytest.warns(UserWarning) as said:
        for number in range(30):
            assert torch.equal(captured(tensor(0), number / 2), tensor(0) * (number / 2))  # this line
    assert len(said) == 1
    assert "the argument 'beta' was another each time" in str(said[0].message)
    assert len(captured._entries) == 8
    with open(said[0].filename) as file:
        assert "# this line" in file.readlines()[said[0].lineno - 1]


def test_shapes_that_are_others_each_time_are_captured_so_many_times():
    captured = torch.capture(lambda x: x * 2, backend="plain")
    with pytest.warns(UserWarning, match="was captured 64 times, since the shape") as said:
        for size in range(1, 80):
            assert torch.equal(captured(torch.ones(size)), torch.full((size,), 2.0))
    assert len(said) == 1
    assert len(captured._entries) == 64


@pytest.mark.parametrize("after", [False, True])
def test_hooks_of_arguments_are_watched(after):
    def script(capture):
        factors = [1.0]

        def step(x):
            (x * x).sum().backward()

        captured = capture(step)
        found = []
        for call in range(9):
            x = tensor(call).requires_grad_()
            if call > 3 and after:
                x.register_post_accumulate_grad_hook(lambda p: (p.grad.mul_(factors[0]), None)[1])
            elif call > 3:
                x.register_hook(twice)
            captured(x)
            found.append(x.grad)
        return found

    compare(script)


def test_devices_are_known_by_value():
    captured = torch.capture(lambda x, device: x.to(device) * 2, backend="plain")
    for _ in range(12):
        assert captured(torch.ones(3), torch.device("cpu")).tolist() == [2.0] * 3
    assert captured.source


def twice(grad):
    return grad * 2


def test_an_inference_tensor_is_no_other():
    w = torch.ones(3, requires_grad=True)
    captured = torch.capture(lambda x: torch.autograd.grad((w * x).sum(), w)[0], backend="plain")
    for call in range(3):
        captured(tensor(call))
    with torch.inference_mode():
        x = tensor(0)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        captured(x)


# ------------------------------------------------------------------------------------------------------- shared memory


def test_an_argument_that_is_a_tensor_of_the_world():
    def script(capture):
        one, two = nn.Linear(3, 3), nn.Linear(3, 3)
        add = capture(lambda w: (w * 2 + one.weight).detach())
        w = torch.ones(3, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.1)

        def step(p):
            optimizer.zero_grad()
            (p * p).sum().backward()
            optimizer.step()

        train = capture(step)
        found = [add(model.weight) for model in (one, two, one) for _ in range(4)]
        for _ in range(5):
            train(w)
            found.append(w.detach().clone())
        return found, w.grad, w._version

    compare(script)


@pytest.mark.parametrize("first", ["own", "view"])
def test_an_argument_that_is_a_view_of_the_world(first):
    def script(capture):
        buffer, other = torch.zeros(3), torch.zeros(3)

        def step(x):
            buffer.add_(1)
            return x * 2

        captured = capture(step)
        given = {"own": [lambda: other.view(3), lambda: buffer.view(3)]}
        given["view"] = given["own"][::-1]
        return [captured(one()) for one in given[first] * 2 for _ in range(3)], buffer, buffer._version

    compare(script)


def test_an_argument_that_is_a_view_of_the_world_in_the_second_call():
    def script(capture):
        table = torch.ones(4, 3)

        def step(x):
            return x * 2 if x._base is table else x * 3 + table.sum()

        captured = capture(step)
        own = torch.zeros(4, 3)
        return [captured(one) for one in [own[1], table[1], table[2]] * 4]

    compare(script)


def test_arguments_that_share_memory():
    def script(capture):
        both = capture(lambda x, y: x * 2 + y)
        table = torch.arange(12.0).view(2, 6)
        return [both(table[:, :3] + 0, table[:, 3:]) for _ in range(3)] + [
            both(table[:, i : i + 3], table[:, 3 - i : 6 - i]) for i in (0, 1, 1, 1, 2)
        ]

    compare(script)

    def step(x, y):
        x.add_(1)
        return y * 2

    z = torch.zeros(6)
    captured = torch.capture(step, backend="plain")
    for _ in range(3):
        captured(torch.zeros(6)[:3], torch.zeros(6)[:3])
    for x, y in ((z[:3], z[:3].view(3)), (z[:3], z[1:4])):
        with pytest.raises(CaptureError, match="writes to an argument which shares memory with another one"):
            captured(x, y)
    assert z.tolist() == [0.0] * 6


def test_a_part_of_a_table_that_the_step_reads_too():
    def script(capture):
        table, total = torch.randn(10, 3), torch.zeros(3)

        def step(x):
            total.add_(x.sum(0))
            return table[8:].mean() + x.sum()

        captured = capture(step)
        return [captured(table[i : i + 2]) for i in range(6)], total

    compare(script, replays=False)
