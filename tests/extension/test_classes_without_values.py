"""Classes of tensors upon tensors without values, beside torch where it is installed."""

from __future__ import annotations

import copy
import io
import pickle

import pytest

import retrograd


def tensor_class(torch, name, **body):
    """A class whose tensors are tensors without values that hold another one, `held`; one that pickles find."""

    def new(cls, held, *args, **kwargs):
        made = torch.Tensor._make_subclass(cls, held.to("meta"), held.requires_grad)
        made.held = held
        return made

    name = f"{name}_{torch.__name__}"
    if name not in globals():
        globals()[name] = type(name, (torch.Tensor,), {"__new__": new, "__module__": __name__, **body})
    return globals()[name]


def with_dispatch(torch):
    def dispatch(cls, func, types, args=(), kwargs=None):
        found = func(*[a.held if isinstance(a, cls) else a for a in args], **(kwargs or {}))
        return cls(found)

    return tensor_class(
        torch, "Dispatching", __torch_function__=torch._C._disabled_torch_function_impl,
        __torch_dispatch__=classmethod(dispatch),
    )  # fmt: skip


def with_slots(torch):
    return tensor_class(torch, "Slotted", __slots__=["held"], clone=lambda self: type(self)(self.held.clone()))


def test_a_class_with_dispatch(torch):
    cls = with_dispatch(torch)
    x = cls(torch.ones(2))
    assert type(x) is cls and x.device.type == "meta" and x.shape == (2,) and x.stride() == (1,)
    y = x * 2 + 1
    assert type(y) is cls and y.held.tolist() == [3.0, 3.0]
    x.requires_grad_()
    (x * 3).sum().backward()
    assert x.grad.held.tolist() == [3.0, 3.0]
    assert copy.deepcopy(cls(torch.ones(2))).held.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="already associated"):
        torch.Tensor._make_subclass(with_slots(torch), cls(torch.ones(2)))


def test_a_class_without_dispatch(torch):
    cls = with_slots(torch)
    x = cls(torch.ones(2, 3))
    assert isinstance(x, cls) and x.is_meta and x.shape == (2, 3) and x.held.tolist() == [[1.0] * 3] * 2
    for result in (x * 2, torch.add(x, 1), x.t(), torch.ones(2, device="meta").as_subclass(cls)):
        assert isinstance(result, cls) and result.is_meta
    assert type(x).__name__ == cls.__name__
    x.requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.is_meta and x.grad.shape == (2, 3)


def test_copies_have_attributes_and_slots(torch):
    x = with_slots(torch)(torch.ones(2))
    x.word = ["a"]
    found = copy.deepcopy(x)
    assert isinstance(found, with_slots(torch)) and found.held.tolist() == [1.0, 1.0] and found.held is not x.held
    assert found.word == ["a"] and found.word is not x.word


@pytest.mark.parametrize("way", ["pickle", "save", "save_safely"])
def test_pickles_have_attributes_and_slots(torch, way):
    cls = with_slots(torch)
    x = cls(torch.ones(2))
    x.word = "a"
    file = io.BytesIO()
    if way == "pickle":
        found = pickle.loads(pickle.dumps(x))
    else:
        torch.save(x, file)
        file.seek(0)
        with torch.serialization.safe_globals([cls]):
            found = torch.load(file, weights_only=way == "save_safely")
    assert isinstance(found, cls) and found.is_meta and found.held.tolist() == [1.0, 1.0] and found.word == "a"


def test_slots_and_states_of_classes_with_values(torch):
    def new_empty(self, shape):
        return torch.Tensor(*shape).as_subclass(type(self))

    name = f"Plain_{torch.__name__}"
    cls = globals().setdefault(name, type(name, (torch.Tensor,), {
        "__slots__": ["kept"], "__module__": __name__, "new_empty": new_empty,
    }))  # fmt: skip
    x = torch.ones(2).as_subclass(cls)
    x.kept, x.word = [1], "a"
    assert copy.deepcopy(x).kept == [1]
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    found = torch.load(file, weights_only=False)
    assert type(found) is cls and found.kept == [1] and found.word == "a" and found.tolist() == [1.0, 1.0]

    name = f"Stated_{torch.__name__}"
    cls = globals().setdefault(name, type(name, (torch.Tensor,), {
        "__module__": __name__, "__getstate__": lambda self: {"of": self.word},
        "__setstate__": lambda self, state: setattr(self, "word", state["of"] * 2),
    }))  # fmt: skip
    x = torch.ones(2).as_subclass(cls)
    x.word = "a"
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    assert torch.load(file, weights_only=False).word == "aa"


def test_of_retrograd_the_class_is_one_of_the_class() -> None:
    x = with_slots(retrograd)(retrograd.ones(2))
    assert issubclass(type(x), with_slots(retrograd)) and type(x * 2) is type(x)
