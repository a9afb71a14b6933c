"""Public functions with their arguments checked as torch checks them.

`checked(function, name)` is the function behind a test of its arguments' classes, written out in one line of Python
for each function: arguments that are plainly right (a Tensor, an int that is an int, a default) go straight through.
Everything else (a number of NumPy's, a 0-d tensor for an int, a keyword under NumPy's name, a mistake) goes to
`parse`, which looks for an overload that takes them, as torch does, converts what stands for something else, and
refuses what fits none. The overloads are in `ops/signatures/`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from ..core.description import NoArray
from ..core.dtypes import dtype as Dtype
from ..core.records import original
from ..core.state import local
from ..tensor import Tensor
from ..tensor.special import operate_on_special, special_tensors
from .accidents import unfit
from .arguments import HIGHEST, LOWEST, Type, wrong_type
from .signatures import Parameter, has_overloads, overloads
from .support import write_out

F = TypeVar("F", bound=Callable[..., Any])

#: NumPy's names for arguments, which torch takes as well.
NUMPY_NAMES = {"axis": "dim", "keepdims": "keepdim", "x": "input", "a": "input", "x1": "input", "x2": "other"}

# ---------------------------------------------------------------------------------------------------------------- parse


class Misfit(Exception):
    """Why an overload does not take the arguments: `rank` is higher the later that is found."""

    def __init__(self, rank: int, error: Callable[[], Exception]) -> None:
        self.rank = rank
        self.error = error


def _names(parameters: tuple[Parameter, ...]) -> list[str]:
    return [p.name for p in parameters]


def _fit(
    name: str, parameters: tuple[Parameter, ...], args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int
) -> Any:
    """The arguments as the overload takes them, converted. `skipped` arguments, a method's self, are not counted."""
    positional = [p for p in parameters if not p.keyword_only]
    first = len(positional) - 1
    if len(args) > first >= 0 and (
        positional[-1].type.spread or (first == skipped and positional[-1].type.text == "int[]")
    ):
        if len(args) > first + 1 or not isinstance(args[-1], (tuple, list)):
            args = (*args[:first], args[first:])  # zeros(2, 3)
    if len(args) > len(positional):
        most, given = len(positional) - skipped, len(args) - skipped
        least = sum(p.required for p in positional) - skipped
        takes = f"{most}" if least == most else f"from {least} to {most}"
        raise Misfit(0, lambda: TypeError(
            f"{name}() takes {takes} positional argument{'s' * (most != 1)} but {given} were given"
        ))  # fmt: skip
    given_names = set(_names(tuple(positional[: len(args)])))
    renamed: dict[str, Any] = {}
    known = set(_names(parameters))
    for key, value in kwargs.items():
        own = key if key in known else NUMPY_NAMES.get(key, key)
        if own not in known or (own != key and (own in given_names or own in kwargs)):
            raise Misfit(1, functools.partial(_unexpected, name, key))
        if own in given_names:
            raise Misfit(1, functools.partial(_twice, name, key))
        renamed[own] = value
    missing = [p.name for p in parameters if p.required and p.name not in given_names and p.name not in renamed]
    if missing:
        listed = ", ".join(f'"{one}"' for one in missing)
        plural = "s" * (len(missing) == 1)
        raise Misfit(2, lambda: TypeError(
            f"{name}() missing {len(missing)} required positional argument{plural}: {listed}"
        ))  # fmt: skip
    matched = [(p, value, i + 1 - skipped) for i, (p, value) in enumerate(zip(positional, args, strict=False))]
    by_name = {p.name: p for p in parameters}
    matched += [(by_name[key], value, 0) for key, value in renamed.items()]
    for p, value, position in matched:
        if not p.type.takes(value):
            raise Misfit(3, functools.partial(_wrong, name, p, position, value))
    return matched


def _unexpected(name: str, key: str) -> TypeError:
    return TypeError(f"{name}() got an unexpected keyword argument '{key}'")


def _twice(name: str, key: str) -> TypeError:
    return TypeError(f"{name}() got multiple values for argument '{key}'")


