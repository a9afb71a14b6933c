"""Containers: lists and dictionaries of modules and parameters."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest


def test_sequential_is_a_list(torch: Any) -> None:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    assert len(net) == 3 and isinstance(net[1], nn.ReLU) and net[-1] is net[2]
    assert [type(m).__name__ for m in net[1:]] == ["ReLU", "Linear"]
    net[1] = nn.Tanh()
    net.append(nn.Identity()).insert(0, nn.Identity())
    assert [type(m).__name__ for m in net] == ["Identity", "Linear", "Tanh", "Linear", "Identity"]
    assert list(dict(net.named_children())) == ["0", "1", "2", "3", "4"]
    del net[0]
    assert isinstance(net.pop(-1), nn.Identity)
    assert [name for name, _ in net.named_parameters()] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert net(torch.ones(4, 2)).shape == (4, 1)
    assert len(net + nn.Sequential(nn.ReLU())) == 4 and len(nn.Sequential(nn.ReLU()) * 3) == 3
    with pytest.raises(IndexError, match="index 7 is out of range"):
        net[7]


def test_sequential_with_names(torch: Any) -> None:
    net = torch.nn.Sequential(OrderedDict(a=torch.nn.ReLU(), b=torch.nn.Tanh()))
    assert repr(net) == "Sequential(\n  (a): ReLU()\n  (b): Tanh()\n)"
    assert net.a is net[0]


def test_module_list(torch: Any) -> None:
    nn = torch.nn
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.append(nn.ReLU()).extend([nn.Tanh()])
    layers.insert(0, nn.Identity())
    layers += [nn.ReLU()]
    assert [type(m).__name__ for m in layers] == ["Identity", "Linear", "ReLU", "Tanh", "ReLU"]
    assert isinstance(layers[-1], nn.ReLU) and len(layers[1:3]) == 2
    assert isinstance(layers.pop(0), nn.Identity)
    layers[0] = nn.Linear(2, 2)
    del layers[1]
    assert list(dict(layers.named_parameters())) == ["0.weight", "0.bias"]
    assert len(layers) == 3
    with pytest.raises(NotImplementedError):
        layers(1)


def test_module_list_prints_alike_neighbours_once(torch: Any) -> None:
    nn = torch.nn
    layers = nn.ModuleList([nn.ReLU(), nn.ReLU(), nn.Sequential(nn.Tanh())])
    assert (
        repr(layers)
        == """ModuleList(
  (0-1): 2 x ReLU()
  (2): Sequential(
    (0): Tanh()
  )
)"""
    )


def test_module_dict(torch: Any) -> None:
    nn = torch.nn
    d = nn.ModuleDict({"a": nn.Linear(1, 1)})
    d["b"] = nn.ReLU()
    d.update([("c", nn.Tanh())])
    assert list(d) == ["a", "b", "c"] == list(d.keys()) and "b" in d and len(d) == 3
    assert isinstance(d.pop("c"), nn.Tanh)
    del d["b"]
    assert [name for name, _ in d.named_parameters()] == ["a.weight", "a.bias"]
    d.clear()
    assert len(d) == 0


def test_parameter_list(torch: Any) -> None:
    p = torch.nn.ParameterList([torch.ones(2, 3), torch.nn.Parameter(torch.zeros(1))])
    p.append(torch.ones(4))
    assert [name for name, _ in p.named_parameters()] == ["0", "1", "2"]
    assert all(isinstance(x, torch.nn.Parameter) for x in p)
    assert len(p) == 3 and len(p[1:]) == 2 and p[-1].shape == (4,)
    p[0] = torch.zeros(5)
    assert p[0].shape == (5,) and p[0].requires_grad
    assert (
        repr(p)
        == """ParameterList(
    (0): Parameter containing: [torch.float32 of size 5]
    (1): Parameter containing: [torch.float32 of size 1]
    (2): Parameter containing: [torch.float32 of size 4]
)"""
    )


def test_parameter_dict(torch: Any) -> None:
    p = torch.nn.ParameterDict({"a": torch.ones(2)})
    p["b"] = torch.zeros(1)
    assert list(p) == ["a", "b"] and "a" in p and p["b"].requires_grad
    assert (
        repr(p)
        == """ParameterDict(
    (a): Parameter containing: [torch.FloatTensor of size 2]
    (b): Parameter containing: [torch.FloatTensor of size 1]
)"""
    )
    assert p.pop("a").shape == (2,) and len(p) == 1


def test_parameter_dict_is_a_dict(torch: Any) -> None:
    d = torch.nn.ParameterDict({"b": torch.ones(1), "a": torch.zeros(1)})
    assert list(d) == ["a", "b"] and list(reversed(d)) == ["b", "a"]
    d["note"] = "text"
    assert d.popitem() == ("note", "text") and d.setdefault("c", torch.ones(2)).shape == (2,) and "c" in d
    assert list(d | torch.nn.ParameterDict([("z", torch.ones(1))])) == ["a", "b", "c", "z"]
    d |= torch.nn.ParameterDict([("y", torch.ones(1))])
    assert list(d.copy()) == ["a", "b", "c", "y"] and list(d.fromkeys(["k"], torch.ones(1))) == ["k"]
    with pytest.raises(TypeError, match="cannot be used as a key as it is not a string"):
        d[1] = torch.ones(1)
    with pytest.raises(ValueError, match="has length 1; 2 is required"):
        d.update([("a",)])
