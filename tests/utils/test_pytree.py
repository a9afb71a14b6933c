"""Structures of containers: classes that are registered, specs by hand, and their texts (values of torch)."""

from __future__ import annotations

import enum
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any

import pytest

import retrograd as torch
from retrograd.utils import _pytree as pytree

LEAF = '{"type": null, "context": null, "children_spec": []}'
Point = namedtuple("Point", ["x", "y"])


class Color(enum.Enum):
    RED = 1


def spec(tree: Any) -> Any:
    return pytree.tree_structure(tree)


TEXTS = [
    (5, f"[1, {LEAF}]"),
    ([], '[1, {"type": "builtins.list", "context": "null", "children_spec": []}]'),
    (deque([1], maxlen=3), f'[1, {{"type": "collections.deque", "context": "3", "children_spec": [{LEAF}]}}]'),
    (
        OrderedDict([(1, (0, 1)), (2, 2)]),
        '[1, {"type": "collections.OrderedDict", "context": "[1, 2]", "children_spec": [{"type": "builtins.tuple", '
        f'"context": "null", "children_spec": [{LEAF}, {LEAF}]}}, {LEAF}]}}]',
    ),
    (
        {Color.RED: 1},
        f'[1, {{"type": "builtins.dict", "context": "[{{\\"__enum__\\": true, \\"fqn\\": \\"{__name__}:Color\\", '
        f'\\"name\\": \\"RED\\"}}]", "children_spec": [{LEAF}]}}]',
    ),
    (
        defaultdict(list, {"a": 1}),
        '[1, {"type": "collections.defaultdict", "context": {"default_factory_module": "builtins", '
        f'"default_factory_name": "list", "dict_context": ["a"]}}, "children_spec": [{LEAF}]}}]',
    ),
]


@pytest.mark.parametrize(("tree", "text"), TEXTS)
def test_texts_there_and_back(tree: Any, text: str) -> None:
    assert pytree.treespec_dumps(spec(tree)) == text
    assert pytree.treespec_loads(text) == spec(tree)


def test_texts_of_registered_classes() -> None:
    class Pair:
        def __init__(self, a: Any, b: Any) -> None:
            self.a, self.b = a, b

    with pytest.raises(NotImplementedError, match="Please register using `_register_namedtuple`"):
        pytree.treespec_dumps(spec(Point(1, 2)))
    pytree._register_namedtuple(Point, serialized_type_name="tests.Point")
    text = pytree.treespec_dumps(spec([Point(1, 2)]))
    assert '"type": "collections.namedtuple", "context": "tests.Point"' in text
    assert pytree.treespec_loads(text) == spec([Point(3, 4)])
    assert spec(Point(1, 2)).type is namedtuple
    with pytest.raises(NotImplementedError, match="namedtuple other in pytree is not registered"):
        pytree.treespec_loads(text.replace("tests.Point", "other"))

    pytree.register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        pytree.treespec_dumps(spec(Pair(1, 2)))
    pytree._deregister_pytree_node(Pair)
    pytree.register_pytree_node(
        Pair, lambda p: ([p.a, p.b], Pair), lambda parts, _: Pair(*parts), serialized_type_name="tests.Pair",
        to_dumpable_context=lambda context: "kept", from_dumpable_context=lambda text: Pair,
    )  # fmt: skip
    text = pytree.treespec_dumps(spec(Pair(1, 2)), 1)
    assert '"context": "kept"' in text
    assert pytree.treespec_loads(text) == spec(Pair(3, 4))
    pytree._deregister_pytree_node(Pair)
    with pytest.raises(NotImplementedError, match=r"Deserializing tests\.Pair in pytree is not registered"):
        pytree.treespec_loads(text)


def test_texts_that_are_refused() -> None:
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        pytree.treespec_dumps("x")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"Unknown protocol -1. Available protocols: \[1\]"):
        pytree.treespec_dumps(spec([1]), -1)
    with pytest.raises(ValueError, match="Unknown protocol 9"):
        pytree.treespec_loads("[9, {}]")
    with pytest.raises(TypeError, match="Unable to serialize context"):
        pytree.treespec_dumps(spec({object: 1}))


def test_dataclasses() -> None:
    @dataclass
    class Data:
        a: Any
        b: Any = "moo"
        c: Any = None
        d: str = field(init=False, default="")

    pytree.register_dataclass(Data)
    leaves, structure = pytree.tree_flatten(Data(1, [2]))
    assert leaves == [1, 2]
    assert structure.context == [["a", "b"], ["c"]]  # what is None is no leaf
    assert pytree.tree_unflatten([5, 6], structure) == Data(5, [6])
    paths = [pytree.keystr(path) for path, _ in pytree.tree_leaves_with_path(Data(1, [2]))]
    assert paths == [".a", ".b[0]"]
    pytree._deregister_pytree_node(Data)
    with pytest.raises(ValueError, match=r"Missing fields in `field_names`: \['c'\]"):
        pytree.register_dataclass(Data, field_names=["a", "b"])
    with pytest.raises(ValueError, match=r"Unexpected fields in `field_names`: \['d'\]"):
        pytree.register_dataclass(Data, field_names=["a", "b", "c", "d"])
    pytree.register_dataclass(Data, field_names=["a"], drop_field_names=["b", "c"])
    assert pytree.tree_map(lambda x: x + 1, Data(1, 2, 3)) == Data(2)
    pytree._deregister_pytree_node(Data)

    class Plain:
        def __init__(self, x: Any) -> None:
            self.x = x

    with pytest.raises(ValueError, match="field_names must be specified"):
        pytree.register_dataclass(Plain)
    pytree.register_dataclass(Plain, field_names=["x"])
    assert pytree.tree_map(lambda x: x + 1, Plain(1)).x == 2


