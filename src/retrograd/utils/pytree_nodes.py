"""Which objects are containers, for `_pytree.py`: how each class of them is taken apart, put together and written down.

Lists, tuples, dicts, named tuples and the like are containers from the start; `register_pytree_node` and its relatives
add classes.
"""

from __future__ import annotations

import dataclasses
import importlib
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .. import return_types
from ..core.size import Size
from ..core.where import users_level

Context = Any
FlattenFn = Callable[[Any], tuple[list, Any]]
UnflattenFn = Callable[[Iterable[Any], Any], Any]
DumpableContext = Any
ToDumpableContextFn = Callable[[Any], Any]
FromDumpableContextFn = Callable[[Any], Any]


@dataclass(frozen=True)
class SequenceKey:
    """Where a leaf is found in a sequence."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """Where a leaf is found in a mapping."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """Where a leaf is found in an object."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        return getattr(obj, self.name)


class Kind(NamedTuple):
    """How the containers of a class are taken apart and put together."""

    flatten: FlattenFn
    unflatten: UnflattenFn
    flatten_with_keys: Callable[[Any], tuple[list, Any]] | None


def _pairs(container: Any) -> tuple[list, Any]:
    return list(container.values()), list(container)


def _keyed(container: Any) -> tuple[list, Any]:
    return [(MappingKey(key), value) for key, value in container.items()], list(container)


def _numbered(container: Any) -> tuple[list, Any]:
    return [(SequenceKey(index), value) for index, value in enumerate(container)], None


def _named(container: Any) -> tuple[list, Any]:
    return [(GetAttrKey(name), value) for name, value in zip(container._fields, container)], type(container)


#: Class -> how its containers are taken apart.
SUPPORTED_NODES: dict[Any, Kind] = {
    list: Kind(lambda x: (list(x), None), lambda leaves, context: list(leaves), _numbered),
    tuple: Kind(lambda x: (list(x), None), lambda leaves, context: tuple(leaves), _numbered),
    Size: Kind(lambda x: (list(x), None), lambda leaves, context: tuple(leaves), _numbered),
    dict: Kind(_pairs, lambda leaves, context: dict(zip(context, leaves)), _keyed),
    OrderedDict: Kind(_pairs, lambda leaves, context: OrderedDict(zip(context, leaves)), _keyed),
    defaultdict: Kind(
        lambda x: (list(x.values()), [x.default_factory, list(x)]),
        lambda leaves, context: defaultdict(context[0], zip(context[1], leaves)),
        lambda x: ([(MappingKey(key), value) for key, value in x.items()], [x.default_factory, list(x)]),
    ),
    deque: Kind(
        lambda x: (list(x), x.maxlen),
        lambda leaves, context: deque(leaves, maxlen=context),
        lambda x: (_numbered(x)[0], x.maxlen),
    ),
    # All classes of named tuples: their context says which.
    namedtuple: Kind(lambda x: (list(x), type(x)), lambda leaves, context: context(*leaves), _named),
}


class Written(NamedTuple):
    """How the structure of a class is written to a text: the name, and what becomes of the context there and back."""

    name: str | None
    dump: ToDumpableContextFn | None
    load: FromDumpableContextFn | None


#: Class -> how it is written; what it is written as -> class; class of named tuples -> what it is written as.
WRITTEN: dict[Any, Written] = {}
READ: dict[str, Any] = {}
_NAMED: dict[Any, str] = {}
_CONSTANTS: set[type] = set()


