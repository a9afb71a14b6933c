"""The schema of a function, from its annotations."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..core.devices import device
from ..core.dtypes import dtype
from ..tensor import Tensor

#: What an annotation is called in a schema.
_NAMES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device",
    bool | int | float: "Scalar", int | float | bool: "Scalar", int | float: "Scalar",
}  # fmt: skip


def infer_schema(
    prototype_function: Callable[..., Any], /, *, mutates_args: str | Iterable[str], op_name: str | None = None
) -> str:
    """The schema of a function whose parameters and results have types.

    >>> from retrograd.library import infer_schema
    >>> import retrograd as torch
    >>> def f(x: torch.Tensor, n: int = 2) -> torch.Tensor: ...
    >>> infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=2) -> Tensor'
    """
    signature = inspect.signature(prototype_function)
    try:
        hints = typing.get_type_hints(prototype_function)
    except NameError as error:
        raise ValueError(f"infer_schema(func): the annotations cannot be read: {error}") from None
    unknown = mutates_args == "unknown"
    if isinstance(mutates_args, str) and not unknown:
        raise ValueError(
            f"infer_schema(func): mutates_args must be a list of names or the string 'unknown', not {mutates_args!r}"
        )
    written = set() if unknown else set(mutates_args)
    parts: list[str] = []
    keyword_only = False
    for position, p in enumerate(signature.parameters.values()):
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD, p.POSITIONAL_ONLY):
            raise ValueError(
                f"infer_schema(func): We do not support positional-only args, varargs, or varkwargs. Got *{p.name}: an "
                "operator's arguments have names"
            )
        if p.annotation is p.empty:
            raise ValueError(f"infer_schema(func): Parameter {p.name} must have a type annotation.")
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        kind = _type(hints.get(p.name, p.annotation), p.name)
        if p.name in written or (unknown and kind.startswith("Tensor")):
            if not kind.startswith("Tensor"):
                raise ValueError(f"infer_schema(func): {p.name} is in mutates_args but only Tensors can be mutated")
            kind = f"Tensor(a{position}!){kind.removeprefix('Tensor')}"
        default = "" if p.default is p.empty else f"={_default(p.default)}"
        parts.append(f"{kind} {p.name}{default}")
    missing = written - set(signature.parameters)
    if missing:
        raise ValueError(
            f"infer_schema(func): {missing} in mutates_args were not found in the custom op's signature. mutates_args "
            "should contain only names of arguments"
        )
    if signature.return_annotation is signature.empty:
        raise ValueError("infer_schema(func): No return type annotation was provided. Please add one.")
    return f"{op_name or ''}({', '.join(parts)}) -> {_returned(hints.get('return', signature.return_annotation))}"


def _type(annotation: Any, name: str) -> str:
    known = _NAMES.get(annotation)
    if known is not None:
        return known
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        if type(None) in arguments:
            rest = [a for a in arguments if a is not type(None)]
            return _type(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)], name) + "?"  # noqa: UP007
        if set(arguments) <= {int, float, bool}:
            return "Scalar"
    if origin in (list, Sequence, typing.Sequence) and arguments:
        return _type(arguments[0], name) + "[]"
    raise ValueError(
        f"infer_schema(func): Parameter {name} has unsupported type {annotation}. The valid types are: Tensor, int, "
        f"float, "
        "bool, str, torch.dtype, torch.device, and Optional and list of these"
    )


def _returned(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is tuple:
        return f"({', '.join(_type(one, 'return') for one in arguments)})"
    return _type(annotation, "return")


def _default(value: Any) -> str:
    if isinstance(value, (str, device)):
        return f'"{value}"'
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, (tuple, list)):
        return str(list(value))
    return str(value)
