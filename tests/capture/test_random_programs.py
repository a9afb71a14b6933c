"""Random steps give what they give eagerly: results, gradients, state, random numbers, also where they fail."""

import random
import warnings

import numpy as np
import pytest

import retrograd as torch
from capture.programs import World, draw_program, make_step
from retrograd.capture import program
from retrograd.capture.compiling import compiler

SEEDS = range(16)


def run(seed, captured, backend, dtype, keep):
    """Everything that can be seen of some calls of a random step."""
    torch.manual_seed(seed)
    rng = random.Random(seed)
    world = World(torch, seed, dtype)
    step = make_step(torch, draw_program(seed), world, 0.05)
    function = torch.capture(step, backend=backend) if captured else step
    seen = []
    kept = []
    zero_at, fail_at = rng.randrange(1, 4), rng.randrange(3, 7)
    for call in range(8):
        x, y = torch.rand(3, 3, dtype=dtype), torch.rand(3, 3, dtype=dtype) - 0.5
        if call == 6:  # laid out in another way
            x = x.t()
        if call == 7:  # a view, and memory of the state
            y = torch.rand(4, 3, dtype=dtype)[1:] if seed % 2 else world.buffer.view(3, 3)
        failing = torch.eye(2, dtype=dtype)
        if call % 4 >= zero_at:
            for tensor in world.state():
                tensor.grad = None
        if call == fail_at:
            before = [tensor.detach().clone() for tensor in world.state()]
            with pytest.raises(torch.linalg.LinAlgError):
                function(x, y, -failing)
            if captured:  # an eager step leaves what it has done so far
                for tensor, content in zip(world.state(), before, strict=True):
                    assert torch.equal(tensor, content), "a failed step has changed the state"
            with torch.no_grad():
                for tensor, content in zip(world.state(), before, strict=True):
                    tensor.copy_(content)
                    tensor.grad = None
            torch.manual_seed(seed + 1)
            continue
        versions = [t._version for t in world.state()]
        results = function(x, y, failing)
        last, buffer, grad, argument = results[1], results[4], results[5], results[6]
        assert grad is world.weight.grad
        assert argument is y
        with torch.no_grad():  # results are views of what they are views of eagerly
            results[3].add_(1.0)
            buffer[:3].mul_(0.5)
        if keep:
            results_too = [*results[:4]]  # the others are memory of the state
            kept.append((results_too, [t.grad for t in world.state()], [r.clone() for r in results_too],
                         [None if t.grad is None else t.grad.clone() for t in world.state()]))  # fmt: skip
        seen.append([r.numpy().copy() for r in (results[0], last, *results[2:5], y)]
                    + [np.array(r.stride()) for r in results[:5]]
                    + [np.array([t._version - before for t, before in zip(world.state(), versions, strict=True)])]
                    + [t.detach().numpy().copy() for t in world.state()]
                    + [None if t.grad is None else t.grad.numpy().copy() for t in world.state()])  # fmt: skip
    for results, grads, results_then, grads_then in kept[:-1]:
        for one, then in zip(results, results_then, strict=True):
            assert torch.equal(one, then), "a later call has changed the results of an earlier one"
        for one, then in zip(grads, grads_then, strict=True):
            if one is not None and captured and not any(one is t.grad for t in world.state()):
                assert one.shape == then.shape
    return seen, torch.rand(3).numpy()


def same(one, two, exactly):
    if one is None or two is None:
        return one is two
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    if exactly:
        return one.tobytes() == two.tobytes()
    return np.allclose(one, two, rtol=1e-4 if one.dtype == np.float32 else 1e-9, atol=1e-5, equal_nan=True)


def compare(seed, backend, monkeypatch):
    if seed % 4 >= 2:  # as if all were large
        monkeypatch.setattr(program, "_LARGE", 1)
    dtype = torch.float32 if seed % 2 else torch.float64
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        (eager, drawn), (captured, drawn_too) = (run(seed, c, backend, dtype, seed % 3 == 0) for c in (False, True))
    for call, (one, two) in enumerate(zip(eager, captured, strict=True)):
        for position, (a, b) in enumerate(zip(one, two, strict=True)):
            assert same(a, b, backend == "plain"), f"seed {seed}, call {call}, array {position}: {a} and {b}"
    assert drawn.tobytes() == drawn_too.tobytes()


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_programs_give_the_same_bits(seed, monkeypatch):
    compare(seed, "plain", monkeypatch)


@pytest.mark.skipif(compiler() is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", range(4))
def test_native_programs_give_the_same_numbers(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path))
    compare(seed, "native", monkeypatch)


@pytest.mark.slow
def test_many_programs(tmp_path, monkeypatch):
    monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path))
    for seed in range(100, 400):
        compare(seed, "native" if seed % 3 == 0 and compiler() is not None else "plain", monkeypatch)
