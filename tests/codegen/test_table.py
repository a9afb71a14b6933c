"""The table: every kind of mistake is an error that names file, line, entry and column."""

from __future__ import annotations

import textwrap

import pytest

pytest.importorskip("yaml")

from retrograd.codegen.formula import Names
from retrograd.codegen.table import TableError, load_table

NAMES = Names(
    kernels={"mul", "exp", "sum", "max", "hidden", "conj", "split", "add_up"}, ops={"where_"}, helpers={"helper"}
)

GOOD = """
- name: mul(Tensor self, Tensor other) -> Tensor
  self: grad * other
  other: grad * self
  result: self_t * other_p + other_t * self_p
"""


@pytest.fixture
def load(tmp_path):
    def load(text, file="ops.yaml"):
        path = tmp_path / file
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return load_table([path], NAMES)

    return load


def test_a_good_entry(load):
    (entry,) = load(GOOD)
    assert entry.name == "mul" and entry.node == "MulBackward0" and entry.differentiable
    assert [a.name for a in entry.differentiable_arguments] == ["self", "other"]
    assert entry.output_differentiability == [True]
    assert entry.file == "ops.yaml" and entry.line == 2


#: name -> (table, line of the entry, column that the error names or None, further fragments)
MISTAKES = {
    "a bit that there is not": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          view: true
          refuses: sign
        """,
        2, "refuses", ["exp", "conj or neg, of a view"],
    ),
    "may_overlap without an in-place form": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          may_overlap: true
        """,
        2, "may_overlap", ["exp", "'inplace'"],
    ),
    "changes_elements of no view": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          changes_elements: true
        """,
        2, "changes_elements", ["exp", "of a view"],
    ),
    "masks without a derivative": (
        """
        - name: exp(Tensor self) -> Tensor
          differentiable: false
          masks: true
        """,
        2, "masks", ["exp", "derivative"],
    ),
    "masks that is not true or false": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          masks: "yes"
        """,
        2, "masks", ["exp", "true or false"],
    ),
    "apart of what is no tensor": (
        """
        - name: sum(Tensor self, int dim) -> Tensor
          self: grad
          result: auto_linear
          apart: [dim]
        """,
        2, "apart", ["sum", "must be of self"],
    ),
    "overloads that are no list": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          overloads: Tensor
        """,
        2, "overloads", ["exp", "a list of names"],
    ),
    "overloads that name one twice": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad
          result: auto_linear
          overloads: [Tensor, Tensor]
        """,
        2, "overloads", ["exp", "twice"],
    ),
    "an overload of two entries": (
        """
        - name: max(Tensor self) -> Tensor
          self: grad
          result: auto_linear
        - name: max.dim(Tensor self, int dim) -> Tensor
          self: grad
          result: auto_linear
          overloads: [default]
        """,
        5, "overloads", ["max_dim", "max.default is max already"],
    ),
    "unknown name": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * resutl
          result: auto_elementwise
        """,
        2, "self", ["exp", "unknown name 'resutl'", "grad, grads, result, self"],
    ),
    "unknown name in the forward formula": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
          result: self_tt * result
        """,
        2, "result", ["exp", "unknown name 'self_tt'"],
    ),
    "unknown function": (
        """
        - name: exp(Tensor self) -> Tensor
          self: hleper(grad)
          result: auto_elementwise
        """,
        2, "self", ["exp", "unknown function 'hleper'"],
    ),
    "unknown method": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad.summ()
          result: auto_elementwise
        """,
        2, "self", ["exp", "unknown method 'summ'"],
    ),
    "a kernel that is no operator": (
        """
        - name: exp(Tensor self) -> Tensor
          self: hidden(grad)
          result: auto_elementwise
        """,
        2, "self", ["exp", "'hidden' is a kernel but not an operator"],
    ),
    "unknown kernel": (
        """
        - name: nothing(Tensor self) -> Tensor
          self: grad
          result: auto_linear
        """,
        2, "kernel", ["nothing", "no kernel 'nothing'"],
    ),
    "unknown kernel by name": (
        """
        - name: exp(Tensor self) -> Tensor
          kernel: expp
          self: grad
          result: auto_linear
        """,
        2, "kernel", ["exp", "no kernel 'expp'"],
    ),
    "missing formula": (
        """
        - name: exp(Tensor self) -> Tensor
          result: auto_elementwise
        """,
        2, None, ["exp", "missing formula", "self", "differentiable: false"],
    ),
    "missing result": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
        """,
        2, "result", ["exp", "missing formula", "auto_elementwise"],
    ),
    "a saved value that no formula reads": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
          saves: mask
          result: auto_elementwise
        """,
        2, "saves", ["exp", "'mask' is saved, but no formula reads it"],
    ),
    "duplicate entry": (
        GOOD + GOOD,
        7, None, ["mul", "already defined in ops.yaml:2"],
    ),
    "wrong number of output_differentiability": (
        """
        - name: max(Tensor self, int dim) -> (Tensor values, Tensor indices)
          self: grad * indices
          output_differentiability: [true]
          result: not_implemented
        """,
        2, "output_differentiability", ["max", "1 values for 2 results"],
    ),
    "unknown type": (
        """
        - name: exp(Tenser self) -> Tensor
          self: grad
          result: auto_linear
        """,
        2, "name", ["unknown type 'Tenser' of argument 'self'"],
    ),
    "unknown result type": (
        """
        - name: exp(Tensor self) -> Tenser
          self: grad
          result: auto_linear
        """,
        2, "name", ["unknown result 'Tenser'"],
    ),
    "not a signature": (
        """
        - name: exp
          self: grad
          result: auto_linear
        """,
        2, "name", ["not a signature: 'exp'"],
    ),
    "an argument twice": (
        """
        - name: mul(Tensor self, Tensor self) -> Tensor
          self: grad
          result: auto_linear
        """,
        2, "name", ["argument 'self' appears twice"],
    ),
    "syntax error": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * (result
          result: auto_elementwise
        """,
        2, "self", ["exp", "not a Python expression: 'grad * (result'"],
    ),
    "syntax error in the forward formula": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
          result: self_t *
        """,
        2, "result", ["exp", "not a Python expression"],
    ),
    "a column that is no argument": (
        """
        - name: exp(Tensor self) -> Tensor
          slef: grad * result
          result: auto_elementwise
        """,
        2, "slef", ["exp", "'slef' is not a tensor argument"],
    ),
    "a formula for a number": (
        """
        - name: sum(Tensor self, int dim) -> Tensor
          self: grad
          dim: grad
          result: auto_linear
        """,
        2, "dim", ["sum", "'dim' is not a tensor argument"],
    ),
    "a formula that reads no gradient": (
        """
        - name: exp(Tensor self) -> Tensor
          self: result * result
          result: auto_elementwise
        """,
        2, "self", ["exp", "reads neither 'grad' nor 'grads'"],
    ),
    "grad where there are several": (
        """
        - name: max(Tensor self, int dim) -> (Tensor values, Tensor indices)
          self: grad * indices
          result: not_implemented
        """,
        2, "self", ["max", "'grad' is ambiguous"],
    ),
    "formulas of what has none": (
        """
        - name: exp(Tensor self) -> Tensor
          differentiable: false
          self: grad
          result: auto_linear
        """,
        2, "differentiable", ["exp", "false, but the entry has formulas"],
    ),
    "an entry without a name": (
        """
        - self: grad
          result: auto_linear
        """,
        2, "name", ["needs a 'name' column"],
    ),
    "elementwise with formulas together": (
        """
        - name: mul(Tensor self, Tensor other) -> Tensor
          self, other: helper(grad, self, other)
          result: auto_elementwise
        """,
        2, "result", ["mul", "auto_elementwise needs one formula an argument"],
    ),
    "a formula twice": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
          self: grad
          result: auto_elementwise
        """,
        2, "self", ["exp"],
    ),
    "a table that is no list": (
        """
        name: exp(Tensor self) -> Tensor
        self: grad * result
        """,
        None, None, [],
    ),
    "yaml that cannot be read": (
        """
        - name: [exp(Tensor self
        """,
        None, None, [],
    ),
    "a tensor argument given twice": (
        """
        - name: mul(Tensor self, Tensor other) -> Tensor
          self: grad * other
          self, other: helper(grad, self, other)
          result: not_implemented
        """,
        2, "self, other", ["mul"],
    ),
    "a number as formula option": (
        """
        - name: exp(Tensor self) -> Tensor
          self: grad * result
          result: auto_elementwize
        """,
        2, "result", ["exp", "unknown name 'auto_elementwize'"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes(load, mistake):
    table, line, column, fragments = MISTAKES[mistake]
    with pytest.raises(TableError) as error:
        load(table)
    text = str(error.value)
    assert text.startswith("ops.yaml:" if line is None else f"ops.yaml:{line}: ")
    if column is not None:
        assert f"column '{column}'" in text or f"'{column}' column" in text
    for fragment in fragments:
        assert fragment in text


def test_the_file_is_named(load):
    with pytest.raises(TableError, match=r"^other\.yaml:3: exp: column 'self': unknown name 'x'"):
        load("\n\n- name: exp(Tensor self) -> Tensor\n  self: grad * x\n  result: auto_elementwise\n", "other.yaml")


def test_duplicates_across_files(tmp_path):
    for file in ("a.yaml", "b.yaml"):
        (tmp_path / file).write_text(GOOD)
    with pytest.raises(TableError, match=r"b\.yaml:2: mul: already defined in a\.yaml:2"):
        load_table(sorted(tmp_path.glob("*.yaml")), NAMES)


def test_nodes_are_numbered_among_overloads(load):
    first, second, third = load(
        """
        - name: sum(Tensor self) -> Tensor
          self: grad
          result: auto_linear
        - name: sum.dim(Tensor self, int dim) -> Tensor
          self: grad
          result: auto_linear
        - name: add_up(Tensor self) -> Tensor
          self: grad
          result: auto_linear
        """
    )
    assert [e.node for e in (first, second, third)] == ["SumBackward0", "SumBackward1", "AddUpBackward0"]
    assert second.name == "sum_dim" and not second.method and first.method


def test_an_operator_without_derivative(load):
    (entry,) = load("- name: exp(Tensor self) -> Tensor\n  differentiable: false\n")
    assert not entry.differentiable and entry.output_differentiability == [False]


def test_what_formulas_read(load):
    (entry,) = load(
        """
        - name: mul(Tensor self, Tensor other) -> Tensor
          self: grad * other + self.shape[0]
          other: grad.sum(len(other.shape)) * result.dtype
          result: not_implemented
        """
    )
    reads = entry.reads().of
    assert reads["self"] == {"shape"}
    assert reads["other"] == {"value", "shape"}
    assert reads["result"] == {"dtype"}


def test_an_empty_table(load):
    assert load("") == []
    assert load("# only a remark\n") == []
