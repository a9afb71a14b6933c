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


def test_a_checked_step_that_fails_leaves_the_world_as_it_was():
    w = torch.ones(2, requires_grad=True)
    total = torch.zeros(2)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9)

    @torch.capture(check=True, backend="plain")
    def step(x):
        optimizer.zero_grad()
        total.add_(1)
        (w * x.diagonal()).sum().backward()
        optimizer.step()
        return torch.linalg.cholesky(x)

    for _ in range(4):
        step(torch.eye(2))
    before = w.detach().clone(), total.clone(), optimizer.state[w]["momentum_buffer"].clone(), total._version
    with pytest.raises(torch.linalg.LinAlgError):
        step(-torch.eye(2))
    assert torch.equal(w, before[0])
    assert torch.equal(total, before[1])
    assert torch.equal(optimizer.state[w]["momentum_buffer"], before[2])
    assert total._version == before[3]
