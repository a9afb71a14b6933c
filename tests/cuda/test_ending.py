"""Programs end in good order, whatever devices are still doing: each in an interpreter of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAD = """
import faulthandler, gc, os, sys, threading, weakref
faulthandler.enable()
sys.path[:0] = ["tests", "src"]
from gpu import simulated
from retrograd.arrays import places
if os.environ.get("RETROGRAD_GPU") == "1":
    places.start(None, logical=2)
else:
    places.start(simulated.library(2))
import retrograd as torch
"""
PROGRAMS = {
    "streams that go before their events": """
for _ in range(200):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        x = torch.ones(1 << 16, device="cuda") * 2
        event = side.record_event()
    x.record_stream(torch.cuda.current_stream())
    del side, x
    gc.collect()
event.synchronize()
""",
    "copies that are under way": """
kept = [torch.ones(1 << 22).pin_memory().to("cuda", non_blocking=True) for _ in range(8)]
back = [x.to("cpu", non_blocking=True) for x in kept]
""",
    "tensors of threads": """
def work():
    global held
    x = torch.ones(1 << 16, device="cuda", requires_grad=True)
    with torch.cuda.stream(torch.cuda.Stream()):
        held = x * 2
    held.sum().backward()
threads = [threading.Thread(target=work) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
""",
    "a thread that is still computing": """
def work():
    while True:
        x = torch.ones(1 << 12, device="cuda", requires_grad=True)
        (x * x).sum().backward()
threading.Thread(target=work, daemon=True).start()
torch.ones(8, device="cuda").sum().item()
""",
    "circles of tensors": """
class Node: pass
for _ in range(50):
    a, b = Node(), Node()
    a.other, b.other = b, a
    a.x = torch.ones(1 << 14, device="cuda", requires_grad=True)
    b.y = a.x.exp()
    b.y.record_stream(torch.cuda.Stream())
""",
    "the pool freed in a thread at the end": """
import atexit
x = torch.ones(1 << 20, device="cuda")
with torch.cuda.stream(torch.cuda.Stream()):
    y = x * 2
x.record_stream(torch.cuda.Stream())
def free():
    global x, y
    def inside():
        global x, y
        x = y = None
        torch.cuda.empty_cache()
    thread = threading.Thread(target=inside)
    try:
        thread.start(); thread.join()
    except RuntimeError:  # no threads at shutdown
        inside()
atexit.register(free)
""",
    "a pass that was left half way": """
x = torch.ones(8, device="cuda", requires_grad=True)
def fail(grad): raise KeyError("stop")
y = x * 2
y.register_hook(fail)
try: y.sum().backward()
except KeyError: pass
os.environ["kept"] = "1"; sys.kept = y
""",
}


#: These run everywhere, so that the programs are known to be right; what may end badly is CUDA.
EVERYWHERE = ("tensors of threads",)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_ends(name: str) -> None:
    if os.environ.get("RETROGRAD_GPU") != "1" and name not in EVERYWHERE:
        pytest.skip("a simulated device has nothing that could end badly")
    done = subprocess.run(
        [sys.executable, "-c", HEAD + PROGRAMS[name] + "\nprint('done')"], capture_output=True, text=True, cwd=ROOT,
        timeout=120, env={**os.environ, "PYTHONPATH": "src"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "done\n" and not done.stderr, done.stderr[-2000:]
