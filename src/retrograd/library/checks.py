"""What an operator that a program defines may be, and what its kernels may return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from ..kernels.storage import storage_root
from ..ops.dispatch import tensors_in
from ..ops.operator_schema import FunctionSchema
from ..tensor import Tensor

#: The types of schemas.
_TYPES = frozenset((
    "Any", "Device", "Dimname", "Generator", "Layout", "MemoryFormat", "None", "QScheme", "Scalar", "ScalarType",
    "Storage", "Stream", "SymBool", "SymFloat", "SymInt", "Tensor", "bool", "complex", "float", "int", "number", "str",
    "t",
))  # fmt: skip
_NUMBERS = frozenset(("int", "SymInt", "float", "SymFloat", "complex", "Scalar", "number"))
#: What C++ calls some of them.
_OTHERWISE = {"double": "float", "int64_t": "SymInt` or `int"}


def check_types(schema: FunctionSchema) -> None:
    """Refuse a schema with a type that there is not, or a number whose default is a word."""
    for one in (*schema.arguments, *schema.returns):
        if isinstance(one.default_value, str) and one.type.removesuffix("?") in _NUMBERS:
            raise RuntimeError(
                f"invalid numeric default value: {one.default_value} in {schema}. A number is written in digits"
            )
        kind = re.sub(r"[?()]|\[\d*\]", "", one.type)
        if kind in _OTHERWISE:
            raise RuntimeError(f"`{kind}` is not a supported type specifier. Use `{_OTHERWISE[kind]}`: in {schema}")
        if kind not in _TYPES and kind.isidentifier():
            raise RuntimeError(f"unknown type specifier: {kind} in {schema}. There are {', '.join(sorted(_TYPES))}")


def check_keywords(schema: FunctionSchema) -> None:
    """Refuse tensors that are given by keyword alone, which have no place among the gradients."""
    for a in schema.arguments:
        if a.kwarg_only and a.type.startswith("Tensor"):
            raise NotImplementedError(
                f"kwarg-only Tensor args are not supported: {a.name} of {schema}; put it before the *"
            )


def check_mutated(schema: FunctionSchema, mutates_args: str | Iterable[str]) -> None:
    """Does a schema that was given agree with what is said to be written to?"""
    if mutates_args == "unknown":
        return
    said = {mutates_args} if isinstance(mutates_args, str) else set(mutates_args)
    written = {a.name for a in schema.arguments if a.is_write}
    if said != written:
        raise ValueError(
            f"Attempted to create a custom op with `mutates_args={sorted(said)}` and `schema={schema}`. The schema "
            f"says that the op mutates {written or '{}'}: the two must agree"
        )


def is_functional(schema: FunctionSchema) -> bool:
    """Does it write to no argument, and return something that is no view of one?"""
    returns = [one for one in schema.returns if one.type]
    return not schema.is_mutable and bool(returns) and all(one.alias_info is None for one in returns)


def has_tensors(schema: FunctionSchema) -> bool:
    """Does it take a tensor, or several?"""
    return any(a.type.startswith("Tensor") for a in schema.arguments)


def check_factory(schema: FunctionSchema) -> None:
    """A function of no tensor has to be told where to make its result, if it is to be for some devices alone."""
    if not has_tensors(schema) and all(a.name != "device" for a in schema.arguments):
        raise ValueError(
            "Functions without tensor inputs are required to have a `device: torch.device` argument: give "
            f"{schema.name} one, or register its kernel for all devices"
        )


def _memory(tensor: Tensor) -> Any:
    return None if tensor._special_ is not None else storage_root(tensor._memory_)


def without_aliases(name: str, schema: FunctionSchema, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel whose results are refused if they share memory with arguments, or with each other."""
    if any(one.alias_info is not None for one in schema.returns):
        return kernel

    @wraps(kernel)
    def checked(*args: Any, **kwargs: Any) -> Any:
        result = kernel(*args, **kwargs)
        seen = {id(value) for value in tensors_in((*args, *kwargs.values())) if isinstance(value, Tensor)}
        roots = {
            id(_memory(value)) for value in tensors_in((*args, *kwargs.values()))
            if isinstance(value, Tensor) and value._special_ is None and value._memory_.size
        }  # fmt: skip
        for one in tensors_in(result if isinstance(result, (tuple, list)) else (result,)):
            if not isinstance(one, Tensor):
                continue
            root = _memory(one)
            if id(one) in seen or (root is not None and one._memory_.size and id(root) in roots):
                raise RuntimeError(
                    f"{name} (with implementation in {kernel.__module__}): what a custom operator returns may not "
                    "alias any of its inputs, nor another result, unless its schema says so: return a copy, "
                    "x.clone()"
                )
            seen.add(id(one))
            if root is not None and one._memory_.size:
                roots.add(id(root))
        return result

    return checked
