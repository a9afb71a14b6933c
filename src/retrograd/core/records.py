"""What the table says of an operator, for those who ask while a program runs.

The generator writes a record for each function of ``_generated/functions.py`` (``_generated/records.py``; the in-place
form of an operator has its own).  Nobody else keeps lists of operators' names or looks at how a name begins or ends.
Wrappers need no record: what it says is written into their code.  So it is loaded when somebody first asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple


class OperatorRecord(NamedTuple):
    """One operator. What the columns of the table mean is in ``derivatives/README.md``."""

    #: The name of the function: ``max_dim``, ``mul_``.
    name: str
    #: Torch's name of the operator, and of the forms that this function stands for; the first is what traces call it.
    base: str
    overloads: tuple[str, ...]
    schema: str
    #: The parameters of the function.
    arguments: tuple[str, ...]
    kernel: str
    #: The file of the table that it stands in.
    family: str = ""
    aliases: tuple[str, ...] = ()
    #: The name of the in-place form of this operator, None if there is none.
    inplace: str | None = None
    #: Of an in-place form: the operator that it is a form of.
    form_of: str | None = None
    #: Does the result share memory with the first argument?
    view: bool = False
    #: Of a view: the bit ("conj", "neg") that the result has the other way; the bit that ``self`` may not have.
    flips: str = ""
    refuses: str = ""
    #: Of a view: are its elements other numbers than those of the base?
    changes_elements: bool = False
    #: May the in-place form write to a tensor whose own elements overlap?
    may_overlap: bool | str = False
    #: Parameters that may not lie in the memory that is written to, not even if they are that tensor.
    apart: tuple[str, ...] = ()
    #: The names of the node class, of its saved tensors, and of the arguments that it gives gradients.
    nodes: tuple[str, ...] = ()
    saves: tuple[str, ...] = ()
    differentiable: tuple[str, ...] = ()
    #: For each result: has it a gradient?
    output_differentiability: tuple[bool, ...] = ()
    #: Does it throw elements away, so that their gradient is zero?
    masks: bool = False

    @property
    def writes(self) -> bool:
        """Is it in place?"""
        return self.form_of is not None


@cache
def records() -> Mapping[Any, OperatorRecord]:
    """The record of each function of the table."""
    from .._generated.records import RECORDS  # it imports all operators

    return RECORDS


def record_of(operator: Callable[..., Any]) -> OperatorRecord | None:
    """The record of an operator (or of what `ops.overload.with_kernel` made of it); None if it is not of the table.

    >>> import retrograd as torch
    >>> record_of(torch.exp).saves
    ('result',)
    """
    return records().get(operator) or records().get(original(operator))


def original(operator: Any) -> Any:
    """What a function was made of: `with_kernel`, a check of its arguments, a method of the same name."""
    own = getattr(operator, "body", operator)  # ops/override_switch.py has put a question in front of it
    return getattr(own, "__wrapped__", operator)


@cache
def masking_nodes() -> frozenset[str]:
    """The names of the nodes that give a zero gradient where the operator has thrown an element away."""
    return frozenset(node for record in records().values() if record.masks for node in record.nodes)
