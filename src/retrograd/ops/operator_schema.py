"""What is known of an operator, as torch says it: its schema, and its tags."""

from __future__ import annotations

import ast
import enum
from typing import TYPE_CHECKING, Any

from ..codegen.schema import parse_schema, split
from ..core import dtypes
from ..core.devices import device
from ..core.records import record_of
from .pointwise import LIKE, SEVERAL, SEVERAL_IN_PLACE, UNARY, UNARY_IN_PLACE
from .signatures import overloads as signatures_of

if TYPE_CHECKING:
    from .overload import OpOverload


class Tag(enum.Enum):
    """Something that holds for some operators: ``torch.Tag``."""

    core = 0
    cudagraph_unsafe = 1
    data_dependent_output = 2
    dynamic_output_shape = 3
    flexible_layout = 4
    generated = 5
    inplace = 6
    inplace_view = 7
    maybe_aliasing_or_mutating = 8
    needs_contiguous_strides = 9
    needs_exact_strides = 10
    needs_fixed_stride_order = 11
    nondeterministic_bitwise = 12
    nondeterministic_seeded = 13
    out = 14
    out_variant = 15
    pointwise = 16
    pt2_compliant_tag = 17
    reduction = 18
    view_copy = 19


class AliasInfo:
    """What an argument has to do with the results: they share memory, and it may be written to."""

    def __init__(self, is_write: bool, name: str = "a") -> None:
        self.is_write = is_write
        self.name = name
        self.before_set = self.after_set = {name}

    def __repr__(self) -> str:
        return f"({self.name}{'!' * self.is_write})"


