"""Names of ``torch.distributed`` that can be imported, and are refused when they are used: parts that are not built
here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NoReturn


def refuse(name: str) -> NoReturn:
    """Say why there is none."""
    raise RuntimeError(
        f"torch.distributed.{name}() is not supported: retrograd has data parallelism (DistributedDataParallel, "
        "ZeroRedundancyOptimizer), pipelines (distributed.pipelining) and sharded parameters (distributed.fsdp)"
    )


def refusing(module: str, name: str) -> Any:
    """A function, or a class, that refuses to be called."""
    path = f"{module}.{name}".partition("distributed.")[2]
    if not name[0].isupper():

        def function(*args: Any, **kwargs: Any) -> NoReturn:
            refuse(path)

        function.__name__ = function.__qualname__ = name
        function.__doc__ = "Refused."
        return function

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        refuse(path)

    return type(name, (), {"__init__": __init__, "__module__": module, "__doc__": "Refused."})


def names_of(module: str, names: Iterable[str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a module all of whose names refuse. Each is made once: programs ask ``isinstance``."""
    known = frozenset(names)
    made: dict[str, Any] = {}

    def find(name: str) -> Any:
        if name not in known:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return made.setdefault(name, refusing(module, name))

    return find
