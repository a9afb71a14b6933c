"""Random programs within a dual level: views, in-place writes and forward mode, beside torch.

The same programs as in programs.py, with statements that make tensors dual and take them apart.  What is compared after
a statement, besides what compare.py compares: every tangent, its layout, and with which others it shares memory.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from typing import Any

import numpy as np

from .compare import array, phrase, shortened, step_differences, unequal
from .exits import OutOfStep
from .programs import Features, Generator, Machine, _overlaps_itself

#: Words of an error that is about forward mode.
REFUSAL = re.compile("forward AD|forward grad|dual Tensor")

#: Differences that end the comparison, by a word that they contain: the name of the exit (exits.py).
NOT_FOLLOWED = {"._version: ": "flags of a tangent", ".requires_grad: ": "flags of a tangent"}

#: What a tangent that has got a name is called and belongs to differs; its values do not.
OWN_AFFAIRS = (".grad_fn: ", ".output_nr: ", ".retains_grad: ", "._is_view: ", "._base: ", ".is_leaf: ")


class DualGenerator(Generator):
    """Writes programs whose tensors may be dual."""

    #: How many leaves require grad.
    recorded: float = 0.0

    def leaf(self) -> str:
        statement = super().leaf().replace(", requires_grad=True", "")
        if self.rng.random() < self.recorded:
            statement = statement[:-1] + ", requires_grad=True)"
        return statement

    def statement(self, machine: Machine) -> str:
        tensors = machine.tensors()
        self.tensors = {name: t for name, t in tensors.items() if name[1:].isdigit()}
        if not self.tensors or (len(self.tensors) < 3 and self.rng.random() < 0.3):
            return self.leaf()
        chance = self.rng.random()
        if chance < 0.2:
            return self.make_dual()
        if chance < 0.27:
            return self.unpack()
        kinds = [self.view] * 9 + [self.write] * 10 + [self.compute] * 6 + [self.leaf, self.fill]
        if self.recorded:
            kinds += [self.backward, self.backward, self.detach]
        make = self.rng.choice(kinds)
        statement = make()
        while make == self.write and _reads_what_it_writes(statement):
            statement = make()
        if make in (self.view, self.write, self.compute) and self.rng.random() < 0.1:
            return f"with torch.no_grad(): {statement}"
        return statement

    def operand(self, name: str, exact: bool = False) -> str:
        for _ in range(5):
            other = super().operand(name, exact)
            if other not in self.tensors or not self.share(name, other):
                return other
        return self.number()

    def make_dual(self) -> str:
        name = self.pick(lambda t: t.numel() > 0 and not _overlaps_itself(t))
        if _overlaps_itself(self.tensors[name]):
            return self.compute()  # one element would have several tangents
        shape, dtype = self.shape(name), "complex128" if self.is_complex(name) else "float64"
        fitting = [
            other
            for other, t in self.tensors.items()
            if tuple(t.shape) == shape and t.dtype == self.tensors[name].dtype and not self.share(name, other)
        ]
        if fitting and self.rng.random() < 0.4:
            tangent = self.rng.choice(fitting)
        elif 0 in shape:
            tangent = f"torch.zeros({shape}, dtype=torch.{dtype})"
        else:
            tangent = f"torch.tensor({self.values(shape, self.is_complex(name))}, dtype=torch.{dtype})"
        return f"{self.new()} = forward.make_dual({name}, {tangent})"

    def unpack(self) -> str:
        return f"{self.new()} = forward.unpack_dual({self.pick()}).{self.rng.choice(['primal', 'tangent', 'tangent'])}"

    def fill(self) -> str:
        name = self.pick(lambda t: not t.requires_grad)
        if self.tensors[name].requires_grad or 0 in self.tensors[name].stride():
            return self.compute()
        return f"{name}.zero_()"

    def backward(self) -> str:
        name = self.pick(lambda t: t.requires_grad)
        return f"{self.root(name)}.backward(retain_graph=True)"


def _reads_what_it_writes(statement: str) -> bool:
    """``t0.mul_(t0)``: torch reads some of it after it has written."""
    names = re.findall(r"\bt\d\b", statement)
    return names.count(names[0]) > 1


class DualMachine(Machine):
    """A machine that runs its program within a dual level, which has to be closed."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.forward = self.names["forward"] = module.autograd.forward_ad
        self.level = self.forward.enter_dual_level()
        #: Has something been copied since the tangents were last looked at?
        self.copied = False

    def run(self, statement: str) -> Exception | None:
        self.copied = self.copied or ".copy_(" in statement or "] = " in statement
        return super().run(statement)

    def close(self) -> None:
        self.forward.exit_dual_level(level=self.level)

    def tangent(self, tensor: Any) -> Any:
        """The tangent, None, or the words with which one is refused."""
        try:
            return self.forward.unpack_dual(tensor).tangent
        except RuntimeError as error:
            return phrase(error)

    def tangents(self) -> dict[str, Any]:
        """All that must agree about tangents."""
        found = {name: self.tangent(t) for name, t in self.tensors().items()}
        seen: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        for name, t in found.items():
            seen[f"tangent of {name}"] = array(t) if hasattr(t, "shape") else t
            if not hasattr(t, "shape") or not t.numel():
                continue
            seen[f"dtype of the tangent of {name}"] = str(t.dtype)
            mine = self.names[name]
            steps, own = (tuple(s for s, n in zip(x.stride(), x.shape) if n > 1) for x in (t, mine))
            seen[f"layout of the tangent of {name}"] = steps == own, t.storage_offset() == mine.storage_offset()
            arrays[name] = t.detach().numpy(force=True)
            sharing = [other for other, memory in arrays.items() if np.shares_memory(memory, arrays[name])]
            seen[f"with whose tangents {name}'s shares memory"] = sharing
        return seen