class SchemaArgument:
    """One argument, or one result."""

    def __init__(
        self, name: str, type: str, default: Any = None, has_default: bool = False, kwarg_only: bool = False,
        alias_info: AliasInfo | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.type = type
        self.default_value = default
        self._has_default = has_default
        self.kwarg_only = kwarg_only
        self.alias_info = alias_info

    @property
    def real_type(self) -> str:
        return self.type

    @property
    def is_write(self) -> bool:
        """Is it written to?"""
        return self.alias_info is not None and self.alias_info.is_write

    @property
    def is_out(self) -> bool:
        return self.kwarg_only and self.is_write

    def has_default_value(self) -> bool:
        return self._has_default

    def __str__(self) -> str:
        kind = self.type
        if self.alias_info is not None:
            kind = kind.replace("Tensor", f"Tensor{self.alias_info!r}", 1)
        default = f"={_shown(self.default_value)}" if self._has_default else ""
        return f"{kind} {self.name}{default}" if self.name else kind

    __repr__ = __str__


def _shown(value: Any) -> str:
    if isinstance(value, (str, device)):
        return f'"{value}"'
    if isinstance(value, dtypes.dtype):
        return value.name
    if isinstance(value, float) and value.is_integer():
        return f"{value:.0f}."
    return str(list(value)) if isinstance(value, tuple) else str(value)


class FunctionSchema:
    """How an operator is called and what it returns; it prints as torch's schemas do."""

    def __init__(
        self, name: str, overload_name: str, arguments: list[SchemaArgument], returns: list[SchemaArgument]
    ) -> None:
        self.name = name
        self.overload_name = overload_name
        self.arguments = arguments
        self.returns = returns

    @property
    def is_mutable(self) -> bool:
        """Does it write to one of its arguments?"""
        return any(a.is_write for a in self.arguments)

    def __str__(self) -> str:
        parts: list[str] = []
        for a in self.arguments:
            if a.kwarg_only and "*" not in parts:
                parts.append("*")
            parts.append(str(a))
        name = f"{self.name}.{self.overload_name}" if self.overload_name else self.name
        results = ", ".join(map(str, self.returns))
        bare = len(self.returns) == 1 and not results.startswith("(")
        return f"{name}({', '.join(parts)}) -> {results if bare else f'({results})'}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionSchema) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))


def parse(text: str) -> FunctionSchema:
    """A schema in torch's language: ``mine::f.form(Tensor(a!) x, *, int n=1) -> (Tensor, Tensor)``."""
    head, arrow, returned = text.strip().rpartition("->")
    full, bracket, inside = head.strip().partition("(")
    if not arrow or not bracket or not inside.endswith(")"):
        raise RuntimeError(f"not a schema: {text!r} (expected 'name(Type argument, ...) -> Type')")
    name, _, form = full.partition(".")
    if "." in form or ("," in returned and not returned.lstrip().startswith("(")):
        raise RuntimeError(f"not a schema: {text!r} (one form, 'name.form', and several results as '(Type, Type)')")
    arguments: list[SchemaArgument] = []
    keyword_only = False
    for part in split(inside[:-1]):
        if part == "*":
            keyword_only = True
            continue
        declaration, equals, default = part.partition("=")
        kind, _, own = declaration.strip().rpartition(" ")
        if not kind:
            raise RuntimeError(f"not a schema: the argument {part!r} of {text!r} has no type")
        kind, alias = _alias(kind)
        value = _value(default)
        if isinstance(value, str) and kind.startswith("ScalarType"):
            value = dtypes.by_name({"float": "float32", "double": "float64", "long": "int64"}.get(value, value))
        elif isinstance(value, str) and kind.startswith("Device"):
            value = device(value)
        arguments.append(SchemaArgument(own, kind, value, bool(equals), keyword_only, alias))
    returned = returned.strip()
    results = split(returned[1:-1]) if returned.startswith("(") else [returned]  # "()": none
    returns = []
    for one in results:
        kind, alias = (one, None) if one.startswith("(") else _alias(one)  # "((Tensor))": a tuple of one
        kind, _, own = kind.partition(" ")
        returns.append(SchemaArgument(own, kind, alias_info=alias))
    return FunctionSchema(name, form, arguments, returns)


def _alias(kind: str) -> tuple[str, AliasInfo | None]:
    if "(" not in kind:
        return kind, None
    before, _, rest = kind.partition("(")
    name, _, after = rest.partition(")")
    return before + after, AliasInfo("!" in name, name.strip("! ") or "a")


def _value(text: str) -> Any:
    text = text.strip()
    if not text or text == "None":
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text  # a name, such as contiguous_format


def schema_of(op: OpOverload) -> FunctionSchema:
    """The schema of an operator of ours: what the table, or its signature, says of it."""
    record = record_of(op.function)
    name = f"{op.namespace}::{op.overloadpacket.__name__}"
    form = "" if op._overloadname == "default" else op._overloadname
    to_out = form.endswith("out")
    view = record is not None and record.view
    writes = record is not None and record.writes
    arguments: list[SchemaArgument] = []
    if record is not None:
        parsed = parse_schema(record.schema)
        for a in parsed.arguments:
            kind = a.type.removesuffix("...")
            if kind == "Tensor|Scalar":
                kind = "Scalar" if "Scalar" in form else "Tensor"
            alias = AliasInfo(writes) if (view or writes) and not arguments else None
            kind = {"dtype?": "ScalarType?", "indices": "Tensor?[]", "any": "t"}.get(kind, kind)
            has_default = a.default is not None
            arguments.append(SchemaArgument(a.name, kind, _value(a.default or ""), has_default, a.keyword_only, alias))
        alias = AliasInfo(writes) if view or writes else None
        kind = "Tensor[]" if parsed.returns_list else "Tensor"
        returns = [SchemaArgument(r if len(parsed.results) > 1 else "", kind, alias_info=alias) for r in parsed.results]
    else:
        own = op.overloadpacket.__name__
        lines = signatures_of(own) or signatures_of(f"Tensor.{own}") or signatures_of(f"nn.functional.{own}")
        writes = own.endswith("_") and not own.endswith("__")
        for p in lines[0] if lines else ():
            kind = {"options": "t"}.get(p.type.text, p.type.text)
            alias = AliasInfo(True) if writes and not arguments else None
            arguments.append(SchemaArgument("self" if p.name == "input" else p.name, kind, None, not p.required,
                                            p.keyword_only, alias))  # fmt: skip
        returns = [SchemaArgument("", "Tensor", alias_info=AliasInfo(True) if writes else None)]
    if to_out:
        arguments.append(SchemaArgument("out", "Tensor", kwarg_only=True, alias_info=AliasInfo(True)))
        returns = [SchemaArgument("", "Tensor", alias_info=AliasInfo(True))]
    return FunctionSchema(name, form, arguments, returns)


_DRAWS = frozenset(
    """rand randn randint randperm normal bernoulli multinomial poisson rand_like randn_like randint_like normal_
    uniform_ random_ exponential_ geometric_ log_normal_ cauchy_ bernoulli_ native_dropout dropout""".split()
)


def tags_of(op: OpOverload) -> list[Tag]:
    """The tags of an operator of ours."""
    record = record_of(op.function)
    name = op.overloadpacket.__name__ if record is None else record.name
    found = []
    if name in UNARY or name in SEVERAL or name in UNARY_IN_PLACE or name in SEVERAL_IN_PLACE:
        found.append(Tag.pointwise)
    if name in _DRAWS:
        found.append(Tag.nondeterministic_seeded)
    if name in ("nonzero", "masked_select", "unique_dim"):
        found.append(Tag.dynamic_output_shape)
    if name in ("item", "_local_scalar_dense", "equal"):
        found.append(Tag.data_dependent_output)
    if (record is not None and not record.writes) or name in LIKE:
        found.append(Tag.core)
    if op.namespace == "aten":
        found.append(Tag.pt2_compliant_tag)
    return found
