"""The memory of devices: counted, kept in host memory, used up."""

from __future__ import annotations

import gc
import re

import pytest

import retrograd as torch
from gpu import simulated
from retrograd.arrays import memory, places
from retrograd.autograd import suspended

MEGABYTE = 1 << 20


def chain(x, steps):
    for _ in range(steps):
        x = x.sin()
    return x


def test_what_tensors_hold_is_counted(gpu):
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    x = torch.ones(MEGABYTE // 4, device="cuda")
    assert torch.cuda.memory_allocated() == before + MEGABYTE <= torch.cuda.max_memory_allocated()
    y = x[1:]
    del x
    assert torch.cuda.memory_allocated() == before + MEGABYTE  # the view holds it
    del y
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.memory_reserved() >= MEGABYTE
    assert torch.cuda.max_memory_allocated() >= before + MEGABYTE
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == before
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() < MEGABYTE or gpu.real
    assert "tensors hold" in torch.cuda.memory_summary()


def test_nothing_grows(gpu):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    side = torch.cuda.Stream()
    x = torch.ones(4, 8, device="cuda")

    def step():
        optimizer.zero_grad()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            hidden = model[1](model[0](x))
        torch.cuda.current_stream().wait_stream(side)
        hidden.record_stream(torch.cuda.current_stream())
        model[2](hidden).sum().backward()
        optimizer.step()

    torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
    try:
        for _ in range(5):
            step()
        torch.cuda.synchronize()
        memory.give_back()
        gc.collect()
        before, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
        for _ in range(1000 if gpu.real else 30):
            step()
        torch.cuda.synchronize()
        memory.give_back()
    finally:
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(True)
    assert torch.cuda.memory_allocated() <= before
    assert torch.cuda.memory_reserved() <= reserved + MEGABYTE
    assert len(places.places[0].of_streams) <= 2


def test_out_of_memory_says_what_was_asked_and_what_is_free(gpu):
    pool = places.places[0].module.get_default_memory_pool()
    held = torch.ones(MEGABYTE, device="cuda")
    places.places[0].activate()
    pool.set_limit(size=pool.total_bytes() + MEGABYTE)
    try:
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 64\.00 MiB.* free") as caught:
            torch.ones(16 * MEGABYTE, device="cuda")
        assert isinstance(caught.value, RuntimeError) and torch.OutOfMemoryError is torch.cuda.OutOfMemoryError
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 64\.00 MiB"):
            held.repeat(16)
    finally:
        pool.set_limit(size=0)
    assert held.sum().item() == MEGABYTE


class Little:
    """Within the block, a device has so much memory beside what is in use, and what a few blocks hold that can go."""

    def __init__(self, room: int, blocks: int = 40) -> None:
        self.blocks = [torch.ones(MEGABYTE // 4, device="cuda") for _ in range(blocks)]
        self.room, self.pool = room, places.places[0].module.get_default_memory_pool()

    def __enter__(self) -> Little:
        torch.cuda.synchronize()
        gc.collect()
        places.places[0].activate()
        self.pool.free_all_blocks()
        self.pool.set_limit(size=self.pool.total_bytes() + self.room)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.pool.set_limit(size=0)


def deep(leaves):
    """A graph whose nodes need more memory in the backward pass than they give back before: four times as much as a
    leaf has, for each of them."""
    y = leaves[0]
    for w in leaves[1:]:
        y = (y * w).sin() + (leaves[0].expand(4, -1) * w).exp().sum(0)
    return y.sum()


def new_leaves():
    return [torch.full((MEGABYTE // 4,), 0.3 + i / 10, device="cuda", requires_grad=True) for i in range(7)]


@pytest.mark.parametrize("how", ["backward", "grad", "one thread"])
@pytest.mark.parametrize("room", [0, 2, 3])
def test_a_pass_that_ran_out_of_memory_goes_on(gpu, room, how):
    """Half way through, without retain_graph: nothing has changed, and the same call gives what it should."""
    leaves = new_leaves()
    deep(leaves).backward()
    expected = [leaf.grad.tolist() for leaf in leaves]
    leaves = new_leaves()
    loss, failures = deep(leaves), 0
    with Little(room * MEGABYTE // 4) as little, torch.autograd.set_multithreading_enabled(how != "one thread"):
        while True:
            try:
                found = torch.autograd.grad(loss, leaves) if how == "grad" else loss.backward()
                break
            except torch.cuda.OutOfMemoryError as error:
                assert re.search(r"Tried to allocate ([14]\.00 MiB|\d+ bytes)\..* is free", str(error))
                failures += 1
            assert all(leaf.grad is None for leaf in leaves)
            torch.optim.SGD(leaves, lr=0.1).zero_grad()  # as a program may that was refused
            little.blocks.pop()
    assert failures > 1
    found = [leaf.grad for leaf in leaves] if how != "grad" else found
    assert [one.tolist() for one in found] == expected
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_a_pass_that_ran_out_of_memory_adds_once_to_gradients(gpu):
    leaves = new_leaves()
    deep(leaves).backward()
    expected = [(leaf.grad * 2).tolist() for leaf in leaves]
    loss, failures = deep(leaves), 0
    with Little(0) as little:
        while True:
            try:
                loss.backward()
                break
            except torch.cuda.OutOfMemoryError:
                failures += 1
            little.blocks.pop()
    assert failures > 1 and [leaf.grad.tolist() for leaf in leaves] == expected


def test_what_is_left_of_a_pass_is_for_the_same_call(gpu):
    x, w = new_leaves()[:2]
    w.grad = torch.ones_like(w)  # which is added to, before there is no memory for what comes next
    loss = (x.expand(16, -1).exp().sum(0) * w).sum()
    with Little(4 * MEGABYTE) as little:
        with pytest.raises(torch.cuda.OutOfMemoryError, match=r"Tried to allocate 16\.00 MiB"):
            loss.backward()
        little.blocks.clear()
        with pytest.raises(RuntimeError, match=r"ran out of memory.* but this is another one"):
            loss.backward(torch.full((), 2.0, device="cuda"))
        with pytest.raises(RuntimeError, match=r"ran out of memory.* but this is another one"):
            torch.autograd.grad(loss, [x, w])
        w.grad.zero_()
        with pytest.raises(RuntimeError, match="ran out of memory after it had added to the gradient"):
            loss.backward()
    assert len(suspended.passes) == 1
    del loss
    gc.collect()
    assert not suspended.passes  # with the graph goes what is left of the pass


@pytest.mark.parametrize("pin_memory", [False, True])
def test_saved_tensors_in_host_memory(gpu, pin_memory):
    n, steps = MEGABYTE // 4, 16
    x = torch.linspace(0, 1, n, device="cuda", requires_grad=True)
    expected = None
    peaks = {}
    for offload in (False, True):
        x.grad = None
        torch.cuda.synchronize()
        memory.give_back()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        if offload:
            with torch.autograd.graph.save_on_cpu(pin_memory=pin_memory):
                y = chain(x, steps)
                torch.cuda.synchronize()
        else:
            y = chain(x, steps)
        y.sum().backward()
        peaks[offload] = torch.cuda.max_memory_allocated() - before
        if expected is None:
            expected = x.grad.tolist()
        del y
    assert x.grad.tolist() == expected
    assert peaks[True] < peaks[False] * 0.75, peaks


def test_copies_to_the_host_wait_for_what_computes_them_and_back(late, monkeypatch):
    def run():
        x = torch.full((64,), 0.5, device="cuda", requires_grad=True)
        late.delay()
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            y = chain(x * 1, 4)
        y.sum().backward()
        return x.grad.cpu().tolist()

    c = torch.full((64,), 0.5, requires_grad=True)
    chain(c * 1, 4).sum().backward()
    for others_first in (False, True):
        simulated.machine.others_first = others_first
        simulated.poison()
        assert run() == pytest.approx(c.grad.tolist(), rel=1e-6)
        torch.cuda.synchronize()
    if late.real:
        return
    wrong = []
    monkeypatch.setattr(places.Place, "join", lambda self, before, after: None)
    for others_first in (False, True):
        simulated.machine.others_first = others_first
        simulated.poison()
        wrong.append(run() != pytest.approx(c.grad.tolist(), rel=1e-6))
        torch.cuda.synchronize()
    assert any(wrong)
