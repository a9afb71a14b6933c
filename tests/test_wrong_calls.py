"""Every public function, called wrongly by machine: it says so in torch's way, shows nothing of its insides, changes
nothing and comes to an end. `tests/wrong_calls` makes the calls and runs them.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest

import retrograd
from retrograd.ops import accidents
from retrograd.ops.accidents import is_accident, unfit
from retrograd.ops.arguments import argument
from retrograd.ops.override_switch import thrown
from retrograd.ops.signatures import _lines, overloads
from wrong_calls.base_calls import NAMES, base_calls, public_names
from wrong_calls.explained import ACCEPTED, LEAKS, REFUSED, remaining
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
    # A few take no arguments and are special methods; some more are found by their code, which is another one where a
    # test has had a class that overrides functions.
    assert len({call.name for call in calls}) > len(names) - (25 if thrown() else 10)


def test_nothing_leaks(calls: list[Call]) -> None:
    found: dict[str, list[Call]] = {}
    for call, ours in zip(calls, outcomes(retrograd, calls), strict=True):
        for kind in classes(call, None, ours):
            found.setdefault(kind, []).append(call)
    assert not found.get("lost"), "these did not come to an end"
    assert not found.get("changed"), "these were refused, and had changed an argument by then"
    assert not found.get("bare"), "these name another function than the one that was called"
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
    assert remaining(found["refused"], REFUSED) == []
    # The same refusal by another kind of exception.
    assert len(found["other type"]) <= 660


# ----------------------------------------------------------------------------------------------- the classes themselves


@pytest.mark.parametrize(
    ("kind", "message", "expected"),
    [
        ("AttributeError", "'int' object has no attribute '_numbers_'", ["leak"]),
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
    stumbled = Outcome("IndexError", "tuple index out of range")
    assert classes(calls[0], stumbled, wrong) == [] and classes(calls[0], stumbled, ok) == ["accepted"]


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
    assert type(instead) is TypeError and instead.__cause__ is accident  # None has no swapaxes
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


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x: x.diagonal(10**15), lambda t, x: x.diagonal(-(10**15)), lambda t, x: x.diag(10**15),
        lambda t, x: t.tril_indices(3, 10**15, 0), lambda t, x: t.tril_indices(2, 10**15, -1),
        lambda t, x: t.tril_indices(2, 10**15, -5), lambda t, x: t.tril_indices(3, 2, 5),
        lambda t, x: t.triu_indices(10**15, 3, 1), lambda t, x: t.triu_indices(10**15, 3, -2),
        lambda t, x: t.triu_indices(10**15, 3, 5), lambda t, x: t.triu_indices(2, 4, -5),
        lambda t, x: t.histogram(x).hist, lambda t, x: t.zeros(2, requires_grad=None),
        lambda t, x: x.sort(stable=None)[0],
        lambda t, x: t.tensor(x.stride(None)), lambda t, x: t.nuclear_norm(x, True),
        lambda t, x: t.nuclear_norm(x, False),
        lambda t, x: t.bernoulli(x, t.tensor(1)), lambda t, x: t.linalg.norm(x, 2, t.tensor(1)),
        lambda t, x: t.margin_ranking_loss(x, t.tensor(1), x, 0.5, 1), lambda t, x: (x + 2).polygamma(t.tensor(1)),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, 2.5, x.abs()),
        lambda t, x: t.nn.functional.gaussian_nll_loss(x, 1j, x.abs()),
        lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x, 3, -7),
        lambda t, x: t.nn.functional.multilabel_soft_margin_loss(x, True, 1j),
        lambda t, x: t.nn.functional.local_response_norm(x[None], 2, x, x.abs(), x.abs()),
        lambda t, x: t.nn.functional.interpolate(x[None], t.tensor(5)),
        lambda t, x: t.nn.functional.upsample(x[None], t.tensor(2)),
        lambda t, x: t.nn.functional.lp_pool1d(x[None], 2, t.tensor(2), t.tensor(1)),
        lambda t, x: t.nn.functional.normalize(x, p=None),
        lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x, t.ones(2, 2)),
        lambda t, x: t.nn.functional.adaptive_max_pool1d_with_indices(x, 2, "a")[1],
    ],
)  # fmt: skip
@pytest.mark.parity
def test_what_has_a_meaning_is_taken(call) -> None:
    theirs = pytest.importorskip("torch")
    values = [[0.5, -1.0, 2.0], [3.0, 0.25, -0.75]]
    found, expected = (call(t, t.tensor(values, dtype=t.float64)) for t in (retrograd, theirs))
    assert str(found.dtype) == str(expected.dtype)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-9)  # torch's polygamma is that exact


def test_a_diagonal_outside_has_a_gradient_of_zeros(torch) -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x.diagonal(10**15).sum().backward()
    assert x.grad.tolist() == [[0.0] * 3] * 2


def test_opcodes_tell() -> None:
    """On every interpreter that the tests run on; on one where they do not, no error of ours counts as an accident."""
    assert accidents._opcodes_tell()


def test_nothing_is_an_accident_where_opcodes_do_not_tell(monkeypatch) -> None:
    monkeypatch.setattr(accidents, "_OPCODES_TELL", False)
    with pytest.raises(AttributeError) as caught:
        retrograd.kernels.shape.transpose(None, 0, 1)
    assert unfit("transpose", caught.value, ()) is caught.value


# ------------------------------------------------------------------------------------------------- odd, but not wrong


def test_odd_calls_that_mean_something_are_taken(torch) -> None:
    """Each as torch takes it, on both libraries."""
    x = torch.arange(24.0).reshape(2, 3, 4)
    assert [tuple(part.shape) for part in x.hsplit(1, 2)] == [(2, 1, 4)] * 3
    assert [tuple(part.shape) for part in x.dsplit(1, 2)] == [(2, 3, 1), (2, 3, 1), (2, 3, 2)]
    assert [tuple(part.shape) for part in x.vsplit(1, 2)] == [(1, 3, 4), (1, 3, 4), (0, 3, 4)]
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        torch.hsplit(x, 1, 2)
    assert [x.to(number).dtype for number in (2.5, True, 1j)] == [torch.float64, torch.bool, torch.complex128]
    assert x.to(tensor=torch.tensor(2)).dtype == torch.int64
    y = torch.tensor([-1.0, 2.0])
    found = torch.nn.functional.elu_(y, 1.0, 2.0, 3.0)
    assert found is y and y[1] == 4 and abs(y[0].item() - 2 * (np.exp(-3.0) - 1)) < 1e-6


@pytest.mark.parametrize("dtype", ["float64", "float16"])
def test_a_bias_of_another_dtype(torch, dtype: str) -> None:
    """torch adds it to what a transposed convolution has computed, but in three dimensions, and conv2d refuses it."""
    F = torch.nn.functional
    bias = torch.tensor([1.0, 2.0], dtype=getattr(torch, dtype), requires_grad=True)
    for result in (
        torch.conv_tbc(torch.zeros(4, 1, 3), torch.zeros(2, 3, 2), bias, 1),
        F.conv_transpose1d(torch.zeros(1, 3, 4), torch.zeros(3, 2, 2), bias),
        F.conv_transpose2d(torch.zeros(1, 3, 4, 1), torch.zeros(3, 2, 2, 1), bias),
    ):
        assert result.dtype == torch.float32 and result.sum().item() == 15
        (gradient,) = torch.autograd.grad(result.sum(), bias)
        assert gradient.dtype == bias.dtype and gradient.tolist() == [5, 5]
    with pytest.raises(RuntimeError):
        F.conv_transpose3d(torch.zeros(1, 3, 4, 1, 1), torch.zeros(3, 2, 2, 1, 1), bias)
    with pytest.raises(RuntimeError, match="should be the same"):
        F.conv2d(torch.zeros(1, 3, 4, 4), torch.zeros(2, 3, 2, 2), bias)


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_taps_beyond_the_signal_are_left_out(torch, value: float) -> None:
    """conv_tbc's padding is no zeros that a weight could be multiplied with."""
    weight = torch.ones(3, 1, 1)
    weight[0] = value
    found = torch.conv_tbc(torch.ones(3, 1, 1), weight, torch.zeros(1), 1)
    assert found[0].item() == 2 and not torch.isfinite(found[1:]).any()
