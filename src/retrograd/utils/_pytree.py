"""``torch.utils._pytree``: nested containers taken apart into their leaves, and put together again.

Containers are lists, tuples, dicts and what is registered; anything else is a leaf. Nothing here recurses: a structure
may be as deep as it likes (but for its text, which is JSON).

>>> import retrograd as torch
>>> from retrograd.utils._pytree import tree_flatten, tree_map, tree_unflatten
>>> leaves, spec = tree_flatten({"a": [1, 2], "b": (3, None)})
>>> leaves
[1, 2, 3, None]
>>> tree_unflatten([10, 20, 30, 40], spec)
{'a': [10, 20], 'b': (30, 40)}
>>> tree_map(lambda x, y: x + y, [1, (2,)], [10, (20,)])
[11, (22,)]
"""

from __future__ import annotations

import enum
import importlib
import json
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from typing import Any

from .pytree_nodes import (  # (those that are not used here have their home in this module for the world)
    READ,
    SUPPORTED_NODES,
    WRITTEN,
    ConstantNode,  # noqa: F401
    Context,
    DumpableContext,
    FlattenFn,
    FromDumpableContextFn,
    GetAttrKey,
    MappingKey,
    SequenceKey,
    ToDumpableContextFn,
    UnflattenFn,
    _deregister_pytree_node,  # noqa: F401
    _register_namedtuple,  # noqa: F401
    _register_pytree_node,  # noqa: F401
    is_constant_class,  # noqa: F401
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    node_type,
    register_constant,
    register_dataclass,
    register_pytree_node,
)

