"""Anomaly mode: which errors it adds, and what it says about them."""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

import retrograd

pytestmark = [pytest.mark.usefixtures("clean_state"), pytest.mark.filterwarnings("ignore:Anomaly Detection")]


def zero_times_inf(torch):
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    return x, (x.sqrt() * torch.tensor([0.0, 1.0])).sum()  # THE LINE


def test_nan_in_backward_is_an_error(torch):
    _, loss = zero_times_inf(torch)
    loss.backward()  # nothing is said
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in SqrtBackward0"),
        pytest.raises(RuntimeError, match=r"Function 'SqrtBackward0' returned nan values in its 0th output\."),
    ):
        _, loss = zero_times_inf(torch)
        loss.backward()


def test_the_warning_has_the_line_of_the_forward_call(torch):
    with torch.autograd.set_detect_anomaly(True):
        _, loss = zero_times_inf(torch)
        with (
            pytest.warns(UserWarning, match=r"(?s)Traceback of forward call that caused the error:.*THE LINE"),
            pytest.raises(RuntimeError, match="nan"),
        ):
            loss.backward()


def test_without_forward_information(torch):
    _, loss = zero_times_inf(torch)
    with (
        torch.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError, match="nan"),
    ):
        loss.backward()


def test_errors_are_explained_too(torch):
    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(2, requires_grad=True)
        y = x + 1
        z = y**2
        y += 1
        with (
            pytest.warns(UserWarning, match="Error detected in PowBackward0"),
            pytest.raises(RuntimeError, match="modified by an inplace operation"),
        ):
            z.sum().backward()


def test_check_nan_can_be_switched_off(torch):
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert torch.is_anomaly_enabled() and not torch.is_anomaly_check_nan_enabled()
        x, loss = zero_times_inf(torch)
        loss.backward()
    assert x.grad.isnan().tolist() == [True, False]
    assert not torch.is_anomaly_enabled() and torch.is_anomaly_check_nan_enabled()


def test_the_mode_is_restored(torch):
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"):
        mode = torch.autograd.detect_anomaly()
    assert not torch.is_anomaly_enabled()
    with mode, torch.autograd.set_detect_anomaly(False):
        assert not torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()


def test_metadata(torch):
    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(1, requires_grad=True)
        y = x.exp()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert "y = x.exp()" in "".join(y.grad_fn.metadata["traceback_"])
    assert "parent_" not in y.grad_fn.metadata
    assert g.grad_fn.metadata["parent_"] is y.grad_fn


def test_the_parents_of_double_backward_are_named(torch):
    with torch.autograd.set_detect_anomaly(True):
        x = torch.tensor([0.0], requires_grad=True)
        (g,) = torch.autograd.grad(x**1.5, x, create_graph=True)  # 1.5 x^0.5, whose derivative is infinite at 0
        with warnings.catch_warnings(record=True) as caught, pytest.raises(RuntimeError, match="returned nan values"):
            warnings.simplefilter("always")
            (g * 0).sum().backward()
    texts = [str(w.message) for w in caught]
    assert texts[0].startswith("Error detected in PowBackward0.")
    assert "Previous calculation was induced by PowBackward0." in texts[1]


def test_a_warning_that_is_turned_into_an_error_does_not_hide_the_real_one(torch, capsys):
    _, loss = zero_times_inf(torch)
    with torch.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match="returned nan"):
            loss.backward()
    assert "Error detected in SqrtBackward0" in capsys.readouterr().err


def test_custom_functions_are_covered(torch):
    class Bad(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            return grad * float("nan")

    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(1, requires_grad=True)
        y = Bad.apply(x)
        with (
            pytest.warns(UserWarning, match=r"(?s)Error detected in BadBackward.*Bad\.apply"),
            pytest.raises(RuntimeError, match="Function 'BadBackward' returned nan values in its 0th output"),
        ):
            y.backward()


# ------------------------------------------------------------------------------------------------- what torch has not


def nan_error(**settings):
    with retrograd.autograd.set_detect_anomaly(True, **settings), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, loss = zero_times_inf(retrograd)
        with pytest.raises(RuntimeError) as caught:
            loss.backward()
    return caught.value


def test_the_traceback_is_on_the_exception():
    notes = "\n".join(nan_error().__notes__)
    assert "Error detected in SqrtBackward0" in notes and "THE LINE" in notes


def test_zero_times_infinity_is_recognised():
    notes = "\n".join(nan_error().__notes__)
    assert "0 · inf" in notes and "MulBackward0" in notes and "torch.where(mask" in notes


def test_zero_times_infinity_below_where():
    x = retrograd.tensor([0.0, 4.0], requires_grad=True)
    with retrograd.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = retrograd.where(x > 0, x.sqrt(), retrograd.zeros(2))
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    assert "The zeros come from WhereBackward0" in "\n".join(caught.value.__notes__)
    with retrograd.autograd.set_detect_anomaly(True):
        mask = x > 0
        y = retrograd.where(mask, retrograd.where(mask, x, 1.0).sqrt(), 0.0)  # the fix that the note names
        y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.25]


