"""Every parameter of a public function is read in it: honoured, or refused with an error."""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

import torch_names

#: Parameters that are not read, and why: function -> its parameters.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "Python's own protocols": {
        "Tensor.__array_wrap__": "context return_scalar", "Tensor.__reduce_ex__": "protocol",
    },
    "the CPU computes at once, so that nothing waits": {
        "Tensor.type": "non_blocking", "TypedStorage.copy_": "non_blocking",
        "TypedStorage.to": "non_blocking", "TypedStorage.type": "non_blocking", "UntypedStorage.copy_": "non_blocking",
        "UntypedStorage.type": "non_blocking",
    },
    "chooses a library of accelerators": {
        "batch_norm": "cudnn_enabled", "group_norm": "cudnn_enabled", "instance_norm": "cudnn_enabled",
        "layer_norm": "cudnn_enable",
    },
    "chooses how it is computed, not what": {
        "nn.utils.clip_grad_norm_": "foreach", "nn.utils.clip_grad_value_": "foreach",
        "nn.utils.clip_grads_with_norm_": "foreach", "nn.utils.get_total_norm": "foreach",
        "lobpcg": "iK niter tol tracker ortho_iparams ortho_fparams ortho_bparams",
    },
    "says how to compile, which nothing does, as the first call says": {"compile": "fullgraph dynamic backend"},
    "torch does not read it either": {
        "nn.functional.gumbel_softmax": "eps", "expand_copy": "implicit", "nn.Identity.__init__": "args kwargs",
        "autograd.Function.__init__": "args kwargs", "TypedStorage.__init__": "_internal",
    },
    "where a warning points: ours always points at the caller": {
        "nn.functional.softmax": "_stacklevel", "nn.functional.softmin": "_stacklevel",
        "nn.functional.log_softmax": "_stacklevel",
    },
    "sparse tensors alone are masked": {"Tensor.to_dense": "masked_grad"},
    "answers that there is no such switch": {"set_flush_denormal": "mode"},
}  # fmt: skip


def functions() -> Iterator[tuple[str, types.FunctionType]]:
    """Every public function, method and constructor that is written in Python by hand."""
    for space in sorted(torch_names.SPACES, key=lambda space: space != "torch.nn.functional"):
        found = torch_names.find(space, "retrograd")
        prefix = space.removeprefix("torch").lstrip(".") + "." * (space != "torch")
        for name in dir(found) if isinstance(found, type) else found.__all__:
            value = inspect.getattr_static(found, name) if isinstance(found, type) else getattr(found, name)
            members = {prefix + name: value}
            if isinstance(value, type) and value.__module__.startswith("retrograd"):
                members = {
                    f"{prefix}{name}.{key}": member
                    for key, member in vars(value).items()
                    if not key.startswith("_") or key in ("__init__", "__call__")
                }
            for key, member in members.items():
                member = member.__func__ if isinstance(member, (staticmethod, classmethod)) else member
                function = inspect.unwrap(member) if callable(member) else member
                if isinstance(function, types.FunctionType) and function.__module__.startswith("retrograd"):
                    if not function.__module__.startswith("retrograd._generated"):
                        yield key, function


def unread(function: types.FunctionType) -> list[str]:
    """The parameters that the body does not mention; none of a function that only raises."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except OSError:  # a dataclass's constructor
        return []
    node = next((n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)), None)
    if node is None:
        return []
    body = [s for s in node.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    if all(isinstance(statement, (ast.Raise, ast.Pass)) for statement in body):
        return []
    names = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    return [a.arg for a in arguments if a is not None and a.arg not in names and a.arg not in ("self", "cls")]


def test_every_parameter_is_read() -> None:
    left = {name: set(words.split()) for reason in EXCEPTIONS.values() for name, words in reason.items()}
    ignored: dict[str, list[str]] = {}
    seen = set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, function in functions():
            if function.__code__ in seen:
                continue
            seen.add(function.__code__)
            found = unread(function)
            if unexplained := [p for p in found if p not in left.get(name, ())]:
                ignored[name] = unexplained
            left.get(name, set()).difference_update(found)
    assert ignored == {}
    assert {name: words for name, words in left.items() if words} == {}, "these are read now: no exception is needed"
    assert len(seen) > 800


# ------------------------------------------------------------------------------------------------- what they do instead


def test_devices(torch: Any) -> None:
    for call in (lambda: torch.FloatTensor(2, device="cuda"), lambda: torch.ones(1).new(2, device="cuda")):
        with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu but device type: cuda"):
            call()
    assert torch.FloatTensor(2, device="cpu").shape == (2,)
    assert torch.ones(1).new(2, device="cpu").shape == (2,)


def test_memory_that_is_to_be_pinned(torch: Any) -> None:
    if torch.cuda.is_available():
        pytest.skip("memory can be pinned here")
    for call in (lambda: torch.tensor(1.0, pin_memory=True), lambda: torch.zeros(2, pin_memory=True)):
        with pytest.raises(RuntimeError, match="pin_memory=True requires a CUDA or other accelerator backend"):
            call()


def test_memory_formats(torch: Any) -> None:
    last = (24, 1, 8, 2)
    x = torch.arange(24.0).resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert x.stride() == last and x.reshape(-1).tolist()[:3] == [0, 2, 4]
    assert x.resize_(1, 2, 3, 4, memory_format=torch.contiguous_format).stride() == (24, 12, 4, 1)
    x.resize_(1, 2, 3, 4, memory_format=torch.channels_last)
    assert torch.empty(0).resize_as_(x).stride() == (24, 12, 4, 1)
    assert torch.empty(0).resize_as_(x, memory_format=torch.preserve_format).stride() == last
    assert torch.empty(0).resize_as_(x, memory_format=torch.channels_last).stride() == last
    assert torch.empty(1, 2, 3, 4, memory_format=torch.channels_last).stride() == last
    assert torch.zeros_like(x, memory_format=torch.contiguous_format).stride() == (24, 12, 4, 1)
    assert torch._foreach_clone([x], memory_format=torch.contiguous_format)[0].stride() == (24, 12, 4, 1)
    assert torch._foreach_clone([x])[0].stride() == last
    for call in (
        lambda: torch.ones(2).resize_(2, memory_format=torch.preserve_format),
        lambda: torch.ones(2).resize_(2, 2, memory_format=torch.channels_last),
    ):
        with pytest.raises(RuntimeError, match=r"Unsupported memory format|required rank 4 tensor"):
            call()
