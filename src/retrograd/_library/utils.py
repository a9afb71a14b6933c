"""``torch._library.utils``: questions about operators and their schemas."""

from __future__ import annotations

from typing import Any

from .. import ops
from ..library.checks import is_functional
from ..ops.operator_schema import FunctionSchema, Tag, parse

__all__ = [
    "get_layout_constraint_tag", "is_functional_schema", "is_tensor_like_type", "is_tensorlist_like_type", "lookup_op",
    "mutates_and_returns_first_arg", "parse_namespace", "zip_schema",
]  # fmt: skip


def parse_namespace(qualname: str) -> tuple[str, str]:
    """``"mine::f"`` as namespace and name.

    >>> from retrograd._library.utils import parse_namespace
    >>> parse_namespace("aten::sin")
    ('aten', 'sin')
    """
    namespace, colons, name = qualname.partition("::")
    if not colons or "::" in name:
        raise ValueError(
            f"Expected `qualname` to be of the form 'namespace::name', but got {qualname}: the name of an operator has "
            "its namespace before it"
        )
    return namespace, name


def lookup_op(qualname: str) -> Any:
    """``torch.ops.mine.f.form`` of ``"mine::f.form"``."""
    namespace, name = parse_namespace(qualname)
    name, _, form = name.partition(".")
    return getattr(getattr(getattr(ops, namespace), name), form or "default")


def is_functional_schema(schema: Any, *, allow_valid_view: bool = False) -> bool:
    """Does it write to no argument, return something, and no view of an argument (unless these are allowed)?

    >>> from retrograd._library.utils import is_functional_schema
    >>> is_functional_schema("f(Tensor x) -> Tensor"), is_functional_schema("f(Tensor(a!) x) -> Tensor")
    (True, False)
    """
    parsed = schema if isinstance(schema, FunctionSchema) else parse(str(schema))
    if allow_valid_view:
        views = [one.alias_info for one in parsed.returns if one.alias_info is not None]
        first = parsed.arguments[0].alias_info if parsed.arguments else None
        if len(views) == len(parsed.returns) == 1 and first is not None and first.name == views[0].name:
            return not parsed.is_mutable
    return is_functional(parsed)


def is_tensorlist_like_type(kind: Any) -> bool:
    """Is a type of a schema one of several tensors: ``Tensor[]``, ``Tensor?[]``, and either with a ``?``?"""
    text = str(kind).removesuffix("?")
    return text.endswith("]") and text.rpartition("[")[0] in ("Tensor", "Tensor?")


def is_tensor_like_type(kind: Any) -> bool:
    """Is it ``Tensor`` or ``Tensor?``?"""
    return str(kind) in ("Tensor", "Tensor?")


def mutates_and_returns_first_arg(op: Any) -> bool:
    """Does an operator write to its first argument alone, and return it, as ``add_`` does?"""
    schema = op._schema
    if len(schema.returns) != 1 or schema.returns[0].alias_info is None or not schema.arguments:
        return False
    first = schema.arguments[0]
    return first.is_write and first.type == "Tensor" and not any(a.is_write for a in schema.arguments[1:])


def zip_schema(schema: FunctionSchema, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The arguments of a schema that a call has given, each with its value.

    >>> import retrograd as torch
    >>> from retrograd._library.utils import zip_schema
    >>> [(a.name, v) for a, v in zip_schema(torch.ops.aten.sum.dim_IntList._schema, (7,), {"dim": [0]})]
    [('self', 7), ('dim', [0])]
    """
    for position, argument in enumerate(schema.arguments):
        if argument.name in kwargs:
            yield argument, kwargs[argument.name]
        elif position < len(args) and not argument.kwarg_only:
            yield argument, args[position]


_LAYOUTS = (Tag.needs_exact_strides, Tag.needs_contiguous_strides, Tag.needs_fixed_stride_order, Tag.flexible_layout)


def get_layout_constraint_tag(op: Any, *, with_default: bool = True) -> Tag | None:
    """What an operator asks of the strides of its arguments; of several tags the strictest."""
    found = next((tag for tag in _LAYOUTS if tag in op.tags), None)
    return Tag.needs_exact_strides if found is None and with_default else found