def test_a_nan_that_came_in_is_not_called_zero_times_infinity():
    x = retrograd.tensor([1.0], requires_grad=True)
    with retrograd.autograd.set_detect_anomaly(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y = x.exp()
        with pytest.raises(RuntimeError) as caught:
            y.backward(retrograd.tensor([float("nan")]))
    assert "0 · inf" not in "\n".join(caught.value.__notes__)


def test_check_inf():
    x = retrograd.tensor([0.0], requires_grad=True)
    with retrograd.autograd.set_detect_anomaly(True):
        x.sqrt().sum().backward()
    assert x.grad.item() == float("inf")
    with retrograd.autograd.set_detect_anomaly(True, check_inf=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned inf values in its 0th output"):
            x.sqrt().sum().backward()


@pytest.mark.parametrize(
    ("compute", "name", "kind"),
    [
        (lambda x: (x - 1).log().exp(), "log", "inf"),
        (lambda x: (x - 2).log() + 1, "log", "nan"),
        (lambda x: x / (x - 1), "div", "inf"),
        (lambda x: (x * 1000).exp() * 2, "exp", "inf"),
    ],
)
def test_forward_finds_the_first_operation(compute, name, kind):
    x = retrograd.tensor([1.0, 1.0], requires_grad=True)
    with (
        retrograd.autograd.set_detect_anomaly(True, forward=True),
        pytest.raises(RuntimeError, match=f"(?s)Operator '{name}' returned {kind} values .*compute\\(x\\)"),
    ):
        compute(x)  # compute(x)


def test_forward_blames_nobody_for_what_was_there():
    x = retrograd.tensor([1.0, float("inf")], requires_grad=True)
    with retrograd.autograd.set_detect_anomaly(True, forward=True):
        y = (x * 2).masked_fill(retrograd.tensor([True, False]), -float("inf"))
        with pytest.raises(RuntimeError, match="Operator 'sub' returned nan values"):
            y - y


def test_the_mode_is_the_process_s(torch):
    """A NaN is found in the backward pass of a thread that began before the mode was entered, or while it was on."""

    def fails() -> None:
        x = torch.zeros(2, requires_grad=True)
        (x.sqrt() * 0).sum().backward()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(fails).result()
        with torch.autograd.set_detect_anomaly(True), ThreadPoolExecutor(1) as later:
            for where in (pool, later):
                assert where.submit(torch.is_anomaly_enabled).result() is True
                with (
                    pytest.warns(UserWarning, match="Traceback of forward call"),
                    pytest.raises(RuntimeError, match="SqrtBackward0' returned nan values"),
                ):
                    where.submit(fails).result()
        assert pool.submit(torch.is_anomaly_enabled).result() is False
        pool.submit(fails).result()


def test_a_backward_pass_of_a_thread_that_has_not_heard_of_the_mode(torch):
    x = torch.zeros(2, requires_grad=True)
    with ThreadPoolExecutor(1) as pool:
        y = pool.submit(lambda: (x.sqrt() * 0).sum()).result()
        with (
            torch.autograd.set_detect_anomaly(True),
            pytest.warns(UserWarning, match="No forward pass information"),
            pytest.raises(RuntimeError, match="SqrtBackward0' returned nan values"),
        ):
            pool.submit(y.backward).result()


def test_set_within_a_backward_pass_it_stays_on(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: torch.autograd.set_detect_anomaly(True) and None)
    try:
        y.sum().backward()
        assert torch.is_anomaly_enabled()
    finally:
        torch.autograd.set_detect_anomaly(False)
    assert (x * 2).grad_fn.metadata == {}


def test_nothing_is_left_behind(no_cycles):
    with no_cycles():
        with retrograd.autograd.set_detect_anomaly(True):
            x = retrograd.ones(2, requires_grad=True)
            y = (x * 2).exp()
            y.sum().backward()
        del x, y
    assert sys.exc_info() == (None, None, None)


def test_leaves_know_where_they_were_first_used(torch):
    def hook(grad):
        raise ValueError("in the hook of a leaf")

    with torch.autograd.set_detect_anomaly(True):
        x = torch.ones(2, requires_grad=True)
        x.register_hook(hook)
        y = x * 2  # FIRST USED
        with pytest.warns(UserWarning, match=r"Error detected in .*AccumulateGrad. Traceback") as caught:
            with pytest.raises(ValueError, match="in the hook of a leaf"):
                y.sum().backward()
    assert any("# FIRST USED" in str(warning.message) for warning in caught)


def test_the_version_error_points_at_the_traceback(torch):
    with torch.autograd.set_detect_anomaly(True):
        y = torch.ones(2, requires_grad=True).exp()
        y += 1
        with pytest.warns(UserWarning, match="Error detected in ExpBackward0"):
            with pytest.raises(RuntimeError, match="Hint: the backtrace further above shows the operation"):
                y.sum().backward()


def test_what_a_node_remembers_is_a_list_of_strings(torch):
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x * 3
    lines = y.grad_fn.metadata["traceback_"]
    assert type(lines) is list and all(type(line) is str for line in lines)
    assert lines[-1].rstrip().endswith("y = x * 3") and y.grad_fn.metadata["traceback_"] is lines
