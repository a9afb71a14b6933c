"""Nested arguments of custom functions: lists, tuples and dicts that hold tensors.

An argument (or output) that contains tensors is taken apart into leaves, and a `Structure` remembers how to put it
together again: gradients travel one a leaf, users see them in the shape of their own argument.  A container without
any tensor in it is a leaf like every other Python object, as is one that contains itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..tensor import Tensor


class Structure:
    """How one value was taken apart: a leaf (no `children`), or a container of a kind with the given keys."""

    __slots__ = ("children", "keys", "kind", "leaves")

    def __init__(self, kind: Any = None, keys: Sequence[Any] = (), children: Sequence[Structure] = ()) -> None:
        #: None for a leaf; else list, tuple, dict or a namedtuple class.
        self.kind: Any = kind
        #: The keys of a dict, in order; the positions of a sequence.
        self.keys: tuple[Any, ...] = tuple(keys)
        self.children: tuple[Structure, ...] = tuple(children)
        #: How many leaves there are in all.
        self.leaves: int = sum(child.leaves for child in children) if kind is not None else 1

    def build(self, leaves: Sequence[Any]) -> Any:
        """The value again, with other leaves in it."""
        if self.kind is None:
            (leaf,) = leaves
            return leaf
        position, parts = 0, []
        for child in self.children:
            parts.append(child.build(leaves[position : position + child.leaves]))
            position += child.leaves
        if self.kind is dict:
            return dict(zip(self.keys, parts))
        if self.kind is list:
            return parts
        return self.kind(*parts) if hasattr(self.kind, "_fields") else tuple(parts)

    def match(self, value: Any, complain: Callable[[str], Exception]) -> list[Any]:
        """The leaves of `value`, which is to have this structure; None stands for a whole part of Nones."""
        if self.kind is None:
            return [value]
        if value is None:
            return [None] * self.leaves
        if self.kind is dict:
            if not isinstance(value, dict):
                raise complain(f"a dict with the keys {list(self.keys)} was expected, not {type(value).__name__}")
            unknown = [key for key in value if key not in self.keys]
            if unknown:
                raise complain(f"unknown keys {unknown}; the argument has {list(self.keys)}")
            parts = [value.get(key) for key in self.keys]
        else:
            if not isinstance(value, (list, tuple)) or len(value) != len(self.children):
                got = f"{type(value).__name__}" + (f" of {len(value)}" if isinstance(value, (list, tuple)) else "")
                raise complain(f"a {self.kind.__name__} of {len(self.children)} was expected, not {got}")
            parts = list(value)
        leaves: list[Any] = []
        for child, part in zip(self.children, parts):
            leaves += child.match(part, complain)
        return leaves


LEAF = Structure()


def take_apart(value: Any, leaves: list[Any]) -> Structure:
    """Append the leaves of `value` to `leaves` and return its structure.

    >>> leaves: list = []
    >>> structure = take_apart({"shape": (2, 3)}, leaves)  # no tensor in it: a leaf
    >>> structure is LEAF, leaves
    (True, [{'shape': (2, 3)}])
    """
    if isinstance(value, Tensor) or not _is_container(value) or not _holds_tensor(value, set()):
        leaves.append(value)
        return LEAF
    if isinstance(value, dict):
        return Structure(dict, tuple(value), [take_apart(part, leaves) for part in value.values()])
    return Structure(type(value), range(len(value)), [take_apart(part, leaves) for part in value])


def put_together(
    structures: Sequence[Structure], leaves: list[Any], worthwhile: Callable[[list[Any]], bool] | None = None
) -> list[Any]:
    """The values again, one a structure, with other leaves; False for a part that is not `worthwhile`."""
    position, values = 0, []
    for structure in structures:
        if structure is LEAF:
            values.append(leaves[position])
            position += 1
            continue
        part = leaves[position : position + structure.leaves]
        values.append(structure.build(part) if worthwhile is None or worthwhile(part) else False)
        position += structure.leaves
    return values


def _is_container(value: Any) -> bool:
    kind = value.__class__
    return kind is tuple or kind is list or kind is dict or (isinstance(value, tuple) and hasattr(value, "_fields"))


def _holds_tensor(container: Any, above: set[int]) -> bool:
    """Is there a tensor somewhere in it, and no container that contains itself?"""
    found = False
    if id(container) in above:
        raise _Circular
    above.add(id(container))
    try:
        for part in container.values() if isinstance(container, dict) else container:
            if isinstance(part, Tensor) or (_is_container(part) and _holds_tensor(part, above)):
                found = True
    except _Circular:
        if len(above) > 1:
            raise
        return False
    finally:
        above.discard(id(container))
    return found


class _Circular(Exception):
    """A container contains itself."""
