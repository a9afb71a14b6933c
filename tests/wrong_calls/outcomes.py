"""What comes of wrong calls: each library makes them in child processes, which may crash, hang or run out of memory.

A child that is lost costs the call that it was at; another goes on behind it.
"""

from __future__ import annotations

import os
import pickle
import re
import resource
import select
import signal
import struct
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import retrograd
from wrong_calls.mutations import Call, run

#: Seconds of the processor that a call may take in Python, and those of waiting after which its process is ended.
SLOW, LOST = 2.0, 30.0
#: Memory that the calls of a child may take.
MEMORY = 2 << 30

#: Exceptions with which a call is refused. (OverflowError is what torch raises for a number that no element can hold.)
KINDS = (
    "TypeError", "RuntimeError", "ValueError", "IndexError", "NotImplementedError", "_LinAlgError", "OverflowError",
)  # fmt: skip
#: What Python and NumPy say of their own accord: the message of an accident, not of a check.
INTERNALS = re.compile(
    r"(?<!\w)_(numbers|memory|grad_meta|edge|viewed)_\b|numpy(?!\(\))|ndarray|ufunc|\bnp\.|NoneType' object|"
    r"NoneType and|object has no attribute|has no attribute '|"
    r"object is not (subscriptable|iterable|callable|reversible)|"
    r"not supported between instances|cannot unpack|to unpack \(|has no len\(\)|must be real number|"
    r"cannot be interpreted as an integer|Python int too large|Python integer|too large to convert to|"
    r"int too big to convert to|Maximum allowed|array is too big|negative dimensions are not|"
    r"can't multiply sequence|only integer scalar arrays|(list|tuple|string|range) indices must be|"
    r"could not be broadcast|setting an array|"
    r"unhashable|sequence item|is not in list|not in tuple|cannot reshape|axes don't match|axis \d|axis=\d|an axis|"
    r"an integer is required|integer division|bad operand type|can't convert|could not convert string|"
    r"invalid literal|float\(\) argument|int\(\) argument|complex\(\) (first|second|arg)|arrays? must|[cC]annot cast|"
    r"Cannot interpret|data type .* not understood|did not understand|dtype\('|not a sequence|"
    r"concatenate str|can only concatenate|descriptor '|zero-size array|dimension mismatch|object too deep|"
    r"\barray\b.*\bdimension|a bytes-like|not JSON|expected at (least|most) \d argument|argument of type|"
    r"slice indices|isinstance\(\) arg|unsupported format|cannot convert|divmod|division by zero|"
    r"object of type|not iterable"
)
#: Python's own messages about calls, which name the function of ours that they reached.
CALLING = re.compile(
    r"(\w[\w.<>]*)\(\) (missing|takes|got an unexpected|got multiple|got some)|unexpected keyword argument|"
    r"missing \d+ required|multiple values for"
)
#: What Python says in torch's own code, besides: no check, and so nothing that ours should be like.
ACCIDENTS = re.compile(
    r"(tuple|list) index out of range|Boolean value of Tensor|only one element tensors can be converted|"
    r"unsupported operand type|INTERNAL ASSERT|internal error|static_cast"
)
#: What operators say, in torch too.
OPERAND = re.compile(r"unsupported operand type\(s\) for")


@dataclass
class Outcome:
    """What a library did: `kind` is "ok", the name of an exception, "hang" or "crash"."""

    kind: str
    message: str = ""
    changed: bool = False

    @property
    def refused(self) -> bool:
        return self.kind != "ok"


def outcomes(torch: Any, calls: list[Call]) -> list[Outcome]:
    """One for each call."""
    torch.broadcast_shapes((2,), (1,))  # torch imports what that needs when it is first called
    found: list[Outcome] = []
    while len(found) < len(calls):
        found += _in_a_child(torch, calls[len(found) :])
    return found


def _in_a_child(torch: Any, calls: list[Call]) -> list[Outcome]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            _work(torch, calls, writing)
        finally:
            os._exit(0)
    os.close(writing)
    found = list(_read(reading, child))
    os.close(reading)
    _, status = os.waitpid(child, 0)
    if len(found) < len(calls):
        lost = "hang" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL else "crash"
        found.append(Outcome(lost, f"the process ended with status {status}"))
    return found


