"""save and load: what comes back, what is shared, what is refused."""

from __future__ import annotations

import io
import os
import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch


class Plain:
    def __init__(self) -> None:
        self.x = torch.ones(2)


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("echo gotcha > /dev/null",)


def again(obj: Any, **kwargs: Any) -> Any:
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    result = torch.load(file, **kwargs)
    assert file.read() == b""
    return result


@pytest.mark.parametrize("weights_only", [True, False])
@pytest.mark.parametrize(
    "tensor",
    [
        torch.tensor(3.5),
        torch.arange(6).reshape(2, 3),
        torch.arange(6.0).reshape(2, 3).t(),
        torch.zeros(0, 3),
        torch.tensor([True, False]),
        torch.tensor([1 + 2j]),
        torch.ones(2, dtype=torch.float16),
        torch.arange(10)[2:8:2],
        torch.ones(1).expand(3),
    ],
)
def test_tensors(tensor: Any, weights_only: bool) -> None:
    other = again(tensor, weights_only=weights_only)
    assert other.dtype == tensor.dtype and other.shape == tensor.shape and other.stride() == tensor.stride()
    assert (other == tensor).all() and type(other) is torch.Tensor


def test_plain_values() -> None:
    obj = {"a": [1, 2.5, None, "text", b"bytes", (True, 1j), {3}], "b": torch.float64, "c": torch.Size([1, 2])}
    obj["d"] = torch.device("cpu")
    other = again(obj)
    assert other == obj and type(other["c"]) is torch.Size and other["b"] is torch.float64


def test_memory_is_shared_again() -> None:
    x = torch.arange(6.0)
    views = [x, x[2:4], x.reshape(2, 3), x]
    a, b, c, d = again(views)
    assert a is d
    a[2] = 50
    assert b[0] == 50 and c[0, 2] == 50


def test_requires_grad_and_parameters() -> None:
    x, p = again([torch.ones(1, requires_grad=True), torch.nn.Parameter(torch.ones(1), requires_grad=False)])
    assert x.requires_grad and x.is_leaf
    assert type(p) is torch.nn.Parameter and not p.requires_grad
    result = again(torch.ones(1, requires_grad=True) * 2)
    assert result.requires_grad and result.is_leaf


def test_state_dicts(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    path = tmp_path / "checkpoint"
    torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, path)
    saved = torch.load(str(path))
    assert type(saved["net"]) is OrderedDict and "0" in saved["net"]._metadata
    other = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
    other.load_state_dict(saved["net"])
    torch.optim.Adam(other.parameters()).load_state_dict(saved["optimizer"])
    assert (other[0].weight == net[0].weight).all()


@pytest.mark.parametrize("weights_only", [True, False])
def test_several_objects_in_one_file(tmp_path: Path, weights_only: bool) -> None:
    path = tmp_path / "several"
    with open(path, "wb") as file:
        for i in range(3):
            torch.save(torch.full((1000,), i), file)
    with open(path, "rb") as file:
        assert [torch.load(file, weights_only=weights_only)[0].item() for _ in range(3)] == [0, 1, 2]


def test_modules_only_when_trusted() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh())
    with pytest.raises(pickle.UnpicklingError, match=r"Weights only load failed.*retrograd.nn.containers.Sequential"):
        again(net)
    other = again(net, weights_only=False)
    assert (other(torch.ones(1, 2)) == net(torch.ones(1, 2))).all()


def test_hostile_files() -> None:
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        again(Evil())
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        again(Plain())


def test_attributes_cannot_be_set_by_a_file() -> None:
    # A pickle that takes a safe function and sets an attribute of it.
    body = b"\x80\x04cretrograd.serialization\n_tensor\n}\x8c\x01a\x8c\x01bsb."
    file = io.BytesIO(b"retrograd tensors 1\n" + body)
    with pytest.raises(pickle.UnpicklingError, match="sets attributes"):
        torch.load(file)


def test_tensors_cannot_leave_their_memory() -> None:
    file = io.BytesIO()
    torch.save(torch.arange(4), file)
    raw = file.getvalue().replace(b"K\x04\x85", b"K\x64\x85")  # the shape (4,) becomes (100,)
    with pytest.raises((RuntimeError, ValueError, TypeError)):
        torch.load(io.BytesIO(raw))


def test_allowed_classes() -> None:
    with torch.serialization.safe_globals([Plain]):
        assert torch.serialization.get_safe_globals() == [Plain]
        assert again(Plain()).x.tolist() == [1, 1]
    assert torch.serialization.get_safe_globals() == []
    torch.serialization.add_safe_globals([Plain])
    torch.serialization.clear_safe_globals()
    with pytest.raises(pickle.UnpicklingError):
        again(Plain())


def test_broken_files() -> None:
    file = io.BytesIO()
    torch.save(torch.ones(100), file)
    with pytest.raises(RuntimeError, match="ends 8 bytes early"):
        torch.load(io.BytesIO(file.getvalue()[:-8]))
    with pytest.raises(pickle.UnpicklingError, match="was not written by"):
        torch.load(io.BytesIO(b"something else altogether"))
    with pytest.raises(AttributeError, match="a file-like object"):
        torch.save(1, 3)


def test_map_location() -> None:
    x = torch.ones(1)
    for location in ("cpu", torch.device("cpu"), {"cuda:0": "cpu"}, lambda storage, location: storage):
        assert again(x, map_location=location).device.type == "cpu"
    with pytest.raises(RuntimeError, match="no backend for device"):
        again(x, map_location="cuda")