def step(ours: DualMachine, yours: DualMachine, statement: str, look: bool) -> list[str]:
    """Run one statement in both; say all that differs after it."""
    found = step_differences(ours, yours, statement, look)
    if found and found[0].startswith(f"{ours.module.__name__}: ") and REFUSAL.search(found[0]):
        raise OutOfStep("refused by torch" if f"{ours.module.__name__}: None" in found[0] else "refused here")
    found = [text for text in found if not any(word in text for word in OWN_AFFAIRS)]
    reshaped = re.match(r"(t\d)\.(un)?(squeeze|transpose|swapdims|swapaxes|t)_\(", statement)
    if reshaped and any(".shape: " in text and not text.startswith(reshaped[1]) for text in found):
        raise OutOfStep("misfit")  # the tangent of one is, in torch, the tangent of another
    mine, theirs = (ours.tangents(), yours.tangents()) if look else ({}, {})
    for text in unequal(ours, yours, mine, theirs):
        what = text.partition(": ")[0]
        fault = _torchs_fault(yours, what, mine.get(what), theirs.get(what))
        if fault is not None:
            raise OutOfStep(fault)
        found.append(text)
    exits = [next((name for word, name in NOT_FOLLOWED.items() if word in text), None) for text in found]
    if found and None not in exits:
        raise OutOfStep(exits[0])
    if look and not found:
        yours.copied = False
    return found


def _torchs_fault(yours: DualMachine, what: str, mine: Any, theirs: Any) -> str | None:
    """Where torch breaks its own rules about tangents, what follows is not to be compared: the name of the exit."""
    if "shares memory" in what and yours.copied and set(mine) < set(theirs):
        return "shared by a copy"
    if what.startswith("tangent of") and yours.copied and not isinstance(mine, str):
        return "shared by a copy"  # and written to since
    pairs = [(tensor, yours.tangent(tensor)) for tensor in yours.tensors().values()]
    if any(hasattr(t, "shape") and (t.dtype != x.dtype or t.shape != x.shape) for x, t in pairs):
        return "misfit"
    return None


def run_dual(
    write: Any, mine: Any, theirs: Any, steps: int, every_step: bool, exits: Counter[str]
) -> tuple[list[str], str | None]:
    """Run a program, written by ``write(machine, number)`` a statement at a time; where the two libraries differ."""
    ours, yours = DualMachine(mine), DualMachine(theirs)
    program: list[str] = []
    try:
        for number in range(steps):
            program.append(write(ours, number))
            try:
                found = step(ours, yours, program[-1], every_step or number == steps - 1)
            except OutOfStep as reason:
                exits[reason.name] += 1
                break
            if found:
                return program, "\n    ".join([f"statement {number}: {program[-1]}", *found])
    finally:
        ours.close()
        yours.close()
    return program, None


def dual_seed(seed: int, mine: Any, theirs: Any, exits: Counter[str], steps: int = 12) -> str | None:
    """One random program: None, or the shortest program that shows the difference, and the difference."""
    rng = random.Random(seed)
    every_step = rng.random() < 0.5
    generator = DualGenerator(rng, Features(inference=False, hooks=False, saved_hooks=False, odd=False))
    generator.recorded = rng.choice([0.0, 0.0, 0.5])
    program, found = run_dual(lambda machine, _: generator.statement(machine), mine, theirs, steps, every_step, exits)
    if found is None:
        return None

    def differs(p: list[str]) -> str | None:
        return run_dual(lambda _, number: p[number], mine, theirs, len(p), every_step, Counter())[1]

    short = shortened(program, lambda p: differs(p) is not None)
    return f"# seed {seed}, looking {'after every step' if every_step else 'at the end'}\n" + "\n".join(
        [*short, f"-> {differs(short) or found}"]
    )
