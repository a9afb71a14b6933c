"""Signatures."""

from __future__ import annotations

import pytest

pytest.importorskip("yaml")

from retrograd.codegen.schema import SchemaError, parse_schema


def test_a_signature():
    schema = parse_schema("add.Tensor(Tensor self, Tensor|Scalar other, *, Scalar alpha=1) -> Tensor")
    assert (schema.base, schema.overload, schema.name) == ("add", "Tensor", "add_Tensor")
    assert [(a.type, a.name, a.default, a.keyword_only) for a in schema.arguments] == [
        ("Tensor", "self", None, False),
        ("Tensor|Scalar", "other", None, False),
        ("Scalar", "alpha", "1", True),
    ]
    assert schema.results == ["result"] and not schema.returns_list
    assert schema.arguments[0].parameter == "input" and schema.arguments[1].parameter == "other"
    assert schema.argument("alpha").keyword_only and schema.argument("nothing") is None


def test_defaults_with_commas():
    schema = parse_schema("roll(Tensor self, int[] shifts, int[] dims=(0, 1), bool keep=False) -> Tensor")
    assert [a.default for a in schema.arguments] == [None, None, "(0, 1)", "False"]


def test_results():
    assert parse_schema("max(Tensor self) -> (Tensor values, Tensor indices)").results == ["values", "indices"]
    several = parse_schema("unbind(Tensor self) -> Tensor[]")
    assert several.returns_list and several.results == ["result"]


def test_kinds_of_arguments():
    schema = parse_schema("f(Tensor[] tensors, Tensor? weight=None, int[]... size) -> Tensor")
    assert [a.is_list for a in schema.arguments] == [True, False, False]
    assert [a.is_tensor for a in schema.arguments] == [True, True, False]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f", "not a signature"),
        ("f(Tensor self)", "not a signature"),
        ("f(Tensor self) -> ", "not a signature"),
        ("f(Tensr self) -> Tensor", "unknown type 'Tensr' of argument 'self'"),
        ("f(self) -> Tensor", "unknown type '' of argument 'self'"),
        ("f(Tensor a, Tensor a) -> Tensor", "'a' appears twice"),
        ("f(Tensor a) -> int", "unknown result 'int'"),
        ("f(Tensor a) -> (Tensor)", "must be 'Tensor name'"),
        ("f(Tensor a) -> (int n)", "must be 'Tensor name'"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(SchemaError, match=message):
        parse_schema(text)