def register_pytree_node(
    cls: type,
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: Any = None,
    from_dumpable_context: Any = None,
    flatten_with_keys_fn: Any = None,
) -> None:
    """Make the objects of a class containers. `flatten_fn` gives their parts, and what else `unflatten_fn` needs.

    `serialized_type_name` is the class's name in texts (`treespec_dumps`), where the context stands as what
    `to_dumpable_context` makes of it; `flatten_with_keys_fn` gives pairs of a key and a part.

    >>> from retrograd.utils import _pytree
    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> _pytree.register_pytree_node(Pair, lambda x: ([x.a, x.b], None), lambda parts, _: Pair(*parts))
    >>> _pytree.tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(
            f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered."
        )
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    SUPPORTED_NODES[cls] = Kind(flatten_fn, unflatten_fn, flatten_with_keys_fn)
    _write_as(cls, Written(serialized_type_name, to_dumpable_context, from_dumpable_context))


def _write_as(cls: Any, how: Written) -> None:
    WRITTEN[cls] = how
    if how.name is not None:
        READ[how.name] = cls


def _register_pytree_node(cls: type, *args: Any, **kwargs: Any) -> None:
    """`register_pytree_node` under its old name, which says that it is, and replaces what was registered."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        users_level(),
    )
    _replace(cls, *args, **kwargs)


def _replace(cls: type, *args: Any, **kwargs: Any) -> None:
    """`register_pytree_node`, for a class that may have been registered before."""
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.",
            stacklevel=users_level(),
        )
        _deregister_pytree_node(cls)
    register_pytree_node(cls, *args, **kwargs)


def _deregister_pytree_node(cls: type) -> None:
    """Make the objects of a class leaves again."""
    del SUPPORTED_NODES[cls]
    how = WRITTEN.pop(cls, None)
    if how is not None and how.name is not None:
        del READ[how.name]


def _register_namedtuple(cls: type, *, serialized_type_name: str) -> None:
    """Give a class of named tuples, which are containers anyway, the name that it has in texts."""
    _NAMED[cls] = serialized_type_name


