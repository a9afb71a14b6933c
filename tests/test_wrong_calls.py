"""Every public function, called wrongly by machine: it says so in torch's way, shows nothing of its insides, changes
nothing and comes to an end. `tests/wrong_calls` makes the calls and runs them.
"""

from __future__ import annotations

import sys

import pytest

import retrograd
from retrograd.accidents import is_accident, unfit
from retrograd.arguments import argument
from retrograd.signatures import _lines, overloads
from wrong_calls.base_calls import NAMES, base_calls, public_names
from wrong_calls.explained import ACCEPTED, LEAKS, remaining
from wrong_calls.mutations import Call, wrong_calls
from wrong_calls.outcomes import Outcome, classes, compared, outcomes

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory by /proc and RLIMIT_AS")


@pytest.fixture(scope="module")
def calls() -> list[Call]:
    return [call for name, samples in base_calls().items() for call in wrong_calls(name, samples)]


def test_there_are_enough(calls: list[Call]) -> None:
    """The sample database and the calls written beside it reach every public function."""
    assert len(calls) > 65_000
    names = NAMES.read_text().split()
    assert len({call.name for call in calls}) > len(names) - 10  # a few take no arguments and are special methods


def test_nothing_leaks(calls: list[Call]) -> None:
    found: dict[str, list[Call]] = {}
    for call, ours in zip(calls, outcomes(retrograd, calls), strict=True):
        for kind in classes(call, None, ours):
            found.setdefault(kind, []).append(call)
    assert not found.get("lost"), "these did not come to an end"
    assert not found.get("changed"), "these were refused, and had changed an argument by then"
    assert len(found.get("leak", [])) <= 50
    assert remaining(found.get("leak", []), LEAKS) == []


@pytest.mark.parity
def test_torch_refuses_the_same(calls: list[Call]) -> None:
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    assert public_names(torch) == NAMES.read_text().split(), "python -m wrong_calls names"
    found: dict[str, list[Call]] = {}
    for call, theirs, ours in compared(torch, calls):
        for kind in classes(call, theirs, ours):
            found.setdefault(kind, []).append(call)
    assert len(found["accepted"]) <= 100
    assert remaining(found["accepted"], ACCEPTED) == []
    # Most are numbers without a meaning that torch takes for another (reductions, modes), mixtures of dtypes that some
    # kernel lets through, and truth values of all kinds where its function is written in Python.
    assert len(found["refused"]) <= 250
    # The same refusal by another kind of exception.
    assert len(found["other type"]) <= 1450


# ----------------------------------------------------------------------------------------------- the classes themselves


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("AttributeError", "'int' object has no attribute '_data'", ["leak"]),
        ("MemoryError", "", ["leak"]),
        ("ValueError", "operands could not be broadcast together with shapes (2,) (3,)", ["leak"]),
        ("TypeError", "helper() missing 1 required positional argument: 'x'", ["bare"]),
        ("TypeError", "mul(): argument 'other' (position 2) must be Tensor, not NoneType", []),
        ("TypeError", "mul() missing 1 required positional argument: 'other'", []),
        ("hang", "", ["lost"]),
        ("ok", "", []),
    ],
)
def test_classes(calls: list[Call], kind: str, message: str, expected: list[str]) -> None:
    call = next(call for call in calls if call.name == "mul")
    assert classes(call, None, Outcome(kind, message)) == expected


def test_classes_beside_torch(calls: list[Call]) -> None:
    ok, wrong, other = Outcome("ok"), Outcome("TypeError"), Outcome("RuntimeError")
    found = [classes(calls[0], *pair) for pair in ((wrong, ok), (ok, wrong), (other, wrong), (wrong, wrong), (ok, ok))]
    assert found == [["accepted"], ["refused"], ["other type"], [], []]


# --------------------------------------------------------------------------------------------- accidents and signatures


def test_accidents() -> None:
    """An exception that nobody raised is told apart from one that somebody did."""

    def caught(function, *args):
        try:
            function(*args)
        except Exception as error:
            return error
        raise AssertionError("not refused")

    raised = caught(retrograd.mul, retrograd.ones(2), retrograd.ones(3))
    assert not is_accident(raised) and unfit("mul", raised, ()) is raised
    accident = caught(retrograd.kernels.shape.transpose, None, 0, 1)
    assert is_accident(accident)
    instead = unfit("transpose", accident, (retrograd.ones(2, 3), 7, "a"))
    assert str(instead) == (
        "transpose() received arguments that do not go together - got (torch.float32 Tensor of shape [2, 3], 7, 'a')"
    )
    assert type(instead) is RuntimeError and instead.__cause__ is accident
    assert not is_accident(caught(lambda: None.nothing))  # the user's own


def test_a_lack_of_memory(torch) -> None:
    with pytest.raises(RuntimeError, match=r"can't allocate memory: .*you tried to allocate 4000000000000000 bytes"):
        torch.zeros(10**15)


@pytest.mark.parametrize("name", sorted(_lines()))
def test_signatures_are_readable(name: str) -> None:
    for parameters in overloads(name):
        assert len({p.name for p in parameters}) == len(parameters)


@pytest.mark.parametrize(
    ("type_", "right", "wrong"),
    [
        ("int", [3, retrograd.tensor(3)], [True, 2.5, "a", None, (1,), retrograd.tensor(2.5), retrograd.tensor([1])]),
        ("float", [2.5, 3, True, retrograd.tensor(2.5)], [1j, "a", None, retrograd.ones(1, requires_grad=True)]),
        ("bool", [True], [1, None, retrograd.tensor(True)]),
        ("Scalar", [2.5, 1j, True, retrograd.tensor(1j)], ["a", None, [1]]),
        ("int[]", [[1, 2], (), [1, True]], [3, None, [True], [1.5], {}]),
        ("int[2]?", [3, (1, 2), None], ["a", 2.5]),
        ("Tensor[]", [[retrograd.ones(2)]], [retrograd.ones(2), 3]),
    ],
)
def test_types(type_: str, right: list, wrong: list) -> None:
    for value in right:
        argument(type_, "f", "x", 1, value)
    for value in wrong:
        with pytest.raises(TypeError, match=r"f\(\): argument 'x' \(position 1\) must be"):
            argument(type_, "f", "x", 1, value)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: t.finfo("a"), lambda t, x: t.einsum(5, x), lambda t, x: t.where("a", x, x),
        lambda t, x: t.nn.functional.cross_entropy(x, None), lambda t, x: t.equal(x, 5), lambda t, x: t.fft.fft("a"),
        lambda t, x: t.amax(x, {}), lambda t, x: t.softmax(x, 0, x), lambda t, x: t.flip(x), lambda t, x: t.arange(),
        lambda t, x: t.mul(x, "a"), lambda t, x: x.fill_diagonal_("a"),
    ],
)  # fmt: skip
def test_refused_as_torch_refuses(torch, call) -> None:
    with pytest.raises(TypeError):
        call(torch, torch.ones(2, 2))


def test_answers_at_once(torch) -> None:
    x = torch.ones(3)
    for refused in (lambda: torch.tensor_split(x, 10**30), lambda: torch.special.chebyshev_polynomial_t(x, 10**30)):
        with pytest.raises((ValueError, OverflowError)):
            refused()
    with pytest.raises(RuntimeError):
        torch.fft.fft(x, -1)


def test_fill_diagonal_refuses_before_it_writes(torch) -> None:
    x = torch.zeros(3, 3)
    with pytest.raises(TypeError):
        x.fill_diagonal_(1.0, "a")
    assert x.tolist() == [[0.0] * 3] * 3 and x._version == 0