def _wrong(name: str, p: Parameter, position: int, value: Any) -> TypeError:
    if isinstance(value, (tuple, list)) and value and p.type.word.startswith("tuple of"):
        at = f" (position {position})" if position else ""
        return TypeError(
            f"{name}(): argument '{p.name}'{at} must be {p.type.word}, but found element of type "
            f"{type(value[0]).__name__} at pos 0"
        )
    return wrong_type(name, p.name, position, p.type.word, value)


def parse(
    name: str, key: str, args: tuple[Any, ...], kwargs: dict[str, Any], skipped: int = 0
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call, converted to what the first overload that takes them says they are."""
    misfits = []
    for parameters in overloads(key):
        try:
            matched = _fit(name, parameters, args, kwargs, skipped)
        except Misfit as misfit:
            misfits.append(misfit)
            continue
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for p, value, position in matched:
            value = p.type.convert(value, name, p.name, position)
            if p.type.spread and isinstance(value, tuple) and args and args[-1] is not value:
                positional += value
            elif position or (skipped and not positional and p is parameters[0]):
                positional.append(value)
            else:
                named[p.name] = value
        return positional, named
    last = max(misfits, key=lambda m: m.rank)
    if sum(m.rank == last.rank for m in misfits) == 1:
        raise last.error() from None
    given = [type(a).__name__ for a in args[skipped:]] + [f"{k}={type(v).__name__}" for k, v in kwargs.items()]
    lines = "".join(f"\n * ({', '.join(map(str, o[skipped:]))})" for o in overloads(key))
    raise TypeError(
        f"{name}() received an invalid combination of arguments - got ({', '.join(given)}), "
        f"but expected one of:{lines}"
    ) from None


# ------------------------------------------------------------------------------------------------------------- wrappers

_INTS = frozenset((int,))
#: Classes of which every value fits wherever one did.
_PLAIN = frozenset((Tensor, int, float, bool, str, type(None), Dtype))


def _test(p: str, type_: Type) -> str:
    """A test that a value passes only if it is plainly of the type."""
    in_range = f"({p}.__class__ is int and {LOWEST} <= {p} <= {HIGHEST})"
    tensor = f"{p}.__class__ is Tensor or (isinstance({p}, Tensor) and {p}._special_ is None)"
    match type_.base:
        case "Tensor":
            test = tensor
        case "Tensor|Scalar":
            test = f"{tensor} or {p}.__class__ is float or {in_range}"
        case "truth":
            test = f"{p} is None or {p} is True or {p} is False"
        case "Scalar" | "real" | "Scalar|str":
            test = f"{p}.__class__ is float or {in_range}"
        case "int" | "pyint":
            test = in_range
        case "float":
            test = f"{p}.__class__ is float"
        case "bool":
            test = f"{p} is True or {p} is False"
        case "str":
            test = f"{p}.__class__ is str"
        case "dtype":
            test = f"{p}.__class__ is Dtype"
        case "int[]" | "pyint[]":
            test = f"({p}.__class__ is tuple or {p}.__class__ is list) and INTS.issuperset(map(type, {p}))"
            test += f" and max({p}, default=0) <= {HIGHEST}"
            if type_.expands:
                test = f"{in_range} or {test}"
        case "any":
            return "True"
        case _:
            test = "False"
    return f"{p} is None or {test}" if type_.optional else test


def _parameter_types(name: str, position: int, key: str, others: set[str]) -> tuple[list[Type], bool]:
    """The types that a parameter has in some overload, and whether there is one that can do without it.

    One that has another name in an overload (none of the `others`) is known by its position.
    """
    types: list[Type] = []
    optional = False
    for parameters in overloads(key):
        own = next((p for p in parameters if p.name == name), None)
        if own is None and position < len(parameters) and not parameters[position].keyword_only:
            own = parameters[position] if parameters[position].name not in others else None
        if own is None or own.required is False:
            optional = True
        if own is not None and own.type not in types:
            types.append(own.type)
    return types, optional


#: Stands for None where None means that an argument is left out, and may not be given.
_OMITTED = object()


def _needs(name: str, other: str, key: str) -> bool:
    """Does every overload with the parameter `name` also demand `other`?"""
    having = [o for o in overloads(key) if any(p.name == name for p in o)]
    return bool(having) and all(any(p.name == other and p.required for p in o) for o in having)


def _lenient(name: str, key: str) -> bool:
    """Is there an overload in which the parameter has a default?"""
    return any(p.name == name and not p.required for o in overloads(key) for p in o)


class _Defaults:
    """The default values of a function, as names in the text of its wrapper."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def name(self, value: Any) -> str:
        if value is None or value is True or value is False:
            return repr(value)
        name = f"D{len(self.values)}"
        self.values[name] = value
        return name


def _text(function: Callable[..., Any], key: str, out: bool, draws: bool) -> tuple[str, dict[str, Any], list[str]]:
    """The source of the wrapper of a function that names its parameters."""
    defaults = _Defaults()
    head, tests, call = [], [], []
    names: list[str] = []
    keywords: list[str] = []
    star = False
    omitted: dict[str, str] = {}  # what stands for them when the function is called
    named_by_numpy = False
    parameters = inspect.signature(function, follow_wrapped=False).parameters
    for position, p in enumerate(parameters.values()):
        if p.kind is p.VAR_KEYWORD:
            continue
        keyword_only = p.kind is p.KEYWORD_ONLY
        if keyword_only and not star:
            head.append("*")
            star = True
        types, optional = _parameter_types(p.name, 99 if keyword_only else position, key, set(parameters))
        test = " or ".join(_test(p.name, t) for t in types) if types else ""
        if p.default is p.empty:
            # What NumPy has another name for may be given by that, and all that follow by keyword.
            named_by_numpy |= p.name == "dim"
            head.append(f"{p.name}=OMITTED" if named_by_numpy and not keyword_only else p.name)
            tests.append(test or (f"{p.name} is not OMITTED" if named_by_numpy else ""))
        else:
            default = defaults.name(p.default)
            by_none = p.default is None and not any(t.takes(None) for t in types)
            if optional and types and (by_none or not _lenient(p.name, key)):
                omitted[p.name] = default
                default = "OMITTED"
            needed = [o for o in omitted if o != p.name and _needs(p.name, o, key)]
            if needed and test:
                test = f"{' and '.join(f'{o} is not OMITTED' for o in needed)} and ({test})"
            head.append(f"{p.name}={default}")
            same = f"{p.name} is {default}"
            test = test.removeprefix(f"{same} or ") if optional else test
            tests.append(f"{same} or {test}" if optional and test else same if optional else test)
        call.append(f"{p.name}={p.name}" if keyword_only else p.name)
        (keywords if keyword_only else names).append(p.name)
    if out:
        head += ["out=None"] if star else ["*", "out=None"]
        tests.append("out is None")
    condition = " and ".join(f"({t})" for t in [*tests, *[_NOT_MAPPED] * draws, "not more"] if t and t != "True")
    given = f"({''.join(n + ', ' for n in names)})"
    named = "{" + ", ".join(f'"{n}": {n}' for n in [*keywords, *["out"] * out]) + "}"
    return (
        f"def call({', '.join([*head, '**more'])}):\n"
        f"    if {condition}:\n"
        f"{''.join(f'        if {o} is OMITTED:{chr(10)}            {o} = {d}{chr(10)}' for o, d in omitted.items())}"
        f"        try:\n"
        f"            return function({', '.join(call)})\n"
        f"        except Exception as error:\n"
        f"            raise unfit(name, error, {given}, {named})\n"
        f"    return slow({given}, {named}, more)\n"
    ), {"OMITTED": _OMITTED, **defaults.values}, list(omitted)


@functools.cache
def _compiled(text: str) -> Any:
    return compile(text, f"{__file__}: a wrapper", "exec")


def checked(
    function: F, name: str, key: str | None = None, *, out: bool = False, method: bool = False, draws: bool = False
) -> F:
    """`function` under the name `name`, with its arguments checked by the signatures of `key`.

    With `out`, it takes ``out=``: a Tensor, or one for each result. With `method`, its first argument is not counted.
    With `draws`, it draws random numbers: within a vmap, that says what they are.
    The wrapper is written when it is first called: of a thousand functions a program calls few.
    """
    if key is None:
        key = f"Tensor.{name}" if method and has_overloads(f"Tensor.{name}") else name
    if not has_overloads(key) or getattr(function, "checked", None) is function:
        return function
    scope: dict[str, Any] = {"Tensor": Tensor, "Dtype": Dtype, "INTS": _INTS, "function": function, "name": name,
                             "unfit": unfit, "local": local}  # fmt: skip
    call: Any = FunctionType(_ON_FIRST_CALL.replace(co_name=name, co_qualname=name), scope, name)
    functools.update_wrapper(call, function)
    call.__name__ = call.__qualname__ = name
    call.checked = call  # (wrappers of it inherit the attribute, but are not it)
    call.takes_out = out  # besides the parameters that the signature, that of `function`, shows

    def first(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        made = _written(function, name, key, out, int(method), draws, scope)
        own = scope.get("plain", call)  # (ops/override_switch.py)
        own.__defaults__, own.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        # Errors name the operation by its code. The last step: a thread that comes before it makes the same once more.
        own.__code__ = made.__code__.replace(co_name=name, co_qualname=name)
        return own(*args, **kwargs)

    scope["first"], scope["call"] = first, call
    return call


def _on_first_call(*args: Any, **kwargs: Any) -> Any:
    return first(args, kwargs)  # type: ignore[name-defined]  # noqa: F821  # in the scope of each wrapper


_ON_FIRST_CALL = _on_first_call.__code__


def _written(
    function: Callable[..., Any], name: str, key: str, out: bool, skipped: int, draws: bool, scope: dict[str, Any]
) -> FunctionType:
    """The wrapper of a function, made in its `scope`."""
    function = getattr(function, "body", function)  # (ops/override_switch.py)
    parameters = list(inspect.signature(function, follow_wrapped=False).parameters.values())
    # (No method takes it, even if the function that it is does.)
    has_out = not skipped and (out or any(p.name == "out" or p.kind is p.VAR_KEYWORD for p in parameters))
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        text = _SIZES if not skipped and any(_is_sizes(o) for o in overloads(key)) else _SPREAD
        text = text.replace("if not kwargs", f"if {_NOT_MAPPED} and not kwargs") if draws else text
        defaults: dict[str, Any] = {"known": set()}
        defaults["slow"] = _slow_spread(function, name, key, out, has_out, skipped, draws, scope)
    else:
        text, defaults, omitted = _text(function, key, out, draws)
        defaults["slow"] = _slow(function, name, key, parameters, out, has_out, skipped, omitted, draws, scope)
    scope.update(defaults)
    made: dict[str, Any] = {}
    exec(_compiled(text), scope, made)
    return made["call"]


def implementation(function: Any) -> Any:
    """What a checked function calls; any other function itself."""
    is_checked = getattr(function, "checked", None) is function
    return original(function) if is_checked else function


def _run(function: Callable[..., Any], name: str, args: list[Any], kwargs: dict[str, Any], out: bool) -> Any:
    target = kwargs.pop("out", None) if out else None
    try:
        if target is not None:
            return write_out(function, target, tuple(args), kwargs)
        return function(*args, **kwargs)
    except NoArray:
        found = special_tensors(args, kwargs)
        if not found:
            raise
        return found[0]._stuck_(function, tuple(args), kwargs)
    except Exception as error:
        raise unfit(name, error, args, kwargs)  # noqa: B904


def _take_out(name: str, named: dict[str, Any]) -> dict[str, Any]:
    """``out=``, taken from among the arguments: a Tensor, or one for each result."""
    if "out" not in named:
        return {}
    target = named.pop("out")
    for one in target if isinstance(target, (tuple, list)) else (target,):
        if one is not None and not isinstance(one, Tensor):
            raise wrong_type(name, "out", 0, "Tensor", one)
    return {"out": target}


#: The test of functions that draw random numbers.
_NOT_MAPPED = "not local.state.batch_levels"
#: The wrapper of a function that takes ``*args``: it remembers which classes of arguments it has found right.
_SPREAD = """
def call(*args, **kwargs):
    if not kwargs and tuple(map(type, args)) in known:
        try:
            return function(*args)
        except Exception as error:
            raise unfit(name, error, args)
    return slow(args, kwargs, known)
"""
#: The same where all are ints, as in ``zeros(2, 3)``.
_SIZES = """
def call(*args, **kwargs):
    if not kwargs and args:
        for one in args:
            if one.__class__ is not int:
                break
        else:
            try:
                return function(*args)
            except Exception as error:
                if max(args) < 2**63:  # else refused below
                    raise unfit(name, error, args)
    return slow(args, kwargs, known)
"""


def _is_sizes(parameters: tuple[Parameter, ...]) -> bool:
    positional = [p.type.base for p in parameters if not p.keyword_only]
    return positional == ["int[]"]


def _slow_spread(
    function: Callable[..., Any], name: str, key: str, out: bool, has_out: bool, skipped: int, draws: bool,
    scope: dict[str, Any],
) -> Callable[..., Any]:
    """What such a wrapper calls when it has not met such arguments."""

    def slow(args: tuple[Any, ...], kwargs: dict[str, Any], known: set[tuple[type[Any], ...]]) -> Any:
        if draws and local.state.batch_levels:
            return local.state.batch_levels[-1].draw(scope["call"], args, kwargs)
        if special_tensors(args, kwargs):
            result = operate_on_special(scope["call"], args, kwargs)
            if result is not NotImplemented:
                return result
        target = _take_out(name, kwargs) if has_out else {}
        parsed, named = parse(name, key, args, kwargs, skipped)
        classes = tuple(map(type, args))
        if not kwargs and not target and _PLAIN.issuperset(classes):
            known.add(classes)
        return _run(function, name, parsed, {**named, **target}, out)

    return slow


def _slow(
    function: Callable[..., Any], name: str, key: str, parameters: list[inspect.Parameter], out: bool, has_out: bool,
    skipped: int, omitted: list[str], draws: bool, scope: dict[str, Any],
) -> Callable[..., Any]:
    """What a wrapper calls when its test has failed."""
    positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    defaults |= dict.fromkeys(omitted, _OMITTED)

    def slow(args: tuple[Any, ...], keywords: dict[str, Any], more: dict[str, Any]) -> Any:
        given: list[Any] = []
        named: dict[str, Any] = {}
        for p, value in zip(positional, args, strict=True):
            if value is _OMITTED or (p.name in defaults and value is defaults[p.name]):
                continue
            if len(given) == positional.index(p):
                given.append(value)
            else:
                named[p.name] = value
        named |= {k: v for k, v in keywords.items() if v is not defaults.get(k)}
        named |= more
        if draws and local.state.batch_levels:
            return local.state.batch_levels[-1].draw(scope["call"], tuple(given), named)
        if special_tensors(args, named):
            result = operate_on_special(scope["call"], tuple(given), named)
            if result is not NotImplemented:
                return result
        target = _take_out(name, named) if has_out else {}
        try:
            parsed, named = parse(name, key, tuple(given), named, skipped)
        except TypeError as error:
            # An overload may ask for what others have defaults for: once more with all before the last that is given.
            late = {p.name for p in positional if p.name in named}
            count = max([positional.index(p) + 1 for p in positional if p.name in late], default=0)
            if not late or any(value is _OMITTED for value in args[:count]):
                raise
            rest = {k: v for k, v in named.items() if k not in late}
            try:
                parsed, named = parse(name, key, args[:count], rest, skipped)
            except TypeError:
                raise error from None
        return _run(function, name, parsed, {**named, **target}, out)

    return slow