PyTree = Any
IsLeaf = Callable[[Any], bool] | None

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "GetAttrKey", "LeafSpec", "MappingKey",
    "PyTree", "PyTreeSpec", "SequenceKey", "ToDumpableContextFn", "TreeSpec", "UnflattenFn", "is_namedtuple",
    "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance",
    "keystr", "key_get", "register_constant", "register_dataclass", "register_pytree_node",
    "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_dict", "treespec_dumps", "treespec_leaf",
    "treespec_loads", "treespec_pprint", "treespec_tuple",
]  # fmt: skip


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Is it no container?"""
    return (is_leaf is not None and is_leaf(tree)) or node_type(tree) not in SUPPORTED_NODES


class TreeSpec:
    """What a structure is without its leaves: the container's class, what else it keeps, and the specs of its parts."""

    __slots__ = ("type", "_context", "_children", "num_nodes", "num_leaves", "num_children")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]) -> None:
        self.type = type
        self._context = context
        self._children = children_specs
        self.num_children = len(children_specs)
        self.num_nodes: int = 1 + sum(child.num_nodes for child in children_specs)
        self.num_leaves: int = sum(child.num_leaves for child in children_specs) if type is not None else 1

    @property
    def context(self) -> Any:
        return self._context

    @property
    def children_specs(self) -> list[TreeSpec]:
        return self._children

    def children(self) -> list[TreeSpec]:
        """The specs of its parts."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of one part."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Does it stand for a leaf?"""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """A structure like this, of these leaves."""
        return tree_unflatten(leaves, self)

    def flatten_up_to(self, tree: Any) -> list:
        """The parts of `tree` which stand where this structure has its leaves; it may go deeper than this one there."""
        found: list[Any] = []
        todo: list[tuple[TreeSpec, Any]] = [(self, tree)]
        while todo:
            spec, part = todo.pop()
            if spec.type is None:
                found.append(part)
                continue
            kind = node_type(part)
            if kind is not spec.type and not (spec._is_mapping() and kind in (dict, OrderedDict, defaultdict)):
                wanted = spec._context if spec.type is namedtuple else spec.type
                raise ValueError(f"Node type mismatch; expected {wanted}, but got {type(part)}.")
            children, context = SUPPORTED_NODES[kind].flatten(part)
            children = list(children)
            if len(children) != spec.num_children:
                raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
            if spec._is_mapping():
                keys = spec._keys()
                if set(keys) != set(part):
                    raise ValueError(f"Node keys mismatch: {sorted(map(str, set(keys) ^ set(part)))}")
                children = [part[key] for key in keys]
            elif context != spec._context and kind is not deque:  # (whose context is the most that it may hold)
                raise ValueError(f"Node context mismatch; expected {spec._context!r}, but got {context!r}.")
            todo.extend(zip(reversed(spec._children), reversed(children)))
        return found

    def _is_mapping(self) -> bool:
        return self.type in (dict, OrderedDict, defaultdict)

    def _keys(self) -> list:
        return self._context[1] if self.type is defaultdict else self._context

    def _marks(self) -> Iterator[Any]:
        """What tells structures apart, in one order."""
        todo = [self]
        while todo:
            spec = todo.pop()
            yield spec.type, spec._context, spec.num_children
            todo.extend(reversed(spec._children))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TreeSpec):
            return NotImplemented
        if self.num_nodes != other.num_nodes or self.num_leaves != other.num_leaves:
            return False
        return all(ours == theirs for ours, theirs in zip(self._marks(), other._marks()))

    def __hash__(self) -> int:
        return hash((self.num_nodes, self.num_leaves, self.type))

    def __repr__(self) -> str:
        pieces: list[str] = []
        todo: list[tuple[Any, int]] = [(self, 1)]
        while todo:
            spec, depth = todo.pop()
            if isinstance(spec, str):
                pieces.append(spec)
            elif spec.type is None:
                pieces.append("*")
            else:
                pieces.append(f"TreeSpec({spec.type.__name__}, {spec._context}, [")
                todo.append(("])", 0))
                for index, child in reversed(list(enumerate(spec._children))):
                    todo.append((child, depth + 1))
                    if index:
                        todo.append((",\n" + "  " * depth, 0))
        return "".join(pieces)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The spec of a leaf."""

    def __init__(self) -> None:
        super().__init__(None, None, [])


_LEAF = LeafSpec()


def _walk(tree: Any, is_leaf: IsLeaf, with_keys: bool) -> tuple[list, list, TreeSpec]:
    """Leaves, their paths (if wanted) and the spec: one pass with a stack of containers that are being read."""
    leaves: list[Any] = []
    paths: list[tuple] = []
    done: list[TreeSpec] = []  # specs of finished parts, of all open containers
    # What is to be done: (part, path), or (container's class, context, number of parts) to be closed.
    todo: list[tuple] = [(tree, ())]
    while todo:
        item = todo.pop()
        if len(item) == 3:
            kind, context, count = item
            children = done[len(done) - count :]
            del done[len(done) - count :]
            done.append(TreeSpec(kind, context, children))
            continue
        part, path = item
        kind = node_type(part)
        rules = SUPPORTED_NODES.get(kind)
        if rules is None or (is_leaf is not None and is_leaf(part)):
            leaves.append(part)
            paths.append(path)
            done.append(_LEAF)
            continue
        if with_keys:
            if rules.flatten_with_keys is None:
                raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Register one")
            keyed, context = rules.flatten_with_keys(part)
            children_and_paths = [(child, (*path, key)) for key, child in keyed]
        else:
            children, context = rules.flatten(part)
            children_and_paths = [(child, ()) for child in children]
        todo.append((kind, context, len(children_and_paths)))
        todo.extend(reversed(children_and_paths))
    return leaves, paths, done[0]


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """The leaves of a structure, and what it is without them."""
    if is_leaf is None:
        # The commonest: a leaf, and a container of leaves.
        kind = node_type(tree)
        rules = SUPPORTED_NODES.get(kind)
        if rules is None:
            return [tree], _LEAF
        children, context = rules.flatten(tree)
        if children.__class__ is not list:
            children = list(children)
        for child in children:
            if child.__class__ in SUPPORTED_NODES or isinstance(child, tuple):
                break
        else:
            return list(children), TreeSpec(kind, context, [_LEAF] * len(children))
    leaves, _, spec = _walk(tree, is_leaf, False)
    return leaves, spec


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The structure that `treespec` describes, of these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
        )
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds "
            f"{treespec.num_leaves} items ({treespec})."
        )
    if treespec.type is None:
        return leaves[0]
    if treespec.num_nodes == len(leaves) + 1 == treespec.num_children + 1:  # a container of leaves
        return SUPPORTED_NODES[treespec.type].unflatten(leaves, treespec._context)
    source = iter(leaves)
    done: list[Any] = []
    todo: list[tuple[TreeSpec, bool]] = [(treespec, False)]
    while todo:
        spec, opened = todo.pop()
        if spec.type is None:
            done.append(next(source))
        elif not opened:
            todo.append((spec, True))
            todo.extend((child, False) for child in reversed(spec._children))
        else:
            first = len(done) - spec.num_children
            parts = done[first:]
            del done[first:]
            done.append(SUPPORTED_NODES[spec.type].unflatten(parts, spec._context))
    return done[0]


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list:
    """The leaves of a structure."""
    return _walk(tree, is_leaf, False)[0]


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list:
    """The leaves of the arguments of a call."""
    return tree_leaves((args, kwargs))


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a structure, one after the other."""
    yield from tree_leaves(tree, is_leaf)


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """What a structure is without its leaves."""
    return _walk(tree, is_leaf, False)[2]


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list, TreeSpec]:
    """Pairs of a path and the leaf that is found there, and what the structure is without them."""
    leaves, paths, spec = _walk(tree, is_leaf, True)
    return list(zip(paths, leaves)), spec


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list:
    """Pairs of a path and the leaf that is found there."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """A structure like `tree`, of what `func` makes of its leaves and of what `rests` have there."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), spec)


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree` itself, after `func` was called with each leaf."""
    leaves, spec = tree_flatten(tree, is_leaf)
    for call in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests)):
        func(*call)
    return tree


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` whose function is given the path first."""
    leaves, paths, spec = _walk(tree, is_leaf, True)
    return tree_unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)), spec)


def _chooser(which: Any) -> Callable[[Any], bool]:
    return which if callable(which) and not isinstance(which, type) else lambda leaf: isinstance(leaf, which)


def tree_map_only(which: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` for leaves of some classes (or those of which `which` says yes); others stay."""
    chosen = _chooser(which)
    return tree_map(lambda leaf: func(leaf) if chosen(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_map_only_(which: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map_` for leaves of some classes."""
    chosen = _chooser(which)
    return tree_map_(lambda leaf: func(leaf) if chosen(leaf) else None, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Does `pred` hold for all leaves?"""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Does `pred` hold for a leaf?"""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(which: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Does `pred` hold for all leaves of some classes?"""
    chosen = _chooser(which)
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def tree_any_only(which: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Does `pred` hold for a leaf of some classes?"""
    chosen = _chooser(which)
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if chosen(leaf))


def keystr(kp: Iterable[Any]) -> str:
    """A path as one writes it.

    >>> from retrograd.utils._pytree import keystr, tree_leaves_with_path
    >>> [keystr(path) for path, _ in tree_leaves_with_path({"a": [1, 2]})]
    ["['a'][0]", "['a'][1]"]
    """
    return "".join(map(str, kp))


def key_get(obj: Any, kp: Iterable[Any]) -> Any:
    """What is found at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list | None:
    """The leaves of `tree`, a beginning of a structure like `treespec`, for each leaf of that; None if it is none.

    >>> from retrograd.utils import _pytree
    >>> _pytree._broadcast_to_and_flatten((0, None), _pytree.tree_structure(("a", ["b", "c"])))
    [0, None, None]
    """
    found: list[Any] = []
    todo = [(tree, treespec)]
    while todo:
        part, spec = todo.pop()
        if tree_is_leaf(part, is_leaf):
            found += [part] * spec.num_leaves
            continue
        kind = node_type(part)
        children, context = SUPPORTED_NODES[kind].flatten(part)
        if kind is not spec.type or len(children) != spec.num_children or context != spec.context:
            return None
        todo += zip(reversed(children), reversed(spec.children_specs))
    return found


# --------------------------------------------------------------------------------------------------- structures by hand


def treespec_leaf() -> LeafSpec:
    """The spec of a leaf.

    >>> from retrograd.utils import _pytree
    >>> _pytree.tree_structure(5) == _pytree.treespec_leaf()
    True
    """
    return _LEAF


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The spec of a tuple of parts with these specs."""
    parts = list(iterable)
    if not all(isinstance(part, TreeSpec) for part in parts):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {parts}.")
    return TreeSpec(tuple, None, parts)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The spec of a dict of parts with these specs."""
    parts = dict(mapping, **kwargs)
    if not all(isinstance(part, TreeSpec) for part in parts.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {parts}.")
    return TreeSpec(dict, list(parts), list(parts.values()))


class _Star:
    """A leaf, printed."""

    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A structure, printed as if its leaves were stars.

    >>> from retrograd.utils import _pytree
    >>> _pytree.treespec_pprint(_pytree.tree_structure([1, {"a": 2}]))
    "[*, {'a': *}]"
    """
    return repr(tree_unflatten([_Star()] * treespec.num_leaves, treespec))


# --------------------------------------------------------------------------------------------------- structures as text

#: The version of the texts, which are torch's.
_PROTOCOL = 1

def _dump_member(value: Any) -> Any:
    """A member of an enumeration, for JSON."""
    if isinstance(value, enum.Enum):
        kind = type(value)
        return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": value.name}
    raise TypeError(f"Object of type {type(value).__name__} is not JSON serializable")


def _load_member(written: dict[str, Any]) -> Any:
    if "__enum__" not in written:
        return written
    module, _, name = written["fqn"].partition(":")
    kind: Any = reduce(getattr, name.split("."), importlib.import_module(module))
    return kind[written["name"]]


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """A structure as a text, torch's, from which `treespec_loads` makes it again.

    >>> from retrograd.utils import _pytree
    >>> _pytree.treespec_dumps(_pytree.tree_structure(()))
    '[1, {"type": "builtins.tuple", "context": "null", "children_spec": []}]'
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    _check_protocol(_PROTOCOL if protocol is None else protocol)

    def written(spec: TreeSpec) -> dict[str, Any]:
        if spec.type is None:
            return {"type": None, "context": None, "children_spec": []}
        how = WRITTEN.get(spec.type)
        if how is None or how.name is None:
            raise NotImplementedError(
                f"No registered serialization name for {spec.type} found. Please update your register_pytree_node call "
                "with a `serialized_type_name` kwarg."
            )
        if how.dump is not None:
            context = how.dump(spec._context)
        else:
            try:
                context = json.dumps(spec._context, default=_dump_member)
            except TypeError as error:
                raise TypeError(
                    "Unable to serialize context. Please make the context json dump-able, or register a custom "
                    f"serializer: register_pytree_node({spec.type.__name__}, ..., to_dumpable_context=..., "
                    "from_dumpable_context=...)"
                ) from error
        return {"type": how.name, "context": context, "children_spec": [written(child) for child in spec._children]}

    return json.dumps((_PROTOCOL, written(treespec)), default=_dump_member)


def treespec_loads(serialized: str) -> TreeSpec:
    """The structure that a text of `treespec_dumps` describes."""
    protocol, content = json.loads(serialized, object_hook=_load_member)
    _check_protocol(protocol)

    def read(part: dict[str, Any]) -> TreeSpec:
        name, context = part["type"], part["context"]
        if name is None:
            return _LEAF
        if name not in READ:
            raise NotImplementedError(
                f"Deserializing {name} in pytree is not registered: register_pytree_node(cls, ...)"
            )
        kind = READ[name]
        load = WRITTEN[kind].load
        context = json.loads(context, object_hook=_load_member) if load is None else load(context)
        return TreeSpec(kind, context, [read(child) for child in part["children_spec"]])

    return read(content)


def _check_protocol(protocol: Any) -> None:
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
