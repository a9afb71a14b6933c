"""Module: what registers, what the iterators give, saving and loading, conversion, printing; all as torch does it."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

import retrograd
from retrograd import nn


def make_net(torch: Any) -> Any:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(2, 2)
            self.scale = torch.nn.Parameter(torch.ones(1))
            self.register_buffer("count", torch.zeros(1))
            self.register_buffer("scratch", torch.zeros(1), persistent=False)
            self.missing = None

        def forward(self, x: Any) -> Any:
            return self.linear(x) * self.scale

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = Block()
            self.second = Block()
            self.again = self.first

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x))

    return Net()


class Pickled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 1)
        self.register_buffer("mean", retrograd.zeros(2))

    def forward(self, x: Any) -> Any:
        return self.linear(x - self.mean)


# --------------------------------------------------------------------------------------------------- registration


def test_names_of_everything(torch: Any) -> None:
    net = make_net(torch)
    own = ["scale", "linear.weight", "linear.bias"]
    expected = [f"first.{name}" for name in own] + [f"second.{name}" for name in own]
    assert [name for name, _ in net.named_parameters()] == expected
    assert [name for name, _ in net.named_buffers()] == [
        "first.count", "first.scratch", "second.count", "second.scratch",
    ]  # fmt: skip
    assert [name for name, _ in net.named_modules()] == ["", "first", "first.linear", "second", "second.linear"]
    assert [name for name, _ in net.named_children()] == ["first", "second"]
    assert len(list(net.modules())) == 5 and len(list(net.children())) == 2
    duplicated = [name for name, _ in net.named_parameters(remove_duplicate=False)]
    assert duplicated == expected + [f"again.{name}" for name in own]
    assert [name for name, _ in net.first.named_parameters(recurse=False)] == ["scale"]
    assert next(name for name, _ in net.first.named_parameters(prefix="p")) == "p.scale"


def test_attributes_move_between_kinds(torch: Any) -> None:
    m = torch.nn.Module()
    m.x = torch.nn.Parameter(torch.ones(1))
    assert "x" in dict(m.named_parameters())
    with pytest.raises(TypeError, match=r"cannot assign .* as parameter 'x'"):
        m.x = torch.ones(1)
    m.x = None
    assert list(m.parameters()) == [] and m.x is None
    del m.x
    m.x = torch.ones(1)
    m.x = torch.nn.Linear(1, 1)
    assert "x" in dict(m.named_children())
    with pytest.raises(TypeError, match=r"cannot assign .* as child module 'x'"):
        m.x = 3
    m.register_buffer("b", torch.ones(1))
    m.b = torch.zeros(2)
    assert list(m.state_dict()) == ["b", "x.weight", "x.bias"]
    with pytest.raises(TypeError, match=r"cannot assign .* as buffer 'b'"):
        m.b = "text"
    del m.b
    assert not hasattr(m, "b")
    with pytest.raises(AttributeError, match="'Module' object has no attribute 'b'"):
        m.b


def test_buffer_class(torch: Any) -> None:
    m = torch.nn.Module()
    m.kept = torch.nn.Buffer(torch.ones(2))
    m.passing = torch.nn.Buffer(torch.ones(2), persistent=False)
    assert [name for name, _ in m.named_buffers()] == ["kept", "passing"]
    assert list(m.state_dict()) == ["kept"]


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda m, t: m.register_parameter("a.b", None), KeyError, "name can.*t contain"),
        (lambda m, t: m.register_parameter("", None), KeyError, "name can.*t be empty"),
        (lambda m, t: m.register_parameter("forward", None), KeyError, "already exists"),
        (lambda m, t: m.register_parameter("p", t.ones(1)), TypeError, "torch.nn.Parameter or None required"),
        (lambda m, t: m.register_buffer("b", 3), TypeError, "torch Tensor or None required"),
        (lambda m, t: m.add_module("m", 3), TypeError, "is not a Module subclass"),
        (lambda m, t: m.train("yes"), ValueError, "expected to be boolean"),
        (lambda m, t: m.to(t.int64), TypeError, "only accepts floating point or complex"),
        (lambda m, t: m.get_submodule("nothing"), AttributeError, "has no attribute `nothing`"),
        (lambda m, t: m.get_parameter("training"), AttributeError, "is not an nn.Parameter"),
        (lambda m, t: m(1), NotImplementedError, 'missing the required "forward" function'),
    ],
)
def test_refusals(torch: Any, call: Any, error: type, text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.nn.Module(), torch)


def test_assignment_before_init(torch: Any) -> None:
    class Early(torch.nn.Module):
        def __init__(self) -> None:
            self.p = torch.nn.Parameter(torch.ones(1))

    with pytest.raises(AttributeError, match=r"cannot assign parameters before Module.__init__"):
        Early()


def test_paths(torch: Any) -> None:
    net = make_net(torch)
    assert net.get_submodule("first.linear") is net.first.linear
    assert net.get_submodule("") is net
    assert net.get_parameter("second.linear.bias") is net.second.linear.bias
    assert net.get_buffer("second.count") is net.second.count
    new = torch.nn.Identity()
    net.set_submodule("second.linear", new)
    assert net.second.linear is new


# -------------------------------------------------------------------------------------------------------- all tensors


def test_conversion_keeps_the_parameters(torch: Any) -> None:
    net = make_net(torch)
    before = list(net.parameters())
    net(torch.ones(1, 2)).sum().backward()
    net.double()
    after = list(net.parameters())
    assert all(a is b for a, b in zip(before, after, strict=True))
    assert {p.dtype for p in after} == {torch.float64} == {p.grad.dtype for p in after}
    assert {b.dtype for b in net.buffers()} == {torch.float64}
    assert net.float().first.scale.dtype == torch.float32
    assert net.to(torch.float64).first.count.dtype == torch.float64
    assert net.to("cpu").half().first.scale.dtype == torch.float16
    net.double()(torch.ones(1, 2, dtype=torch.float64)).sum().backward()


def test_integer_buffers_stay(torch: Any) -> None:
    m = torch.nn.Module()
    m.register_buffer("n", torch.tensor(3))
    assert m.double().n.dtype == torch.int64


def test_train_and_eval(torch: Any) -> None:
    net = make_net(torch)
    assert net.eval() is net and not any(m.training for m in net.modules())
    assert all(m.training for m in net.train().modules())


def test_zero_grad(torch: Any) -> None:
    net = make_net(torch)
    net(torch.ones(1, 2)).sum().backward()
    net.zero_grad(set_to_none=False)
    assert all((p.grad == 0).all() for p in net.parameters())
    net.zero_grad()
    assert all(p.grad is None for p in net.parameters())


def test_requires_grad_and_apply(torch: Any) -> None:
    net = make_net(torch)
    assert not any(p.requires_grad for p in net.requires_grad_(False).parameters())
    seen: list[str] = []
    net.apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["Linear", "Block", "Linear", "Block", "Net"]


# ------------------------------------------------------------------------------------------------------- state dicts


def test_state_dict_round_trip(torch: Any) -> None:
    a, b = make_net(torch), make_net(torch)
    state = a.state_dict()
    assert list(state)[:4] == ["first.scale", "first.count", "first.linear.weight", "first.linear.bias"]
    assert not state["first.scale"].requires_grad
    assert a.state_dict(keep_vars=True)["first.scale"] is a.first.scale
    assert next(iter(a.first.state_dict(prefix="x."))) == "x.scale"
    assert repr(b.load_state_dict(state)) == "<All keys matched successfully>"
    assert all((x == y).all() for x, y in zip(a.parameters(), b.parameters(), strict=True))


def test_loading_numbers_into_a_meta_module_warns(torch: Any) -> None:
    with torch.device("meta"):
        net = torch.nn.Linear(2, 3)
    state = torch.nn.Linear(2, 3).state_dict()
    with pytest.warns(UserWarning, match="for (weight|bias): copying from a non-meta parameter in the"):
        net.load_state_dict(state)
    assert net.weight.is_meta
    net.load_state_dict(state, assign=True)
    assert (net.weight == state["weight"]).all()


def test_load_reports_what_does_not_fit(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    state = net.state_dict()
    del state["0.bias"]
    state["extra.weight"] = torch.ones(1)
    result = net.load_state_dict(state, strict=False)
    assert result.missing_keys == ["0.bias"] and result.unexpected_keys == ["extra.weight"]
    with pytest.raises(RuntimeError) as error:
        net.load_state_dict(state)
    text = str(error.value)
    assert "Error(s) in loading state_dict for Sequential:" in text
    assert 'Missing key(s) in state_dict: "0.bias". ' in text
    assert 'Unexpected key(s) in state_dict: "extra.weight". ' in text
    state["0.weight"] = torch.ones(3, 3)
    with pytest.raises(RuntimeError, match=r"size mismatch for 0.weight: copying a param with shape"):
        net.load_state_dict(state, strict=False)


def test_load_with_assign(torch: Any) -> None:
    net = torch.nn.Linear(1, 1)
    weight = torch.ones(1, 1, dtype=torch.float64)
    net.load_state_dict({"weight": weight, "bias": torch.zeros(1)}, assign=True)
    assert net.weight.dtype == torch.float64 and net.weight.requires_grad
    assert net.weight.data_ptr() == weight.data_ptr()


def test_extra_state_and_hooks(torch: Any) -> None:
    calls: list[str] = []

    class Extra(torch.nn.Module):
        value = 1

        def get_extra_state(self) -> Any:
            return self.value

        def set_extra_state(self, state: Any) -> None:
            self.value = state

    a, b = Extra(), Extra()
    a.value = 7
    a.register_state_dict_pre_hook(lambda module, prefix, keep: calls.append("before"))
    b.register_load_state_dict_pre_hook(lambda module, state, *rest: calls.append("loading"))
    b.register_load_state_dict_post_hook(lambda module, keys: calls.append("loaded"))
    b.load_state_dict(a.state_dict())
    assert b.value == 7 and calls == ["before", "loading", "loaded"]


def test_deepcopy_and_pickle() -> None:
    net = Pickled()
    net.linear.weight.requires_grad_(False)
    x = retrograd.ones(1, 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert (other(x) == net(x)).all()
        assert other.linear.weight is not net.linear.weight
        assert type(other.linear.weight) is nn.Parameter
        assert not other.linear.weight.requires_grad and other.linear.bias.requires_grad
        assert list(other.state_dict()) == list(net.state_dict())


def test_deepcopy_keeps_sharing(torch: Any) -> None:
    net = make_net(torch)
    other = copy.deepcopy(net)
    assert other.again is other.first and other.first is not net.first


# ---------------------------------------------------------------------------------------------------------- printing


def test_printing(torch: Any) -> None:
    assert (
        repr(make_net(torch))
        == """Net(
  (first): Block(
    (linear): Linear(in_features=2, out_features=2, bias=True)
  )
  (second): Block(
    (linear): Linear(in_features=2, out_features=2, bias=True)
  )
  (again): Block(
    (linear): Linear(in_features=2, out_features=2, bias=True)
  )
)"""
    )

    class Several(torch.nn.Module):
        def extra_repr(self) -> str:
            return "a=1\nb=2"

    assert repr(Several()) == "Several(\n  a=1\n  b=2\n)"
    assert repr(torch.nn.Module()) == "Module()"


def test_hooks_of_state_dicts(torch: Any) -> None:
    m = torch.nn.Sequential(torch.nn.Linear(1, 1))
    log: list[Any] = []
    m[0].register_state_dict_pre_hook(lambda module, prefix, keep_vars: log.append(("pre", prefix, keep_vars)))
    m[0].register_state_dict_post_hook(lambda module, state, prefix, local: log.append(("post", prefix, sorted(local))))
    m.state_dict(keep_vars=True)
    assert log == [("pre", "0.", True), ("post", "0.", ["version"])]

    def wrong(module: Any, state: Any, prefix: str, local: Any) -> Any:
        return state

    m.register_state_dict_post_hook(wrong)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        m.state_dict()
    other = torch.nn.Linear(1, 1)
    other._register_state_dict_hook(lambda module, state, prefix, local: {"all": state})
    assert list(other.state_dict()) == ["all"]
    with pytest.raises(RuntimeError, match="Cannot register the same function"):
        other._register_state_dict_hook(wrong)


def test_hooks_of_loading(torch: Any) -> None:
    m = torch.nn.Linear(1, 1)
    saved = {"old": torch.ones(1, 1), "bias": torch.zeros(1)}

    def rename(module: Any, state: dict, prefix: str, *rest: Any) -> None:
        assert module is m
        state[prefix + "weight"] = state.pop(prefix + "old")

    handle = m.register_load_state_dict_pre_hook(rename)
    m.load_state_dict(saved)
    assert m.weight.item() == 1 and list(saved) == ["old", "bias"]
    handle.remove()
    m.register_load_state_dict_post_hook(lambda module, keys: keys.missing_keys.clear() or keys.unexpected_keys.clear())
    with pytest.raises(AssertionError, match="not expected to return new values"):
        module = torch.nn.Linear(1, 1)
        module.register_load_state_dict_post_hook(lambda module, keys: keys)
        module.load_state_dict(module.state_dict())
    assert not m.load_state_dict({}).missing_keys
    copied = copy.deepcopy(m)
    assert copied._load_state_dict_post_hooks and not copied.load_state_dict({}).unexpected_keys


def test_positional_arguments_of_state_dict(torch: Any) -> None:
    with pytest.warns(FutureWarning, match="Positional args are being deprecated"):
        assert list(torch.nn.Linear(1, 1).state_dict(None, "a.")) == ["a.weight", "a.bias"]


def test_conversions_to_nothing_and_elsewhere(torch: Any) -> None:
    m = torch.nn.BatchNorm1d(2)
    weight = m.weight
    assert m.to_empty(device="cpu") is m and m.weight is weight and m.running_mean.shape == (2,)
    assert m.half().weight.dtype == torch.float16 and m.running_var.dtype == torch.float16
    assert m.num_batches_tracked.dtype == torch.int64
    assert m.bfloat16().weight.dtype == torch.bfloat16
    assert m.type(torch.float64).num_batches_tracked.dtype == torch.float64
    with pytest.raises(TypeError, match="only accepts floating point or complex dtypes"):
        m.to(torch.int32)
    assert m.compile() is None and torch.nn.Linear(2, 2).share_memory().weight.is_shared()


@pytest.mark.parametrize("swap", [False, True])
def test_conversion_keeps_what_optimizers_hold(torch: Any, swap: bool) -> None:
    future = torch.__future__
    before = future.get_swap_module_params_on_conversion()
    future.set_swap_module_params_on_conversion(swap)
    try:
        m = torch.nn.Linear(2, 2)
        weight = m.weight
        m(torch.ones(2)).sum().backward()
        grad = weight.grad.clone()
        m.double()
        assert m.weight is weight and weight.dtype == torch.float64 and weight.grad.dtype == torch.float64
        assert (weight.grad == grad).all() and weight.requires_grad
        m.load_state_dict({"weight": torch.ones(2, 2), "bias": torch.zeros(2)})
        assert m.weight is weight and (weight == 1).all()
    finally:
        future.set_swap_module_params_on_conversion(before)
    future.set_overwrite_module_params_on_conversion(True)
    try:
        assert m.float().weight is not weight
    finally:
        future.set_overwrite_module_params_on_conversion(False)


def test_swapped_tensors_change_places(torch: Any) -> None:
    a, b = torch.nn.Parameter(torch.ones(2)), torch.zeros(3)
    a.mark = 1
    torch.utils.swap_tensors(a, b)
    assert type(a) is torch.Tensor and a.shape == (3,) and not hasattr(a, "mark")
    assert isinstance(b, torch.nn.Parameter) and b.requires_grad and b.mark == 1
    leaf, other = torch.ones(2, requires_grad=True), torch.ones(2)
    result = (leaf * 2).sum()
    torch.utils.swap_tensors(leaf, other)
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        result.backward()


def test_lazy_parameters(torch: Any) -> None:
    m = torch.nn.LazyLinear(3)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        m.weight.shape
    with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
        m.weight + 1
    assert m.double().weight.dtype == torch.float64 and repr(m.weight).startswith("<UninitializedParameter")
    other = torch.nn.LazyLinear(3)
    other.load_state_dict(torch.nn.Linear(5, 3).state_dict())
    assert other.weight.shape == (3, 5) and other(torch.ones(1, 5)).shape == (1, 3)
    assert type(other) is torch.nn.Linear
    with pytest.raises(RuntimeError, match="Can't access the shape"):
        torch.nn.Linear(5, 3).load_state_dict(m.state_dict())


def test_what_needs_the_shape_of_a_lazy_parameter(torch: Any) -> None:
    lazy = torch.nn.UninitializedParameter()
    for use in (
        torch.empty_like, torch.ones_like, torch.rand_like, lambda p: torch.full_like(p, 1), len, lambda p: p[0],
        lambda p: p.numel(), lambda p: p.dim(), lambda p: p.stride(), lambda p: p.new_zeros(2), lambda p: p.storage(),
        lambda p: torch.optim.Adagrad([p]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Attempted to use an uninitialized parameter"):
            use(lazy)
    optimizer = torch.optim.Adam([lazy])
    lazy.materialize((2, 3))
    assert lazy.numel() == 6 and len(lazy) == 2 and torch.ones_like(lazy).shape == (2, 3)
    assert optimizer.param_groups[0]["params"][0] is lazy


def test_old_pickles_get_what_they_lack(torch: Any) -> None:
    m = torch.nn.Linear(1, 1)
    state = {k: v for k, v in m.__dict__.items() if "hooks" not in k or k in ("_forward_hooks", "_backward_hooks")}
    other = torch.nn.Linear.__new__(torch.nn.Linear)
    other.__setstate__(state)
    assert other(torch.ones(1)).shape == (1,) and list(other.state_dict()) == ["weight", "bias"]


def test_sync_batch_norm_is_made_of_batch_norms(torch: Any) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.BatchNorm1d(2, momentum=None)).eval())
    weight = net[1][0].weight
    made = torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    assert made is net and isinstance(made[1][0], torch.nn.SyncBatchNorm)
    assert made[1][0].weight is weight and made[1][0].momentum is None and not made[1][0].training
