"""autograd.functional beside torch: what comes back, nested how, with which history, and every error's words.

Every function on every kind of input and output, with every option, which is some thousands of calls.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import retrograd

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.parity

#: The functions, of the library and of their inputs.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "square": lambda lib, *x: x[0] * x[0],
    "cubes": lambda lib, *x: sum((one**3).sum() for one in x),
    "cubes of the first": lambda lib, *x: (x[0] ** 3).sum(),
    "one element": lambda lib, *x: (x[0] ** 3).sum().reshape(1),
    "tuple of one": lambda lib, *x: ((x[0] ** 3).sum(),),
    "tuple of two": lambda lib, *x: (x[0] ** 2, x[-1].sum()),
    "list": lambda lib, *x: [x[0] ** 2, x[-1].sum()],
    "one of two is constant": lambda lib, *x: (x[0] ** 2, lib.ones(2)),
    "constant": lambda lib, *x: lib.ones(2),
    "constant number": lambda lib, *x: lib.ones(()),
    "linear": lambda lib, *x: x[0].sum(),
    "detached": lambda lib, *x: (x[0].detach() ** 3).sum(),
    "no tensor": lambda lib, *x: 3.0,
    "not only tensors": lambda lib, *x: (x[0], 3.0),
}


def inputs(lib: Any) -> dict[str, Any]:
    def x(requires_grad: bool = False) -> Any:
        return lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=requires_grad)

    def y(requires_grad: bool = False) -> Any:
        return lib.tensor([[0.5], [1.5]], dtype=lib.float32, requires_grad=requires_grad)

    return {
        "x": x(),
        "(x,)": (x(),),
        "(x, y)": (x(), y()),
        "x requires grad": x(True),
        "(x, y) require grad": (x(True), y(True)),
        "number": lib.tensor(2.0),
        "list": [x()],
        "no tensor": 3.0,
        "not only tensors": (x(), 3.0),
    }


def vectors(lib: Any) -> dict[str, Any]:
    ones = lib.ones(2, dtype=lib.float64)
    return {
        "none": None,
        "vector": ones,
        "(vector,)": (ones,),
        "two": (ones, lib.ones(2, 1)),
        "vector and number": (ones, lib.ones(())),
        "number": lib.ones(()),
        "too long": lib.ones(3),
        "list": [ones],
    }


#: Calls whose words are torch's slip: it names the output's number as the input's, and a function called None.
NOT_TORCHS = (
    ("jacobian", "tuple of two", {"create_graph": True, "strict": True}),
    ("jacobian", "list", {"strategy": "forward-mode"}),
    ("jacobian", "no tensor", {"strategy": "forward-mode"}),
    ("jacobian", "not only tensors", {"strategy": "forward-mode"}),
)


def described(lib: Any, thing: Any, history: bool) -> Any:
    if isinstance(thing, lib.Tensor):
        values = [round(v, 5) + 0.0 for v in thing.detach().reshape(-1).tolist()]
        return tuple(thing.shape), str(thing.dtype), history and thing.requires_grad, values
    if isinstance(thing, (tuple, list)):
        return type(thing).__name__, [described(lib, one, history) for one in thing]
    return repr(thing)


def outcome(lib: Any, name: str, function: str, args: list[Any], options: dict[str, Any], history: bool) -> Any:
    call = getattr(lib.autograd.functional, name)
    try:
        return described(lib, call(lambda *x: FUNCTIONS[function](lib, *x), *args, **options), history)
    except Exception as error:
        # torch forgets a space.
        return type(error).__name__, str(error).replace("isonly", "is only")


def options_of(name: str) -> Iterator[dict[str, Any]]:
    for create_graph, strict in itertools.product((False, True), repeat=2):
        common = {"create_graph": create_graph, "strict": strict}
        if name not in ("jacobian", "hessian"):
            yield common
            continue
        strategy = "strategy" if name == "jacobian" else "outer_jacobian_strategy"
        for vectorize, mode in itertools.product((False, True), ("reverse-mode", "forward-mode", "sideways")):
            yield {**common, "vectorize": vectorize, strategy: mode}


@pytest.mark.parametrize("name", ["vjp", "jvp", "jacobian", "hessian", "vhp", "hvp"])
def test_everything_is_as_in_torch(name):
    compared, differing = 0, set()
    for function, given, options in itertools.product(FUNCTIONS, inputs(retrograd), options_of(name)):
        slips = [
            i for i, (n, f, o) in enumerate(NOT_TORCHS) if (n, f) == (name, function) and o.items() <= options.items()
        ]
        # In forward mode torch's results keep the history of inputs that require grad, whatever create_graph says.
        history = "forward-mode" not in options.values()
        for vector in vectors(retrograd) if name not in ("jacobian", "hessian") else [None]:
            results = []
            for lib in (retrograd, torch):
                args = [inputs(lib)[given]] + ([] if vector is None else [vectors(lib)[vector]])
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    results.append(outcome(lib, name, function, args, options, history))
            if results[0] != results[1]:
                assert slips, (function, given, vector, options, *results)
                differing.update(slips)
            compared += 1
    assert compared > 1000
    assert differing == {i for i, (n, _, _) in enumerate(NOT_TORCHS) if n == name}, "these agree with torch now"
