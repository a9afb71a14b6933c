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
from ..types import Number

#: What an annotation is called in a schema.
_NAMES: dict[Any, str] = {
    Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType", device: "Device",
    Number: "Scalar",
}  # fmt: skip
#: What parameters may be besides: of which types there may be several, or several or None.
_SEVERAL = (Tensor, int, float, bool, Number)
_SEVERAL_OR_NONE = (int, float, bool)


def _table() -> dict[Any, str]:
    found: dict[Any, str] = {}
    for kind, name in _NAMES.items():
        found |= {kind: name, typing.Optional[kind]: f"{name}?"}  # noqa: UP045
        for elements, shown in ((kind, name), (typing.Optional[kind], f"{name}?")):  # noqa: UP045
            if kind not in _SEVERAL or (elements is not kind and kind is not Tensor):
                continue
            one: Any = elements
            for several in (typing.Sequence[one], typing.List[one], Sequence[one], list[one]):  # noqa: UP006
                found[several] = f"{shown}[]"
                if kind in _SEVERAL_OR_NONE:
                    found[typing.Optional[several]] = f"{shown}[]?"  # noqa: UP045
    return found


SUPPORTED_PARAM_TYPES: dict[Any, str] = _table()
SUPPORTED_RETURN_TYPES: dict[Any, str] = {
    Tensor: "Tensor", typing.List[Tensor]: "Tensor[]", list[Tensor]: "Tensor[]", int: "SymInt", float: "float",  # noqa: UP006
    bool: "bool", Number: "Scalar",
}  # fmt: skip
_PARAMETERS, _RESULTS = frozenset(SUPPORTED_PARAM_TYPES.values()), frozenset(SUPPORTED_RETURN_TYPES.values())


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
    surroundings = getattr(prototype_function, "__globals__", {})
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
            raise ValueError(
                f"infer_schema(func): Parameter {p.name} must have a type annotation. Got func with signature "
                f"{signature}"
            )
        if p.kind is p.KEYWORD_ONLY and not keyword_only:
            parts.append("*")
            keyword_only = True
        annotation = _evaluated(p.annotation, surroundings)
        kind = _type(annotation)
        if kind not in _PARAMETERS:
            raise ValueError(f"infer_schema(func): Parameter {p.name} has {_unsupported(annotation)}")
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
    result = _returned(_evaluated(signature.return_annotation, surroundings))
    return f"{op_name or ''}({', '.join(parts)}) -> {result}"


def _evaluated(annotation: Any, surroundings: dict[str, Any]) -> Any:
    """An annotation, of which all or a part may be a string."""

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        return typing.get_type_hints(holder, surroundings, {})["it"]
    except (NameError, SyntaxError, TypeError, AttributeError):
        raise ValueError(f"Unsupported type annotation {annotation}. It is not a type.") from None


def _type(annotation: Any) -> str | None:
    """What a schema calls it, if there is anything."""
    try:
        known = _NAMES.get(annotation)
    except TypeError:  # not hashable
        return None
    if known is not None:
        return known
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in arguments if a is not type(None)]
        inner = _type(rest[0]) if len(rest) == 1 else "Scalar" if set(rest) <= {int, float, bool} else None
        return inner and inner + "?" * (len(rest) < len(arguments))
    if origin in (list, Sequence) and len(arguments) == 1:
        inner = _type(arguments[0])
        return inner and f"{inner}[]"
    return None


def _unsupported(annotation: Any) -> str:
    instead = tuple_to_list(annotation) if typing.get_origin(annotation) is tuple else None
    hint = f" For example, {_shown(instead)}." if instead is not None and _type(instead) in _PARAMETERS else ""
    return (
        f"unsupported type {annotation}.{hint} The valid types are: Tensor, int, float, bool, str, torch.dtype, "
        "torch.device, torch.types.Number, Optional of these, and list of some"
    )


def _shown(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) and not typing.get_args(annotation) else str(annotation)


def tuple_to_list(tuple_type: Any) -> Any:
    """The list that may stand for a tuple: ``list[int]`` for ``tuple[int, int]``.

    >>> from retrograd.library.schemas import tuple_to_list
    >>> tuple_to_list(tuple[int, ...])
    list[int]
    """
    kinds = [one for one in typing.get_args(tuple_type) if one is not Ellipsis]
    if not kinds or tuple_type is tuple:
        return list
    return list[typing.Union[tuple(kinds)]]  # type: ignore[misc] # noqa: UP007


def _returned(annotation: Any) -> str:
    if annotation is None or annotation is type(None):
        return "()"
    several = typing.get_origin(annotation) is tuple
    kinds = [_type(one) for one in typing.get_args(annotation)] if several else [_type(annotation)]
    if any(kind not in _RESULTS for kind in kinds) or (several and Ellipsis in typing.get_args(annotation)):
        raise ValueError(
            f"infer_schema(func): Return has unsupported type {annotation}. The valid types are: Tensor, list[Tensor], "
            "int, float, bool, torch.types.Number, and tuples of a number of these"
        )
    text = ", ".join(map(str, kinds))
    return f"(({text}))" if several and len(kinds) == 1 else f"({text})" if several else text


def _default(value: Any) -> str:
    if isinstance(value, (str, device)):
        return f'"{value}"'
    if isinstance(value, dtype):
        return value.name
    if isinstance(value, (tuple, list)):
        return str(list(value))
    return str(value)
