"""The rules of Note [Streams], each by a number that is wrong without it.

On the simulated machine a stream does nothing before somebody waits for it, so that what was not waited for reads as
NaN or
as what was there before.  Every rule is tested twice: as it is, and with the rule taken out, when the number must be
wrong: a test that cannot fail would show there.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import pytest

import retrograd as torch
from gpu import simulated
from retrograd.arrays import places
from retrograd.autograd import device_threads, streams


def numbers(tensor: Any) -> list[float]:
    """The values, read on the current stream alone: nothing else is waited for."""
    return tensor.detach().cpu().tolist()


@contextmanager
def without(monkeypatch: Any, *rules: str) -> Iterator[None]:
    """The engine, with some of its rules taken out."""
    with monkeypatch.context() as patch:
        if "wait" in rules:
            patch.setattr(places.Place, "join", lambda self, before, after: None)
        if "same stream" in rules:
            patch.setattr(device_threads, "on_stream_of", lambda array_class: nullcontext())
        if "leaves" in rules:
            patch.setattr(streams.Leaves, "join", lambda self, captured: None)
        if "keep memory" in rules:
            patch.setattr(places.Place, "use_on", lambda self, array, user: None)
        if "hand over" in rules:
            patch.setattr(device_threads, "hand_over", lambda grad, taker, warn: None)
        yield


def both_ways(run: Callable[[], Any], expected: Any, late: Any, monkeypatch: Any, *rules: str) -> None:
    """`run` gives `expected`, whichever stream is quicker; on the simulated machine not so with `rules` taken out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = []
        for others_first in (False, True):
            simulated.machine.others_first = others_first
            simulated.poison()
            assert run() == expected
            torch.cuda.synchronize()
            if not late.real:
                simulated.poison()  # what the first run left in memory is right
                with without(monkeypatch, *rules):
                    found.append(run())
        assert late.real or any(wrong != expected for wrong in found), "nothing goes wrong without the rule"


