"""``check=True``: each replay beside the function itself."""

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.capture import CaptureError


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path / "cache"))


def test_a_checked_program_takes_the_path_of_its_values():
    """Where a value is another one, the call is recorded anew or goes to another program, checked or not."""

    def step(x):
        w.add_(1)
        return x * 2 if x.sum() > 0 else x - 1

    w = torch.zeros(2)
    captured = torch.capture(step, backend="plain", split=True, check=True)
    for call in range(12):
        x = torch.full((2,), 1.0 if call % 3 else -1.0)
        assert torch.equal(captured(x), x * 2 if call % 3 else x - 1)
    assert w.tolist() == [12.0, 12.0]


def test_a_checked_program_of_a_draw_that_hangs_on_values():
    def step():
        return nn.init.trunc_normal_(torch.empty(3, 4), a=-1.0, b=1.0)

    torch.manual_seed(0)
    expected = [step() for _ in range(6)]
    torch.manual_seed(0)
    captured = torch.capture(step, backend="plain", check=True)
    for one in expected:
        assert torch.equal(captured(), one)


def test_a_result_whose_gradient_would_go_nowhere_is_refused():
    with pytest.raises(CaptureError, match="requires grad by nothing but tensors that were made inside"):
        torch.capture(lambda: torch.ones(3, requires_grad=True) * 2, backend="plain")()
