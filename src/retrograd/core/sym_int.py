"""SymInt: a size that is no number, in the shape of a nested tensor whose components differ in it.

Two nested tensors have the same *nested int* there if they have the same ragged structure, that is the same tensor of
offsets.  It can be compared and multiplied, and that is all: a size that has a different value for each component is
equal to no number, and larger than every size that torch treats as a special case (0 and 1).
"""

from __future__ import annotations

from typing import Any


class NestedIntNode:
    """``factor`` times the ragged size number `number`; what a `SymInt` holds.

    >>> str(NestedIntNode(1, 1)), str(NestedIntNode(1, 5))
    ('j1', '5*j1')
    """

    __slots__ = ("coeff", "t_id")

    def __init__(self, t_id: int, coeff: int) -> None:
        self.t_id: int = t_id
        self.coeff: int = coeff

    def __str__(self) -> str:
        return f"j{self.t_id}" if self.coeff == 1 else f"{self.coeff}*j{self.t_id}"

    __repr__ = __str__

    def nested_int(self) -> int:
        return self.t_id

    def nested_int_coeff(self) -> int:
        return self.coeff

    def is_nested_int(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return NestedIntNode, (self.t_id, self.coeff)


#: A ragged size is taken to be at least this.
_AT_LEAST = 2


class SymInt:
    """A size without a value.

    >>> size = SymInt(NestedIntNode(1, 1))
    >>> size, size == size, size == 3, size * 2, size > 1
    (j1, True, False, 2*j1, True)
    """

    __slots__ = ("node",)

    def __init__(self, node: NestedIntNode) -> None:
        self.node: NestedIntNode = node

    def __repr__(self) -> str:
        return str(self.node)

    def __hash__(self) -> int:
        return hash((self.node.t_id, self.node.coeff))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymInt):
            return False
        return (self.node.t_id, self.node.coeff) == (other.node.t_id, other.node.coeff)

    def __ge__(self, other: Any) -> bool:
        if isinstance(other, SymInt):
            if self.node.t_id != other.node.t_id:
                raise ValueError(f"nested int {self} cannot be compared with {other}: they are different sizes")
            return self.node.coeff >= other.node.coeff
        if isinstance(other, int):
            if other <= _AT_LEAST:
                return True
            raise ValueError(f"nested int {self} cannot be compared with {other}: it has no value of its own")
        return NotImplemented

    def __gt__(self, other: Any) -> bool:
        if isinstance(other, SymInt):
            return self >= other and self != other
        return self >= other + 1 if isinstance(other, int) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        return not self >= other

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __mul__(self, factor: Any) -> SymInt:
        if not isinstance(factor, int):
            return NotImplemented
        return SymInt(NestedIntNode(self.node.t_id, self.node.coeff * factor))

    __rmul__ = __mul__

    def __bool__(self) -> bool:
        return True

    def __reduce__(self) -> tuple[Any, ...]:
        return SymInt, (self.node,)
