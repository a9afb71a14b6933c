"""What captured programs share: threads for long loops, memory that kernels get back."""

import functools
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from numpy._core import multiarray

import retrograd as torch
from retrograd.capture import c_code
from retrograd.capture.compiling import compiler
from retrograd.capture.runtime import runtime

pytestmark = pytest.mark.skipif(compiler() is None, reason="there is no C compiler")


@pytest.fixture
def three_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def long_loops(x, row):
    """A chain with a row for all, sums, a strided copy, a copy to a part."""
    y = (x * 2 + 1) * x
    z = torch.maximum(y - row, x)
    turned = z.t().contiguous()
    padded = torch.zeros(x.shape[0] + 1, x.shape[1])
    padded[1:] = z
    return y, z, z.sum(0), turned, padded


@pytest.mark.usefixtures("three_threads")
def test_threads_share_long_loops():
    captured = torch.capture(long_loops, backend="native")
    x, row = torch.randn(301, 503), torch.randn(503)
    for _ in range(4):
        x = torch.randn(301, 503)
        expected, found = long_loops(x, row), captured(x, row)
        for one, two in zip(expected, found, strict=True):
            assert torch.equal(one, two)
    assert captured._last.c_code.shared >= 3
    assert "shared among threads" in captured.explain()


@pytest.mark.usefixtures("three_threads")
def test_several_threads_at_once_and_a_fork():
    """They use a tensor in common while one of them records, and replay at the same time."""
    row = torch.randn(503)
    failures = []

    def run():
        captured = torch.capture(long_loops, backend="native")
        for number in range(12):
            x = torch.full((301, 503), float(number))
            if not all(torch.equal(a, b) for a, b in zip(captured(x, row), long_loops(x, row), strict=True)):
                failures.append(number)
        return captured

    captured = run()

    def seen():
        try:
            run()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=seen) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:  # no workers are left here, and new ones are started
            try:
                x = torch.ones(301, 503)
                same = all(torch.equal(a, b) for a, b in zip(captured(x, row), long_loops(x, row), strict=True))
                os._exit(0 if same else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_tensor_of_several_threads_while_one_of_them_records(request):
    """A recording ends when all tensors have their arrays back, not before: threads change often here."""
    request.addfinalizer(functools.partial(sys.setswitchinterval, sys.getswitchinterval()))
    sys.setswitchinterval(1e-5)
    row, failures = torch.randn(50), []

    def step(x, row):
        y = (x * row + 1).exp()
        return y.sum(), y.tanh()

    def run():
        try:
            for _ in range(6):
                captured = torch.capture(step, backend="plain")
                for number in range(4):
                    x = torch.full((30, 50), number / 10)
                    if not all(torch.equal(a, b) for a, b in zip(captured(x, row), step(x, row), strict=True)):
                        failures.append(number)
        except Exception as error:
            failures.append(error)

    for _ in range(4):
        threads = [threading.Thread(target=run) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_short_loops_are_not_shared():
    captured = torch.capture(lambda x: x * 2 + 1, backend="native")
    for _ in range(3):
        captured(torch.ones(c_code.WORTH_THREADS // 2))
    assert captured._last.c_code.shared == 0


def test_kernels_get_their_memory_back():
    """From the second replay on, what kernels make lies where it lay before; outside, NumPy hands out memory itself."""
    shared = runtime()
    assert shared is not None
    assert shared.has_memory
    places = []

    class Look(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.sort(0).values

    captured = torch.capture(lambda x: Look.apply(x).sum(), backend="plain")
    x = torch.randn(40_000)
    for _ in range(3):
        captured(x)
    entry = captured._last
    assert entry.memory.shared is shared

    def look():
        array = np.empty(40_000)
        places.append((multiarray.get_handler_name(array), array.__array_interface__["data"][0]))

    inside = entry.memory.around(look)
    for _ in range(3):
        inside()
    assert {name for name, _ in places} == {"retrograd_capture"}
    assert len({place for _, place in places[1:]}) == 1
    assert multiarray.get_handler_name(np.empty(40_000)) == "default_allocator"
    with pytest.raises(ZeroDivisionError):
        entry.memory.around(lambda: 1 // 0)()
    assert multiarray.get_handler_name(np.empty(3)) == "default_allocator"


def test_shared_memory_outlives_programs():
    """An array that a program has made stays whole when the program is gone."""
    captured = torch.capture(lambda x: x.sort(0).values, backend="plain")
    for _ in range(3):
        captured(torch.randn(40_000))
    kept = captured._last.memory.around(lambda: np.arange(50_000.0))()
    grown = captured._last.memory.around(lambda: np.zeros(10))()
    del captured
    gc.collect()
    assert kept.sum() == 49_999 * 25_000
    grown.resize(100_000, refcheck=False)
    assert not grown.any()
    assert multiarray.get_handler_name(grown) == "retrograd_capture"


_FREED = """
import gc, os
import numpy as np
import retrograd as torch

def megabytes():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") >> 20

captured = torch.capture(lambda x: x.sort(0).values, backend="plain")
for _ in range(3):
    captured(torch.randn(40_000))
kept = captured._last.memory.around(lambda: np.ones(1 << 23))()
del captured
gc.collect()
before = megabytes()
del kept
assert before - megabytes() > 50
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the size of a process is read from /proc")
def test_what_is_freed_after_the_last_program_goes_back_to_the_system():
    subprocess.run([sys.executable, "-c", _FREED], check=True)
