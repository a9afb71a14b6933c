"""The records of the operators: they agree with the functions and the nodes, and nobody keeps other lists."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import FunctionType

import pytest

import retrograd
from retrograd import kernels
from retrograd._generated import functions, nodes
from retrograd.core.records import masking_nodes, record_of, records
from retrograd.ops.overload import aten, overload_of, with_kernel
from retrograd.ops.signatures import _overloads_of_composites

PACKAGE = Path(retrograd.__file__).parent


def behind(f):
    """The function itself, where some test has had classes or modes that override it (ops/override_switch.py)."""
    return getattr(f, "body", f)


def test_every_generated_function_has_a_record():
    made = {
        f
        for name, f in vars(functions).items()
        if isinstance(f, FunctionType) and not name.startswith("__")
        if behind(f).__code__.co_filename == functions.__file__
    }
    assert set(records()) == made
    assert all(getattr(functions, record.name) is f for f, record in records().items())


def test_records_name_what_exists():
    for f, record in records().items():
        parameters = [p for p in inspect.signature(f).parameters if p not in ("out", "aliases", "old")]
        assert list(record.arguments) == parameters
        assert hasattr(kernels, record.kernel)
        assert record.schema.startswith(record.base)
        assert set(record.apart) <= set(record.arguments)
        if record.inplace is not None:
            assert record_of(getattr(functions, record.inplace)).form_of == record.name
        if record.writes:
            assert record_of(getattr(functions, record.form_of)).inplace == record.name
        for name in record.nodes:
            saved = getattr(nodes, name).saved_tensors_names
            assert set(saved) <= set(record.saves)


def test_what_a_record_says_is_what_happens():
    """Views share memory and in-place operators write; the records say which they are."""
    x = retrograd.arange(4.0)
    for name, args in (("transpose", (0, 0)), ("exp", ()), ("mul", (2.0,)), ("unsqueeze", (0,)), ("cumsum", (0,))):
        f = getattr(functions, name)
        assert (f(x, *args).data_ptr() == x.data_ptr()) == record_of(f).view
    for name, args in (("mul_", (2.0,)), ("exp_", ()), ("mul", (2.0,)), ("masked_fill_Scalar_", (x > 1, 3.0))):
        f, before = getattr(functions, name), x._version
        f(x, *args)
        assert (x._version > before) == record_of(f).writes


def test_the_kernel_of_a_record_is_what_the_operator_calls():
    for f, record in records().items():
        assert f"kernel_{record.kernel}" in behind(f).__code__.co_names, record.name
        assert record_of(with_kernel(f, lambda kernel: kernel)) is record


def test_traces_use_torchs_names():
    assert str(overload_of(functions.max_dim)) == "aten.max.dim"
    assert str(overload_of(functions.div_rounding_mode_)) == "aten.div_.Tensor_mode"
    assert str(overload_of(functions.unique_dim)) == "aten.unique_dim.default"
    assert aten.mul.Tensor == aten.mul.Scalar == aten.multiply.Tensor != aten.mul_.Tensor
    with pytest.raises(AttributeError, match="has no overload name 'nosuch'"):
        _ = aten.mul.nosuch
    with pytest.raises(AttributeError, match="has no overload name 'Scalar'"):
        _ = aten.logical_and.Scalar


@pytest.mark.parity
def test_overloads_are_torchs():
    torch = pytest.importorskip("torch")

    def has(name: str, overload: str) -> bool:
        return hasattr(torch.ops.aten, name) and hasattr(getattr(torch.ops.aten, name), overload)

    #: Operators of ours that torch has under another name or not at all have no overloads to compare.
    known = {r.name: r for r in records().values() if hasattr(torch.ops.aten, r.base)}
    wrong = {f"{r.base}.{o}" for r in known.values() for o in r.overloads if not has(r.base, o)}
    assert wrong == {"as_strided.geometry"}  # as_strided of a tensor that has been given other strides since
    composites = _overloads_of_composites()
    assert {f"{name}.{o}" for name, overloads in composites.items() for o in overloads if not has(name, o)} == set()
    for name, overloads in composites.items():
        assert all(getattr(getattr(aten, name), o) is not None for o in overloads)


@pytest.mark.parity
def test_in_place_methods_without_a_mark_write_what_torchs_do():
    """Every in-place operator of the table is one of torch's, or a form of one."""
    torch = pytest.importorskip("torch")

    for record in records().values():
        if record.writes and hasattr(torch.ops.aten, record.base):
            overload = getattr(getattr(torch.ops.aten, record.base), record.overloads[0])
            assert overload._schema.is_mutable, record.name


@pytest.mark.parity
def test_views_are_torchs_views():
    torch = pytest.importorskip("torch")

    ours_alone = {"as_strided_geometry"}
    for record in records().values():
        if record.name in ours_alone or not hasattr(torch.ops.aten, record.base) or record.writes:
            continue
        schema = getattr(getattr(torch.ops.aten, record.base), record.overloads[0])._schema
        aliases = any(a.alias_info is not None and not a.alias_info.is_write for a in schema.returns)
        assert aliases == record.view, record.name


def test_masks():
    assert {"WhereBackward0", "ClampBackward0", "ClampBackward1", "ReluBackward0", "MulBackward0"} <= masking_nodes()
    assert not {"AddBackward0", "ExpBackward0", "MaximumBackward0"} & masking_nodes()


def test_nobody_reads_an_operators_nature_from_its_name_or_its_code():
    """In place, view, overload: that is in the record."""
    #: They read a user's code, or write code.
    others = {"capture/guards.py", "func/reaching.py", "ops/meta/__init__.py", "ops/override_switch.py"}
    reading = re.compile(r"__name__\.(?:starts|ends)with|co_names|operator\.__name__ (?:in|==)")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.parts[-2] not in ("_generated", "codegen") and path.relative_to(PACKAGE).as_posix() not in others
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if reading.search(line)
    ]
    assert found == []