def _read(pipe: int, child: int) -> Iterator[Outcome]:
    """What the child reports; it is ended if it says nothing for too long."""
    held = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], LOST)
        if not ready:
            os.kill(child, signal.SIGKILL)
            return
        piece = os.read(pipe, 1 << 16)
        if not piece:
            return
        held += piece
        while len(held) >= 4 and len(held) >= 4 + (size := struct.unpack("I", held[:4])[0]):
            yield Outcome(*pickle.loads(held[4 : 4 + size]))
            held = held[4 + size :]


class Slow(BaseException):
    """A call takes too long."""


def _work(torch: Any, calls: list[Call], pipe: int) -> None:
    warnings.simplefilter("ignore")
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    with open("/proc/self/statm") as file:
        now = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, now + MEMORY))

    def ring(*_: Any) -> None:
        raise Slow

    signal.signal(signal.SIGPROF, ring)
    for call in calls:
        report = pickle.dumps(_make(torch, call))
        os.write(pipe, struct.pack("I", len(report)) + report)


def _make(torch: Any, call: Call) -> tuple[str, str, bool]:
    function, tensors = run(torch, call)
    before = [_state(tensor) for tensor in tensors]
    signal.setitimer(signal.ITIMER_PROF, SLOW)
    try:
        function()
    except Slow:
        return "hang", "", False
    except BaseException as error:
        signal.setitimer(signal.ITIMER_PROF, 0)
        changed = any(not _same(one, _state(tensor)) for one, tensor in zip(before, tensors, strict=True))
        # A name in the message that is not the exception's own would be a second way to look at it.
        return type(error).__name__, str(error)[:400], changed
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return "ok", "", False


def _state(tensor: Any) -> tuple:
    try:
        values = tensor.detach().numpy().copy()
    except Exception:  # torch's resize_ leaves a tensor without memory behind
        values = None
    return values, tensor._version, tensor.dtype, tensor.requires_grad, id(tensor.grad_fn)


def _same(before: tuple, after: tuple) -> bool:
    one, other = before[0], after[0]
    if one is None or other is None:
        return one is other
    return before[1:] == after[1:] and one.shape == other.shape and one.tobytes() == other.tobytes()


def leaks(call: Call, ours: Outcome) -> str:
    """Why an outcome of ours shows what is inside, or nothing."""
    if ours.kind in ("ok", "hang"):
        return ""
    if ours.kind not in KINDS:
        return f"{ours.kind}: {ours.message}"
    special = call.name.rpartition(".")[2].startswith("__")
    if INTERNALS.search(ours.message) or (OPERAND.search(ours.message) and not special):
        return f"{ours.kind}: {ours.message}"
    return ""


def is_bare(call: Call, ours: Outcome) -> bool:
    """Python's own message about a call, of a function that is not the one that was called."""
    match = CALLING.search(ours.message) if ours.kind == "TypeError" else None
    return match is not None and (match[1] or "").rpartition(".")[2] != call.name.rpartition(".")[2]


def differs(theirs: Outcome, ours: Outcome) -> str:
    """How an outcome of ours differs from torch's: "accepted", "refused", "other type" or nothing.

    Where torch did not check, but stumbled over the argument later on, another type of ours is no difference.
    """
    if theirs.kind in ("hang", "crash"):
        return ""
    if theirs.refused != ours.refused:
        return "accepted" if theirs.refused else "refused"
    if theirs.kind not in KINDS or theirs.kind == ours.kind:
        return ""
    accident = INTERNALS.search(theirs.message) or ACCIDENTS.search(theirs.message)
    return "" if accident else "other type"


#: What can be wrong with an outcome of ours: it shows internals; it is Python's message about a call of something else;
#: torch refuses and we do not; the reverse; another exception; an argument was changed; there is no end to it.
CLASSES = ("leak", "bare", "accepted", "refused", "other type", "changed", "lost")


def classes(call: Call, theirs: Outcome | None, ours: Outcome) -> list[str]:
    """What is wrong with an outcome of ours, beside torch's if there is one."""
    found = ["leak"] * bool(leaks(call, ours)) + ["bare"] * is_bare(call, ours)
    found += ["changed"] * ours.changed + ["lost"] * (ours.kind in ("hang", "crash"))
    return found + ([differs(theirs, ours)] if theirs and differs(theirs, ours) else [])


def compared(torch: Any, calls: list[Call]) -> Iterator[tuple[Call, Outcome, Outcome]]:
    """The calls, with what torch does and what we do."""
    return zip(calls, outcomes(torch, calls), outcomes(retrograd, calls), strict=True)
