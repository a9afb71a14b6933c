"""The registry: every operator is declared once, where it is defined, and how it may be called is written down."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd._generated import functions as table
from retrograd.codegen import stubs
from retrograd.ops import aten_only, registry  # noqa: F401  # (declares the last ones)
from retrograd.ops.registry import DECLARED, SPACES, signature_key
from retrograd.ops.signatures import has_overloads, names

PACKAGE = Path(retrograd.__file__).parent
SOURCES = [*sorted((PACKAGE / "ops").rglob("*.py")), *sorted((PACKAGE / "nn" / "functional").glob("*.py"))]


# ----------------------------------------------------------------------------------------------------------- signatures


def test_every_line_of_a_signature_has_a_function() -> None:
    """Of the registry: operators of the table are checked by their own entries."""
    known = {signature_key(space, name) for space, members in DECLARED.items() for name in members}
    known |= {f"linalg.{name}" for name in SPACES["linalg"]}
    assert [key for key in names() if key not in known] == []


def test_every_function_has_a_line_or_looks_itself() -> None:
    """(`composite` refuses a function without a line that is not `bare`; linalg.py wraps what it exports.)"""
    unchecked = {
        f"{space}.{name}"
        for space in ("torch", "Tensor", "nn.functional", "fft", "special")
        for name, function in DECLARED[space].items()
        if SPACES[space][name] is function and not name.startswith("_foreach_")
    }
    assert len(unchecked) <= 55, "fast paths, special methods and what torch does not check either"
    assert [f"linalg.{name}" for name in SPACES["linalg"] if not has_overloads(f"linalg.{name}")] == []


def test_a_function_without_a_line_is_refused() -> None:
    with pytest.raises(LookupError, match=r"torch\.nothing_like_it has no line in ops/signatures"):

        @registry.composite(method=False)
        def nothing_like_it(input: Any) -> Any: ...

    for declared in (DECLARED, SPACES):
        del declared["torch"]["nothing_like_it"]


def test_a_name_is_declared_once() -> None:
    with pytest.raises(ValueError, match=r"torch\.mul is declared twice"):

        @registry.composite(bare=True)
        def mul(input: Any) -> Any: ...

    assert SPACES["torch"]["mul"] is table.mul is retrograd.mul


# ------------------------------------------------------------------------------------------------------------ one way


def declarations() -> list[tuple[Path, ast.Call]]:
    """Every call of `composite`."""
    found = []
    for path in SOURCES:
        if path.name != "registry.py":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            found += [(path, call) for call in calls if getattr(call.func, "id", "") == "composite"]
    return found


def test_declarations_can_be_read_without_importing_them() -> None:
    """All but those of functions that are written once for several names: 4 places."""
    unreadable = set()
    for path, call in declarations():
        try:
            for value in [*call.args, *[k.value for k in call.keywords if k.arg != "setter"]]:
                ast.literal_eval(value)
        except ValueError:
            unreadable.add(f"{path.stem}: {ast.unparse(call)}")
    assert sorted(unreadable) == [
        "family: composite(*also, space='nn.functional', out=out)",
        "pool: composite(*(also if pool is pools[0] else ()), space='nn.functional')",
    ]
    assert len(declarations()) > 500


def test_the_generator_reads_what_the_registry_does() -> None:
    for composite in stubs.read_composites(SOURCES):
        for space, members in composite.places.items():
            for name in members:
                assert name in SPACES[space], f"{space}.{name}"


def test_nothing_is_put_in_place_by_another_way() -> None:
    """Outside the registry, no module writes to its tables or sets attributes of Tensor."""
    for path in [*SOURCES, PACKAGE / "__init__.py", PACKAGE / "linalg.py", PACKAGE / "special.py", PACKAGE / "fft.py"]:
        if path.name == "registry.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                assert not any(word in ast.unparse(node.value) for word in ("SPACES", "DECLARED", "PUBLIC")), path
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setattr":
                assert ast.unparse(node.args[0]) != "Tensor", path


# ------------------------------------------------------------------------- forms of operators that have no other sample

#: Method or function in place -> the operator that it is of, and its further arguments.
IN_PLACE = {
    "Tensor.ge_": ("ge", (1.0,)), "Tensor.gt_": ("gt", (1.0,)), "Tensor.le_": ("le", (1.0,)),
    "Tensor.lt_": ("lt", (1.0,)), "Tensor.ne_": ("ne", (1.0,)), "Tensor.swapaxes_": ("swapaxes", (0, 1)),
    "Tensor.swapdims_": ("swapdims", (0, 1)), "Tensor.t_": ("t", ()),
    "as_strided_": ("as_strided", ((2, 2), (1, 2), 1)), "detach_": ("detach", ()), "celu_": ("celu", (0.5,)),
    "selu_": ("selu", ()), "rrelu_": ("rrelu", (0.1, 0.3)), "nn.functional.rrelu_": ("rrelu", (0.1, 0.3)),
    "nn.functional.hardtanh_": ("nn.functional.hardtanh", (-0.5, 0.5)),
    "nn.functional.leaky_relu_": ("nn.functional.leaky_relu", (0.2,)), "nn.functional.relu_": ("relu", ()),
    "nn.functional.threshold_": ("threshold", (0.5, 9.0)), "nn.functional.elu_": ("nn.functional.elu", (0.5,)),
}  # fmt: skip


def _find(torch: Any, name: str) -> Any:
    for part in name.split("."):
        torch = getattr(torch, part)
    return torch


@pytest.mark.parametrize("name", IN_PLACE)
def test_in_place_is_the_operator_over_its_input(torch: Any, name: str) -> None:
    plain, args = IN_PLACE[name]
    values = [[-1.0, 0.25, 1.0], [2.0, -0.5, 0.75]]
    x = torch.tensor(values)
    expected = _find(torch, plain)(torch.tensor(values), *args)
    assert _find(torch, name)(x, *args) is x
    assert x.tolist() == expected.to(x.dtype).tolist()


def test_elu_in_place_scales_both(torch: Any) -> None:
    x = torch.tensor([-1.0, 2.0])
    torch.nn.functional.elu_(x, 0.5, 3.0, 2.0)
    np.testing.assert_allclose(x.numpy(), [3 * 0.5 * np.expm1(-2.0), 6.0], rtol=1e-6)


def test_rrelu_draws_from_the_generator_that_it_is_given(torch: Any) -> None:
    x = -torch.ones(50)
    drawn = [torch.rrelu(x, 0.1, 0.3, True, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)]
    assert drawn[0].tolist() == drawn[1].tolist() != drawn[2].tolist()
    assert ((drawn[0] >= -0.3) & (drawn[0] <= -0.1)).all()
    torch.rrelu_(x, 0.1, 0.3, True, generator=torch.Generator().manual_seed(1))
    assert x.tolist() == drawn[0].tolist()


@pytest.mark.parametrize("name", ["bool", "byte", "cdouble", "cfloat", "char", "double", "float", "half", "int", "long",
                                  "short"])  # fmt: skip
def test_conversions(torch: Any, name: str) -> None:
    dtype = {"byte": torch.uint8, "char": torch.int8}.get(name) or getattr(torch, name)
    x = torch.tensor([[0.0, 1.5], [2.0, 3.0]])
    found = getattr(x, name)()
    assert found.dtype is dtype and found.tolist() == x.to(dtype).tolist()
    assert getattr(x.reshape(1, 2, 2, 1), name)(memory_format=torch.channels_last).stride() == (4, 1, 2, 2)


def test_numbers_shifted_by_tensors(torch: Any) -> None:
    x = torch.tensor([0, 1, 3])
    assert (2 << x).tolist() == [2, 4, 16] and (16 >> x).tolist() == [16, 8, 2]


def test_functions_of_methods(torch: Any) -> None:
    x = torch.tensor([1 + 2j, 3 - 1j])
    copies = torch._conj_copy(x), torch._neg_view_copy(x)
    assert [c.tolist() for c in copies] == [[1 - 2j, 3 + 1j], [-1 - 2j, -3 + 1j]]
    assert not any(c.is_conj() or c.is_neg() for c in copies)
    y = torch.ones(2, requires_grad=True) * 2
    assert torch.detach(y).grad_fn is None and torch.detach(y).data_ptr() == y.data_ptr()
    assert torch.get_device(y) == -1
    assert torch.view_copy(torch.ones(2), torch.int32).tolist() == [1065353216] * 2
    kept, mask = torch.native_dropout(torch.ones(3), 0.5, False)
    assert kept.tolist() == [1, 1, 1] and mask.dtype is torch.bool and mask.all()