def test_a_number_is_wrong_without_a_wait(late):
    """What the other tests stand on."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        late.delay()
        x = torch.ones(3, device="cuda") * 2
    if not late.real:
        assert numbers(x) != [2.0, 2.0, 2.0]
    torch.cuda.current_stream().wait_stream(side)
    assert numbers(x) == [2.0, 2.0, 2.0]


def test_backward_runs_on_the_stream_of_the_forward(late, monkeypatch):
    def run():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            late.delay()
            x = torch.full((3,), 3.0, device="cuda", requires_grad=True)
            y = (x * x).sum()
            grad = torch.ones((), device="cuda")
        y.backward(grad)  # called on another stream: x, saved on the side stream, is not there yet
        torch.cuda.current_stream().wait_stream(side)
        return numbers(x.grad)

    both_ways(run, [6.0, 6.0, 6.0], late, monkeypatch, "same stream", "hand over")


def test_a_stream_waits_for_the_stream_that_a_gradient_comes_from(late, monkeypatch):
    def run():
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        x = torch.ones(3, device="cuda", requires_grad=True)
        first.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(first):
            a = x * 2
        second.wait_stream(first)
        with torch.cuda.stream(second):
            b = a * 3
        torch.cuda.current_stream().wait_stream(second)
        loss = (b * 5).sum()
        late.delay()
        loss.backward()
        return numbers(x.grad)

    both_ways(run, [30.0, 30.0, 30.0], late, monkeypatch, "hand over")


def test_gradients_that_meet_are_added_when_both_are_there(late, monkeypatch):
    def run():
        x = torch.ones(3, device="cuda", requires_grad=True)
        y = x * 1
        parts = []
        for factor in (2.0, 3.0, 4.0):
            side = torch.cuda.Stream()
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                late.delay()
                parts.append((y * factor).sum())
            torch.cuda.current_stream().wait_stream(side)
        (parts[0] + parts[1] + parts[2]).backward()
        return numbers(x.grad)

    both_ways(run, [9.0, 9.0, 9.0], late, monkeypatch, "hand over")


@pytest.mark.parametrize("how", ["backward", "grad"])
def test_what_a_pass_gives_needs_no_wait(how, late, monkeypatch):
    def run():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            x = torch.full((3,), 3.0, device="cuda", requires_grad=True)
            late.delay()
            y = (x * x).sum()
        torch.cuda.current_stream().wait_stream(side)
        if how == "grad":
            return numbers(torch.autograd.grad(y, x)[0])
        y.backward()
        return numbers(x.grad)

    both_ways(run, [6.0, 6.0, 6.0], late, monkeypatch, "leaves")


def test_the_root_waits_for_the_gradient_that_it_is_given(late, monkeypatch):
    def run():
        forward, caller = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(forward):
            x = torch.ones(3, device="cuda", requires_grad=True)
            y = x * 2
        with torch.cuda.stream(caller):
            late.delay()
            grad = torch.full((3,), 7.0, device="cuda") * 1
            y.backward(grad)
            return numbers(x.grad)

    both_ways(run, [14.0, 14.0, 14.0], late, monkeypatch, "hand over")


def test_several_roots_wait_for_theirs(late, monkeypatch):
    def run():
        forward, caller = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(forward):
            x = torch.ones(3, device="cuda", requires_grad=True)
            y, z = x * 2, x * 3
        with torch.cuda.stream(caller):
            late.delay()
            grad = torch.full((3,), 7.0, device="cuda") * 1
            torch.autograd.backward([y, z], [grad, grad])
            return numbers(x.grad)

    both_ways(run, [35.0, 35.0, 35.0], late, monkeypatch, "hand over")


def test_memory_that_another_stream_reads_is_not_given_away(late):
    def run(say: bool) -> list[float]:
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(first):
            a = torch.full((64,), 1.0, device="cuda")
        second.wait_stream(first)
        with torch.cuda.stream(second):
            late.delay()
            b = a * 2
            if say:
                a.record_stream(second)
        del a
        with torch.cuda.stream(first):
            c = torch.full((64,), 5.0, device="cuda")  # of the same size: the pool would give it the memory of `a`
        first.synchronize()
        second.synchronize()
        del c
        return b.cpu().tolist()

    assert run(True) == [2.0] * 64
    simulated.poison()
    if not late.real:
        assert run(False) != [2.0] * 64


def test_the_memory_of_a_gradient_is_kept_for_the_stream_that_takes_it(late, monkeypatch):
    def run():
        first, second = torch.cuda.Stream(), torch.cuda.Stream()
        with torch.cuda.stream(second):
            v = torch.full((64,), 1.0, device="cuda", requires_grad=True)
            w = v * 7  # the earliest: its backward comes last
        with torch.cuda.stream(first):
            x = torch.full((64,), 3.0, device="cuda", requires_grad=True)
            y = x * 2
        second.wait_stream(first)
        with torch.cuda.stream(second):
            z = y * 5
            grad = torch.ones(64, device="cuda")
            # The gradient of y is made on `second` and read on `first`. Then w's backward asks for memory on `second`.
            torch.autograd.backward([z, w], [grad, grad])
            second.synchronize()
            return x.grad.cpu().tolist()

    both_ways(run, [10.0] * 64, late, monkeypatch, "keep memory")


def test_hooks_run_on_the_stream_of_their_node(gpu, monkeypatch):
    def run():
        side = torch.cuda.Stream()
        seen: dict[str, Any] = {}
        with torch.cuda.stream(side):
            x = torch.ones(2, device="cuda", requires_grad=True)
            y = x * 2
        y.register_hook(lambda g: seen.setdefault("tensor", torch.cuda.current_stream()) and None)
        y.grad_fn.register_hook(lambda *g: seen.setdefault("node", torch.cuda.current_stream()) and None)
        y.grad_fn.register_prehook(lambda *g: seen.setdefault("before", torch.cuda.current_stream()) and None)
        x.register_post_accumulate_grad_hook(lambda p: seen.setdefault("leaf", torch.cuda.current_stream()) and None)
        torch.cuda.current_stream().wait_stream(side)
        y.sum().backward()
        return {name: stream == side for name, stream in seen.items()}

    assert run() == dict.fromkeys(("tensor", "before", "node", "leaf"), True)
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with without(monkeypatch, "same stream"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not any(run().values())


def test_a_write_in_place_belongs_to_the_stream_that_it_ran_on(gpu):
    side = torch.cuda.Stream()
    x = torch.ones(2, device="cuda", requires_grad=True)
    y = x * 2
    seen = []
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y.mul_(3)
    y.grad_fn.register_prehook(lambda *g: seen.append(torch.cuda.current_stream()))
    torch.cuda.current_stream().wait_stream(side)
    y.sum().backward()
    assert seen == [side] and numbers(x.grad) == [6.0, 6.0]


def test_a_leaf_on_another_stream_is_warned_about(gpu):
    def loss():
        x = torch.ones(2, device="cuda", requires_grad=True)
        y = x * 1  # the accumulator is made on the default stream
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            z = (x * 2).sum()
        torch.cuda.current_stream().wait_stream(side)
        return z, y

    with pytest.warns(UserWarning, match="AccumulateGrad node's stream does not match"):
        loss()[0].backward()
    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            loss()[0].backward()
    finally:
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (torch.ones(2, device="cuda", requires_grad=True) * 2).sum().backward()


def test_each_device_has_a_thread(gpu):
    seen = {}
    x = torch.ones(2, device="cuda:0", requires_grad=True)
    y = x * 2
    z = y.to("cuda:1") * 3
    y.register_hook(lambda g: seen.setdefault("cuda:0", threading.current_thread().name) and None)
    z.register_hook(lambda g: seen.setdefault("cuda:1", threading.current_thread().name) and None)
    z.sum().backward()
    assert seen == {"cuda:0": "retrograd: cuda:0", "cuda:1": "retrograd: cuda:1"}
    assert numbers(x.grad) == [6.0, 6.0] and x.grad.device == torch.device("cuda", 0)


def test_streams_without_threads(late, monkeypatch):
    def run():
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            late.delay()
            x = torch.full((3,), 3.0, device="cuda", requires_grad=True)
            y = (x * x).sum()
            grad = torch.ones((), device="cuda")
        with torch.autograd.set_multithreading_enabled(False):
            y.backward(grad)
        torch.cuda.current_stream().wait_stream(side)
        return numbers(x.grad)

    both_ways(run, [6.0, 6.0, 6.0], late, monkeypatch, "same stream", "hand over")


def test_a_copy_between_devices_waits_for_both(late, monkeypatch):
    def run():
        side = torch.cuda.Stream("cuda:0")
        with torch.cuda.stream(side):
            late.delay()
            x = torch.full((3,), 3.0, device="cuda:0", requires_grad=True)
            y = x * 2
            z = y.to("cuda:1")
        w = z * z
        torch.cuda.synchronize("cuda:1")
        w.sum().backward()
        return numbers(w), numbers(x.grad)

    for others_first in (False, True):
        simulated.machine.others_first = others_first
        simulated.poison()
        assert run() == ([36.0, 36.0, 36.0], [24.0, 24.0, 24.0])
        torch.cuda.synchronize("cuda:0")
    if not late.real:
        simulated.poison()
        monkeypatch.setattr(simulated.Stream, "wait_event", lambda self, event: None)
        assert run()[0] != [36.0, 36.0, 36.0]


def test_an_event_marks_a_place_in_a_stream(late):
    side = torch.cuda.Stream()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    with torch.cuda.stream(side):
        start.record()
        late.delay()
        x = torch.ones(3, device="cuda") + 1
        end.record()
        y = x + 1
    assert late.real or not end.query()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0
    if not late.real:
        assert not side.query()
    end.wait()
    assert numbers(x) == [2.0, 2.0, 2.0]
    side.synchronize()
    assert numbers(y) == [3.0, 3.0, 3.0]


def test_streams_are_one_by_number_and_device(gpu):
    side = torch.cuda.Stream()
    assert side != torch.cuda.default_stream() and side == side and len({side, side}) == 1
    with torch.cuda.stream(side):
        assert torch.cuda.current_stream() == side
        with torch.cuda.stream(None):
            assert torch.cuda.current_stream() == side
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    with side:
        assert torch.cuda.current_stream() == side
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    assert side.device == torch.device("cuda", 0) and torch.cuda.Stream("cuda:1").device_index == 1
