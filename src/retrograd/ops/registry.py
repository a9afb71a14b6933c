"""The registry: every function, method and property that users find, by namespace.

Operators of the table come first: `_generated/functions.py` says where each stands. All others are declared with
`@composite` where they are defined:

    @composite()                                    torch.NAME and Tensor.NAME
    @composite("divide")                            the same under two names
    @composite(method=False)                        torch.NAME alone
    @composite(space="Tensor")                      a method alone
    @composite(property=True, setter=_write)        torch.NAME, and the attribute of Tensor
    @composite("torch.celu", space="nn.functional") nn.functional.NAME, and torch.celu
    @composite("special.softmax")                   torch.NAME, Tensor.NAME and special.softmax
    @composite(space="internal")                    none of these: what formulas call
    @composite(draws=True)                          it draws random numbers, which vmap asks about

A function called `linalg_NAME` or `special_NAME`, as aten calls them, is NAME in that namespace. How a function may be
called is in `ops/signatures/`, and is checked before it runs; with `bare`, it looks at its arguments itself. The
type stubs are written from these declarations without importing them (`codegen/stubs.py`): their arguments are
literals.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

from .._generated.functions import PUBLIC
from ..codegen import schema
from ..tensor import Tensor
from .checked import checked
from .signatures import has_overloads, names

F = TypeVar("F", bound=Callable[..., Any])

#: Namespace -> name -> what stands there. Filled while the package is imported, read-only after that.
SPACES: dict[str, dict[str, Any]] = {space: dict(PUBLIC.get(space, {})) for space in schema.SPACES}
#: The same for what is not of the table, and as it was defined: without the check of its arguments.
DECLARED: dict[str, dict[str, Callable[..., Any]]] = {space: {} for space in schema.SPACES}


def composite(
    *names: str,
    name: str = "",
    space: str = "torch",
    method: bool = True,
    property: bool = False,
    setter: Callable[[Any, Any], None] | None = None,
    out: bool = False,
    bare: bool = False,
    draws: bool = False,
) -> Callable[[F], F]:
    """Declare an operator that is not in the table, under its own name (or `name`) and `names`, in `space`.

    One of `names` that has a dot stands in that namespace alone. A function of torch is a Tensor method as well
    unless `method` is false, or an attribute if `property` is true. With `out`, it takes ``out=``.
    """

    def declare(f: F) -> F:
        if name:
            f.__name__ = f.__qualname__ = name
        for title in (name or f.__name__, *names):
            where, own = schema.place(title, space)
            if where != "Tensor":
                _put(where, own, f, out, bare, draws)
            if where in ("linalg", "special") and "." not in title:
                _put("internal", title, f, out, bare, draws)
            if property:
                SPACES["Tensor"][own] = made = builtins.property(f, setter)
                setattr(Tensor, own, made)
            elif where == "Tensor" or (where == "torch" and "." not in title and method):
                _put("Tensor", own, f, False, bare, draws)
                setattr(Tensor, own, SPACES["Tensor"][own])
        return f

    return declare


def _as_method(f: Any, name: str) -> Any:
    """The method of tensors that is a function as well, as an object of its own: those who override functions
    (tensor/overriding.py) can tell which of the two was called."""
    own: Any = FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, f.__closure__)
    own.__kwdefaults__, own.__doc__, own.__qualname__ = f.__kwdefaults__, f.__doc__, f.__qualname__
    own.__wrapped__ = f
    own.__module__ = f"{__package__}.methods"  # where a pickle finds it
    return own


#: The methods that others stand in front of, which call them.
BEHIND: dict[str, Any] = {}


def put_in_front(methods: dict[str, Any]) -> None:
    """Have Tensor these forms of methods, which call those that were there: the compiled core's."""
    for name, method in methods.items():
        BEHIND[name] = getattr(Tensor, name)
        setattr(Tensor, name, method)


def _put(space: str, name: str, f: Callable[..., Any], out: bool, bare: bool, draws: bool) -> None:
    if name in SPACES[space]:
        raise ValueError(f"{space}.{name} is declared twice")
    DECLARED[space][name] = SPACES[space][name] = f
    if bare and space == "Tensor" and SPACES["torch"].get(name) is f:
        SPACES[space][name] = _as_method(f, name)
    if space == "linalg" and DECLARED["torch"].get(f.__name__) is f:
        SPACES[space][name] = SPACES["torch"][f.__name__]
    if not bare and space not in ("internal", "aten", "linalg"):  # (ops/linalg_calls.py has further checks)
        made: Any = checked(f, name, signature_key(space, name), out=out, method=space == "Tensor", draws=draws)
        if made is f:
            raise LookupError(f"{space}.{name} has no line in ops/signatures")
        SPACES[space][name] = made
    if space == "nn.functional":
        SPACES[space][name].__module__ = "retrograd.nn.functional"  # where a pickle finds it


def signature_key(space: str, name: str) -> str:
    """What the lines of `ops/signatures` for a function begin with."""
    if space == "torch" or (space == "Tensor" and not has_overloads(f"Tensor.{name}")):
        return name
    return f"{space}.{name}"


_SHARED = {id(_f) for _space, _names in PUBLIC.items() if _space != "Tensor" for _f in _names.values()}
for _name, _method in PUBLIC["Tensor"].items():
    if id(_method) in _SHARED:
        SPACES["Tensor"][_name] = _method = _as_method(_method, _name)
    setattr(Tensor, _name, _method)
#: Methods that the class itself has and that are checked as operators are: those that have a line.
for _name in [key.removeprefix("Tensor.") for key in names() if key.startswith("Tensor.")]:
    if hasattr(Tensor, _name):
        DECLARED["Tensor"][_name] = getattr(Tensor, _name)
        SPACES["Tensor"][_name] = checked(getattr(Tensor, _name), _name, f"Tensor.{_name}", method=True)
        setattr(Tensor, _name, SPACES["Tensor"][_name])
