"""Names and defaults of arguments, as torch's own schemas have them; NumPy's names where torch takes them."""

from __future__ import annotations

import inspect
from collections import defaultdict
from typing import Any

import pytest

import retrograd

#: What an overload that our function does not have would take: (namespace, function, argument).
ELSEWHERE = {
    # only where there are accelerators
    *[("torch", name, "out_dtype") for name in ("addmm", "baddbmm", "bmm", "mm")],
    *[("Tensor", name, "out_dtype") for name in ("addmm", "baddbmm", "bmm", "mm")],
    # of TorchScript's functions of the same name
    ("torch", "as_tensor", "t"), ("torch", "tensor", "t"), ("torch", "ldexp", "i"), ("torch", "ldexp", "x"),
    ("Tensor", "ldexp", "i"), ("Tensor", "ldexp", "x"), ("torch", "set_grad_enabled", "val"),
    ("torch", "Generator", "seed"), ("Tensor", "copy_", "other"), ("Tensor", "backward", "grad_tensors"),
    ("Tensor", "backward", "tensors"), ("Tensor", "to", "layout"), ("Tensor", "to", "pin_memory"),
    ("Tensor", "to", "other"), ("torch", "rrelu", "generator"),
    # written in Python in torch, with other names there
    *[(space, name, letter) for space in ("torch", "Tensor") for name in ("eq", "ne") for letter in "ab"],
    *[("torch", "einsum", name) for name in ("a", "equation", "path", "tensors")],
    *[("torch", "tensordot", name) for name in ("other", "dims_self", "dims_other")],
    # renamed on the way: see linalg.py
    ("linalg", "matrix_rank", "input"), ("linalg", "matrix_rank", "tol"), ("linalg", "pinv", "rcond"),
    ("linalg", "tensorsolve", "other"),
}  # fmt: skip
SPACES = ("torch", "Tensor", "linalg", "special", "fft")


def _schemas(torch: Any) -> dict[str, list[Any]]:
    found = defaultdict(list)
    for schema in torch._C._jit_get_all_schemas():
        namespace, name = schema.name.split("::")
        arguments = schema.arguments
        if namespace == "aten" and not any(a.is_out for a in arguments):
            # Without a tensor it is a function of TorchScript on numbers, unless it makes one.
            if any("Tensor" in str(a.type) for a in arguments) or any("Tensor" in str(r.type) for r in schema.returns):
                found[name].append(schema)
    return found


@pytest.mark.parity
@pytest.mark.parametrize("space", SPACES)
def test_every_keyword_of_torch_is_taken(space: str) -> None:
    torch = pytest.importorskip("torch")
    schemas = _schemas(torch)
    theirs = torch if space == "torch" else getattr(torch, space)
    ours: Any = retrograd if space == "torch" else getattr(retrograd, space)
    refused = []
    for name in dir(theirs):
        function = getattr(ours, name, None)
        if name.startswith("_") or not callable(function) or isinstance(function, type):
            continue
        parameters = inspect.signature(function).parameters
        if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            continue
        prefix = "" if space in ("torch", "Tensor") else f"{space}_"
        for schema in schemas.get(prefix + name, []):
            for argument in schema.arguments:
                known = argument.name == "self" or argument.name in parameters
                if not known and (space, name, argument.name) not in ELSEWHERE:
                    refused.append(f"{space}.{name}: {argument.name}")
    assert not refused


@pytest.mark.parity
@pytest.mark.parametrize("space", SPACES)
def test_defaults_are_torchs(space: str) -> None:
    """Plain defaults (numbers, bools, strings) of functions that have one overload."""
    torch = pytest.importorskip("torch")
    schemas = _schemas(torch)
    theirs = torch if space == "torch" else getattr(torch, space)
    ours: Any = retrograd if space == "torch" else getattr(retrograd, space)
    wrong = []
    for name in dir(theirs):
        prefix = "" if space in ("torch", "Tensor") else f"{space}_"
        overloads = schemas.get(prefix + name, [])
        if name.startswith("_") or not callable(getattr(ours, name, None)) or len(overloads) != 1:
            continue
        parameters = inspect.signature(getattr(ours, name)).parameters
        for argument in overloads[0].arguments:
            mine = parameters.get(argument.name)
            if mine is None or mine.default is mine.empty or not argument.has_default_value():
                continue
            default = argument.default_value
            if argument.name in ("dtype", "memory_format"):
                continue  # numbers in a schema
            if isinstance(default, (bool, int, float, str)) and mine.default != default:
                wrong.append(f"{space}.{name}: {argument.name}={mine.default!r}, torch has {default!r}")
    allowed = {  # torch.NAME does not do what its schema says: see nn/functional/top_level.py
        f"torch.{name}: reduction=0, torch has 1"
        for name in ("cosine_embedding_loss", "hinge_embedding_loss", "kl_div", "margin_ranking_loss",
                     "triplet_margin_loss")
    }  # fmt: skip
    assert not [text for text in wrong if text not in allowed]


# ---------------------------------------------------------------------------------------------- NumPy's names


@pytest.mark.parametrize(
    ("name", "args", "keywords"),
    [
        ("sum", (), {}), ("cumsum", (), {}), ("softmax", (), {}), ("unsqueeze", (), {}), ("argsort", (), {}),
        ("chunk", (2,), {}), ("narrow", (), {"start": 0, "length": 1}), ("select", (), {"index": 0}), ("diff", (), {}),
        ("logsumexp", (), {}), ("quantile", (0.5,), {}), ("repeat_interleave", (2,), {}), ("tensor_split", (2,), {}),
    ],
)  # fmt: skip
def test_axis_is_dim(torch: Any, name: str, args: tuple, keywords: dict) -> None:
    x = torch.arange(6.0).reshape(2, 3)
    expected = getattr(torch, name)(x, *args, dim=0, **keywords)
    for function in (getattr(torch, name), getattr(torch.Tensor, name)):
        found = function(x, *args, axis=0, **keywords)
        for one, other in zip(*((r if isinstance(r, tuple) else (r,)) for r in (found, expected)), strict=True):
            assert one.tolist() == other.tolist()


def test_both_names_at_once(torch: Any) -> None:
    x = torch.ones(2, 2)
    for call in (
        lambda: x.sum(dim=0, axis=1),
        lambda: torch.sum(x, 0, axis=1),
        lambda: torch.sort(x, dim=0, axis=0),
        lambda: torch.softmax(x, dim=0, axis=0),
    ):
        with pytest.raises(TypeError):
            call()


def test_missing_arguments(torch: Any) -> None:
    x = torch.ones(2, 2)
    for call in (lambda: torch.cumsum(x), lambda: torch.gather(x, 0), lambda: x.unsqueeze()):
        with pytest.raises(TypeError, match=r"missing 1 required|invalid combination"):
            call()