def register_dataclass(
    cls: Any,
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Make the objects of a dataclass (or a class that is made of `field_names`) containers of their fields.

    Those of `drop_field_names` are left to their defaults; fields that are None are no leaves.

    >>> from dataclasses import dataclass
    >>> from retrograd.utils import _pytree
    >>> @dataclass
    ... class Batch:
    ...     x: int
    ...     y: int
    >>> _pytree.register_dataclass(Batch)
    >>> _pytree.tree_map(lambda v: v + 1, Batch(1, 2))
    Batch(x=2, y=3)
    """
    dropped = set(drop_field_names or ())
    if dataclasses.is_dataclass(cls):
        wanted = {field.name for field in dataclasses.fields(cls) if field.init}
        names = [field.name for field in dataclasses.fields(cls) if field.name in wanted - dropped]
        if field_names is not None:
            missing, unexpected = wanted - dropped - set(field_names), set(field_names) - wanted
            if missing or unexpected:
                raise ValueError(
                    f"field_names does not include all dataclass fields of {cls}. Missing fields in "
                    f"`field_names`: {sorted(missing)}: add them there or to `drop_field_names`. Unexpected fields in "
                    f"`field_names`: {sorted(unexpected)}: remove them"
                )
            names = list(field_names)
    elif field_names is None:
        raise ValueError(
            f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
            "dataclass."
        )
    else:
        names = [name for name in field_names if name not in dropped]

    def keyed(obj: Any) -> tuple[list, Any]:
        there = [name for name in names if getattr(obj, name) is not None]
        absent = [name for name in names if getattr(obj, name) is None]
        return [(GetAttrKey(name), getattr(obj, name)) for name in there], [there, absent]

    def flatten(obj: Any) -> tuple[list, Any]:
        pairs, context = keyed(obj)
        return [part for _, part in pairs], context

    def unflatten(parts: Iterable[Any], context: Any) -> Any:
        there, absent = context
        return cls(**dict(zip(there, parts)), **dict.fromkeys(absent))

    _replace(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=keyed
    )


@dataclass(frozen=True)
class ConstantNode:
    """The context of a constant: itself."""

    value: Any


def register_constant(cls: type) -> None:
    """Make the objects of a class parts of the structure: they are no leaves, and structures differ where they do.

    >>> from dataclasses import dataclass
    >>> from retrograd.utils import _pytree
    >>> @dataclass(frozen=True)
    ... class Setting:
    ...     name: str
    >>> _pytree.register_constant(Setting)
    >>> _pytree.tree_leaves([Setting("a"), 1])
    [1]
    """
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) in (getattr(object, method), None):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` implementation. Structures are "
                f"compared by it: give {cls.__name__} one, or make it a dataclass with frozen=True"
            )
    _replace(
        cls,
        lambda x: ([], ConstantNode(x)),
        lambda parts, context: context.value,
        flatten_with_keys_fn=lambda x: ([], ConstantNode(x)),
    )
    _CONSTANTS.add(cls)


def is_constant_class(cls: type) -> bool:
    """Are the objects of this class registered as constants?"""
    return cls in _CONSTANTS


def is_namedtuple_class(cls: Any) -> bool:
    """Is it a class that `collections.namedtuple` made, or one that can do what those can?"""
    if not isinstance(cls, type) or not issubclass(cls, tuple) or is_structseq_class(cls):
        return False
    fields = getattr(cls, "_fields", None)
    named = isinstance(fields, tuple) and all(type(name) is str for name in fields)
    return named and callable(getattr(cls, "_make", None)) and callable(getattr(cls, "_asdict", None))


def is_namedtuple_instance(obj: Any) -> bool:
    """Is it a named tuple?"""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Is it a named tuple, or a class of them?"""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Is it a class of tuples with named fields that is built in, such as `time.struct_time`?"""
    if not isinstance(cls, type) or not issubclass(cls, tuple) or not isinstance(getattr(cls, "n_fields", None), int):
        return False
    return cls.__module__ == return_types.__name__ or (cls.__bases__ == (tuple,) and not cls.__flags__ & _SUBCLASSABLE)


#: The bit of `type.__flags__` that classes have which may be derived from.
_SUBCLASSABLE = 1 << 10


def is_structseq_instance(obj: Any) -> bool:
    """Is it an object of such a class?"""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Is it such a class, or an object of one?"""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def node_type(tree: Any) -> Any:
    """What a container is taken apart as: its class, mostly."""
    kind = type(tree)
    if isinstance(tree, tuple) and kind not in SUPPORTED_NODES:
        if is_namedtuple_class(kind):
            return namedtuple
        if kind.__module__ == return_types.__name__:
            # What operators with several results give: a container of its own class, from the first one on.
            SUPPORTED_NODES[kind] = Kind(lambda x: (list(x), None), lambda leaves, _: kind(*leaves), _numbered)
    return kind



# ------------------------------------------------------------------------------------- how structures are written down


def _dump_named(cls: Any) -> str:
    if cls not in _NAMED:
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {cls} because we didn't register a serialized_type_name. "
            "Please register using `_register_namedtuple`."
        )
    return _NAMED[cls]


def _load_named(name: str) -> Any:
    for cls, known in _NAMED.items():
        if known == name:
            return cls
    raise NotImplementedError(
        f"Deserializing the namedtuple {name} in pytree is not registered: _register_namedtuple(cls)"
    )


def _dump_default(context: Any) -> Any:
    factory, keys = context
    place = {"default_factory_module": factory.__module__, "default_factory_name": factory.__qualname__}
    return {**place, "dict_context": keys}


def _load_default(written: Any) -> Any:
    module = importlib.import_module(written["default_factory_module"])
    return [getattr(module, written["default_factory_name"]), written["dict_context"]]


for _cls, _how in {
    list: Written("builtins.list", None, None),
    tuple: Written("builtins.tuple", None, None),
    Size: Written("torch.Size", None, None),
    dict: Written("builtins.dict", None, None),
    OrderedDict: Written("collections.OrderedDict", None, None),
    defaultdict: Written("collections.defaultdict", _dump_default, _load_default),
    deque: Written("collections.deque", None, None),
    namedtuple: Written("collections.namedtuple", _dump_named, _load_named),
}.items():
    _write_as(_cls, _how)
