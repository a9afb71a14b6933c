"""Formulas: what they read, and how one text becomes source for two namespaces."""

from __future__ import annotations

import pytest

pytest.importorskip("yaml")

from retrograd.codegen.formula import FormulaError, Names, lower, parse, reads

NAMES = Names(kernels={"sum", "where", "conj", "expand", "zeros_like"}, ops={"where", "zeros_like"}, helpers={"helper"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grad", {"grad": {"value"}}),
        ("grad * other", {"grad": {"value"}, "other": {"value"}}),
        ("grad.expand(self.shape)", {"grad": {"value"}, "self": {"shape"}}),
        ("grad.sum(self.ndim) if self.dtype else grad", {"grad": {"value"}, "self": {"ndim", "dtype"}}),
        ("[g * self for g in grads]", {"grads": {"value"}, "self": {"value"}}),
        ("helper(grad, self, dim=dim)", {"grad": {"value"}, "self": {"value"}, "dim": {"value"}}),
        ("where(self > 0, grad, 0)", {"grad": {"value"}, "self": {"value"}}),
        ("grad * self.conj()", {"grad": {"value"}, "self": {"value"}}),
    ],
)
def test_reads(text, expected):
    assert reads(parse(text), {"grad", "grads", "self", "other", "dim"}, NAMES).of == expected


def test_reads_value():
    found = reads(parse("grad * self.shape[0]"), {"grad", "self"}, NAMES)
    assert found.value("grad") and not found.value("self") and not found.value("other")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("grad * slef", "unknown name 'slef'"),
        ("gradd", "unknown name 'gradd'"),
        ("nothing(grad)", "unknown function 'nothing'"),
        ("grad.nothing()", "unknown method 'nothing'"),
        ("expand(grad)", "is a kernel but not an operator"),
        ("(lambda g: g)(grad)", "cannot call"),
        ("grad[0](1)", "cannot call"),
    ],
)
def test_mistakes(text, message):
    with pytest.raises(FormulaError, match=message):
        reads(parse(text), {"grad", "self"}, NAMES)


@pytest.mark.parametrize("text", ["grad *", "grad = 1", "(", "", "for x in y", "return grad"])
def test_what_is_no_expression(text):
    with pytest.raises(FormulaError, match="not a Python expression"):
        parse(text)


@pytest.mark.parametrize(
    ("text", "arrays", "tensors"),
    [
        ("grad * self", "grad * self", "grad * self"),
        ("grad.sum(dim, keepdim)", "kernels.sum(grad, dim, keepdim)", "grad.sum(dim, keepdim)"),
        ("where(self > 0, grad, 0)", "kernels.where(self > 0, grad, 0)", "ops.where(self > 0, grad, 0)"),
        ("helper(grad, dim=dim)", "formulas.helper(kernels, grad, dim=dim)", "formulas.helper(ops, grad, dim=dim)"),
        ("self.conj()", "self.conjugate()", "self.conjugate()"),
        ("(grad * self).sum(0).expand(self.shape)", "kernels.expand(kernels.sum(grad * self, 0), self.shape)",
         "(grad * self).sum(0).expand(self.shape)"),
        ("len(dim)", "len(dim)", "len(dim)"),
    ],
)  # fmt: skip
def test_lowering(text, arrays, tensors):
    tree = parse(text)
    assert lower(tree, True, NAMES) == arrays
    assert lower(tree, False, NAMES) == tensors
    assert lower(tree, True, NAMES) == arrays  # the tree is not changed


def test_renaming():
    tree = parse("grad.expand(self.shape) * self")
    assert lower(tree, True, NAMES, {"self.shape": "self_shape"}) == "kernels.expand(grad, self_shape) * self"
    assert lower(tree, False, NAMES, {"self": "self_p", "grad": "g"}) == "g.expand(self_p.shape) * self_p"