def test_constants() -> None:
    @dataclass(frozen=True)
    class Setting:
        name: str

    pytree.register_constant(Setting)
    assert pytree.is_constant_class(Setting) and not pytree.is_constant_class(int)
    leaves, structure = pytree.tree_flatten([Setting("a"), 1])
    assert leaves == [1]
    assert structure.child(0).context.value == Setting("a")
    assert pytree.tree_unflatten([7], structure) == [Setting("a"), 7]
    assert spec(Setting("a")) != spec(Setting("b"))
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        pytree.register_constant(type("Bare", (), {}))
    with pytest.raises(TypeError, match="non-default `__hash__`"):
        pytree.register_constant(type("Equal", (), {"__eq__": lambda self, other: True}))


def test_specs_by_hand_and_printed() -> None:
    leaf = pytree.treespec_leaf()
    assert leaf == spec(1)
    assert pytree.treespec_tuple([leaf]) == spec((1,))
    assert pytree.treespec_dict({"b": leaf}, a=leaf) == spec({"b": 1, "a": 2})
    assert repr(spec((0, [0, 0, [0]]))) == (
        "TreeSpec(tuple, None, [*,\n  TreeSpec(list, None, [*,\n    *,\n    TreeSpec(list, None, [*])])])"
    )
    assert pytree.treespec_pprint(spec([1, {"a": 2}])) == "[*, {'a': *}]"


def test_the_old_name_says_so_and_replaces() -> None:
    cls = type("Old", (), {})
    with pytest.warns(FutureWarning, match="_register_pytree_node` is deprecated"):
        pytree._register_pytree_node(cls, lambda x: ([1], None), lambda parts, _: cls())
    with pytest.warns(UserWarning, match="already registered"), pytest.warns(FutureWarning):
        pytree._register_pytree_node(cls, lambda x: ([2], None), lambda parts, _: cls())
    assert pytree.tree_leaves(cls()) == [2]


def test_tuples_with_names_that_are_no_named_tuples() -> None:
    result = torch.max(torch.tensor([[1.0, 3.0]]), 1)
    assert pytree.is_structseq(result) and pytree.is_structseq(torch.return_types.max)
    assert not pytree.is_namedtuple(result) and pytree.is_namedtuple(Point)
    assert pytree.is_structseq_class(time.struct_time) and pytree.is_structseq_instance(time.gmtime())
    assert not pytree.is_structseq(Point(1, 2)) and not pytree.is_structseq((1, 2))
    assert spec(result).type is torch.return_types.max
    doubled = pytree.tree_map(lambda x: x * 2, result)
    assert type(doubled) is torch.return_types.max and doubled.indices.item() == 2


def test_a_tuple_with_fields_alone_is_no_named_tuple() -> None:
    loose = type("Loose", (tuple,), {"_fields": ("a",)})
    numbered = type("Numbered", (Point,), {"_fields": (1, 2)})
    assert not pytree.is_namedtuple(loose) and not pytree.is_namedtuple(numbered)
    value = loose((1,))
    assert pytree.tree_leaves([value]) == [value]


def test_deques_of_other_lengths_fit_and_parts_may_come_one_by_one() -> None:
    found = pytree.tree_map(lambda x, y: x + y, deque([1], maxlen=2), deque([2], maxlen=3))
    assert found == deque([3]) and found.maxlen == 2

    class Lazy:
        def __init__(self, *parts):
            self.parts = parts

    pytree.register_pytree_node(Lazy, lambda x: ((part for part in x.parts), None), lambda parts, _: Lazy(*parts))
    assert pytree.tree_map(lambda x, y: x + y, Lazy(1, 2), Lazy(3, 4)).parts == (4, 6)


def test_who_registers_again_is_told_and_heard() -> None:
    @dataclass(frozen=True)
    class Both:
        x: int
        y: int = 5

    pytree.register_dataclass(Both)
    with pytest.warns(UserWarning, match="already registered"):
        pytree.register_dataclass(Both, drop_field_names=["y"])
    assert pytree.tree_leaves(Both(1, 2)) == [1]
    with pytest.warns(UserWarning, match="already registered"):
        pytree.register_constant(Both)
    assert pytree.tree_leaves(Both(1, 2)) == []


def test_specs_by_hand_are_made_of_specs() -> None:
    with pytest.raises(ValueError, match="Expected a tuple of TreeSpec values"):
        pytree.treespec_tuple([1])
    with pytest.raises(ValueError, match="Expected a dictionary of TreeSpec values"):
        pytree.treespec_dict({"a": 1})
