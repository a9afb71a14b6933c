"""Runs a program in two libraries side by side and says where they differ; shortens programs that do."""

from __future__ import annotations

import random
import re
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .exits import OutOfStep
from .oracle import Oracle
from .programs import Features, Generator, Machine, NotInThisMachine

#: What an error must say, too, if torch says it.
PHRASES = [
    "a leaf Variable that requires grad is being used in an in-place operation",
    "a view of a leaf Variable that requires grad is being used in an in-place operation",
    "is the output of a function that returns multiple views",
    "is a view of a view which was created in no_grad mode and",
    "is a view of a view which was created in inference mode and",
    "A view was created in no_grad mode and is being modified inplace with grad mode enabled",
    "A view was created in no_grad mode and its base or another view of its base has been modified inplace with grad",
    "A view was created in inference mode and is being modified inplace in normal mode",
    "A view was created in inference mode and its base or another view of its base has been modified inplace",
    "is a view and is being modified inplace",
    "is a view and its base or another view of its base has been modified inplace",
    "Inplace update to inference tensor outside InferenceMode is not allowed",
    "Inference tensors cannot be saved for backward",
    "Inference tensors do not track version counter",
    "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed",
    "has been modified by an inplace operation",
    "Trying to backward through the graph a second time",
    "saved tensor that has been detached in-place",
    "Can't detach views in-place",
    "you can only change requires_grad flags of leaf variables",
    "does not require grad and does not have a grad_fn",
    "One of the differentiated Tensors does not require grad",
    "functions with out=... arguments don't support automatic differentiation",
    "can't retain_grad on Tensor that has requires_grad=False",
    "cannot register a hook on a tensor that doesn't require gradient",
    "view size is not compatible",
    "Trying to backward outside of the 'allow_mutation_on_saved_tensors' context",
    "can't be cast to the desired output type",
]

NAME = re.compile(r"\bt\d\b")
UNUSABLE = (
    "Inference tensors cannot be saved",
    "modified by an inplace operation",
    "through the graph a second time",
    "Trying to backward outside",
)
LEAF = "a leaf Variable that requires grad is being used in an in-place operation"
OVERLAP = re.compile("refers? to a single memory location")

#: Torch refuses this only after it has written; here a refused operation has changed nothing.
CHANGED_ANYWAY = "Inplace update to inference tensor outside InferenceMode"


STRIDES = re.compile("Tensor must have a (last dimension with|stride)|must be divisible by 2 to view|must be 1 to view")
OTHER_SHAPE = "returned an invalid gradient"
ASSERT = "INTERNAL ASSERT"

#: What is checked late in one library and early in the other.
LATE = [
    CHANGED_ANYWAY,
    "can't be cast to the desired output type",
    "can't retain_grad on Tensor",
    "The expanded size of the tensor",
    "the number of sizes provided",
    "view size is not compatible",
    "has been modified by an inplace operation",
    "doesn't match the broadcast shape",
    "out of bounds for",
    "cannot be applied to a 0-dim tensor",
    "Tensor must have a",
    "must match the size of tensor",
]


def both_refused(mine: Exception | None, theirs: Exception | None) -> bool:
    """Were there two reasons to refuse, of which torch found the other first?"""
    errors = (mine, theirs)
    return None not in errors and any(late in str(error) for late in LATE for error in errors)


def phrase(error: Exception | None) -> str | None:
    """The key phrase of an error, or its type alone."""
    if error is None:
        return None
    text = str(error)
    for known in PHRASES:
        if known in text:
            return f"{type(error).__name__}: {known}"
    return type(error).__name__


# --------------------------------------------------------------------------------------------------------- observing


def array(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().numpy(force=True), copy=True)


def attempt(tensor: Any, attribute: str) -> Any:
    """An attribute, or the phrase of the error that reading it raises."""
    try:
        return getattr(tensor, attribute)
    except Exception as error:
        return phrase(error)


def observe(machine: Machine) -> dict[str, Any]:
    """Everything about a machine's tensors that must agree, as a flat dictionary: 't0._version' -> 3."""
    tensors = machine.tensors()
    by_id = {id(t): name for name, t in tensors.items()}
    seen: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, t in tensors.items():
            base = t._base
            grad_fn = attempt(t, "grad_fn")
            seen[f"{name}.shape"] = tuple(t.shape)
            if t.numel():
                seen[f"{name}.stride"] = tuple(s for s, n in zip(t.stride(), t.shape) if n > 1)
            seen[f"{name}.dtype"] = str(t.dtype)
            seen[f"{name}.bits"] = t.is_conj(), t.is_neg()
            seen[f"{name}.values"] = array(t)
            if not machine.saw_inference:  # what torch computes from inference tensors has versions of its own
                seen[f"{name}._version"] = attempt(t, "_version")
            seen[f"{name}.requires_grad"] = attempt(t, "requires_grad")
            seen[f"{name}.is_leaf"] = attempt(t, "is_leaf")
            seen[f"{name}._is_view"] = t._is_view()
            seen[f"{name}._base"] = None if base is None else by_id.get(id(base), "nameless")
            seen[f"{name}.is_inference"] = t.is_inference()
            if grad_fn is None or isinstance(grad_fn, str):
                seen[f"{name}.grad_fn"] = grad_fn
            else:
                seen[f"{name}.grad_fn"] = plain_name(grad_fn.name())
                seen[f"{name}.output_nr"] = t.output_nr
                seen[f"{name}.retains_grad"] = t.retains_grad
            grad = attempt(t, "grad")
            seen[f"{name}.grad"] = array(grad) if hasattr(grad, "shape") else grad
        for i, grad in enumerate(machine.log):
            seen[f"log[{i}]"] = None if grad is None else array(grad)
    return seen


def leads_nowhere(t: Any) -> bool:
    """A view from no_grad, which requires grad because its base does but has no way to it."""
    return t._is_view() and t.requires_grad and not t._has_edge_() and not t._grad_meta_.requires_grad


#: After ``base.transpose_()`` and its like, views of another dtype find their place in the base by other steps.
BY_PLACE = ("AsStridedBackward", "ViewAsComplexBackward", "ViewAsRealBackward")


def plain_name(name: str) -> str:
    return re.sub(r"\d+$", "", name.replace("torch::autograd::", "").replace("ReshapeAlias", "View"))


def same(mine: Any, theirs: Any) -> bool:
    if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
        if mine.shape != theirs.shape:
            return False
        return bool(np.allclose(mine, theirs, rtol=1e-8, atol=1e-8, equal_nan=True))
    if isinstance(mine, np.ndarray) or isinstance(theirs, np.ndarray):
        return False
    return mine == theirs or (mine in BY_PLACE and theirs in BY_PLACE)


# ---------------------------------------------------------------------------------------------------------- comparing


def difference(program: list[str], mine: Any, theirs: Any, every_step: bool = True) -> str | None:
    """Run a program in two libraries; say where they first differ."""
    ours, yours = Machine(mine), Machine(theirs)
    for number, statement in enumerate(program):
        where = f"statement {number}: {statement}"
        try:
            found = step_differences(ours, yours, statement, every_step or number == len(program) - 1)
        except OutOfStep:
            return None
        if found:
            return "\n    ".join([where, *found])
    return None


def step_differences(ours: Machine, yours: Machine, statement: str, look: bool = True) -> list[str]:
    """Run one statement in both; say all that differs after it."""
    my_error, your_error = ours.run(statement), yours.run(statement)
    ours.saw_inference = yours.saw_inference = ours.saw_inference or "inference_mode" in statement
    ours.saw_function = ours.saw_function or "Write(" in statement
    if ours.saw_inference and ".view(torch." in statement:
        raise OutOfStep("inference view")
    for text, name in ((OTHER_SHAPE, "other shape"), (ASSERT, "internal assert")):
        if text in str(your_error):
            raise OutOfStep(name)
    if phrase(my_error) != phrase(your_error):
        if STRIDES.search(f"{my_error} {your_error}"):
            raise OutOfStep("order in memory")
        if OVERLAP.search(f"{my_error} {your_error}"):
            raise OutOfStep("overlap")
        both = None not in (my_error, your_error)
        if both and "modified inplace" in f"{my_error} {your_error}" and len(set(NAME.findall(statement))) > 1:
            raise OutOfStep("two reasons")
    ours.saw_sink = ours.saw_sink or any(leads_nowhere(t) for t in ours.tensors().values())
    if my_error is None and LEAF in str(your_error):
        target = ours.names.get(NAME.findall(statement.rpartition("): ")[2])[0])
        if target is not None and target._is_view():
            raise OutOfStep("view as leaf")
    if my_error is None and any(text in str(your_error) for text in UNUSABLE):
        if "inputs=[" in statement or "autograd.grad(" in statement:
            raise OutOfStep("checked too much")
    if my_error is None and your_error is not None and ours.saw_sink:
        if "backward(" in statement or "autograd.grad(" in statement:
            raise OutOfStep("checked too much")
    if ("view size is not compatible" in str(my_error)) != ("view size is not compatible" in str(your_error)):
        raise OutOfStep("order in memory")
    if phrase(my_error) != phrase(your_error) and not both_refused(my_error, your_error):
        return [f"{ours.module.__name__}: {my_error!r}\n    {yours.module.__name__}: {your_error!r}"]
    if my_error is not None and CHANGED_ANYWAY in str(my_error):
        raise OutOfStep("refused too late")
    if my_error is not None and your_error is not None:  # torch makes histories of views anew before it refuses
        observe(ours), observe(yours)
    if look:
        my_view, your_view = observe(ours), observe(yours)
        for what in my_view:
            if what.endswith(".stride") and my_view[what.replace("stride", "_base")] in (None, "nameless"):
                if not same(my_view[what], your_view.get(what)):
                    raise OutOfStep("order in memory")
        if any(isinstance(value, str) and value == "RuntimeError" for value in your_view.values()):
            raise OutOfStep("nameless error")
        if any(np.iscomplexobj(value) and np.isnan(value).any() for value in your_view.values()):
            raise OutOfStep("half a NaN")
        found = unequal(ours, yours, my_view, your_view)
        if ours.saw_function and found and all(re.match(r"t\d\.grad: .* None$", text, re.S) for text in found):
            raise OutOfStep("forgotten gradient")
        return found
    return []


def unequal(ours: Machine, yours: Machine, my_view: dict[str, Any], your_view: dict[str, Any]) -> list[str]:
    """Whatever was seen otherwise in one library than in the other, in words."""
    return [
        f"{what}: {ours.module.__name__} {value!r}, {yours.module.__name__} {your_view.get(what)!r}"
        for what, value in {**your_view, **my_view}.items()
        if not same(value, your_view.get(what)) or (what in my_view) != (what in your_view)
    ]


def run_seed(
    seed: int, mine: Any, theirs: Any, exits: Counter[str], steps: int = 12, features: Features | None = None
) -> tuple[list[str], str | None, bool]:
    """Write and run one program; the program, where the two differ, and whether it looked after every step.

    `exits` counts why programs are not followed to their end.
    """
    rng = random.Random(seed)
    every_step = rng.random() < 0.5  # looking at a view makes its history anew: half the programs only look at the end
    generator = Generator(rng, features or Features())
    ours, yours = Machine(mine), Machine(theirs)
    program: list[str] = []
    for number in range(steps):
        statement = generator.statement(ours)
        program.append(statement)
        try:
            found = step_differences(ours, yours, statement, every_step or number == steps - 1)
        except OutOfStep as reason:
            exits[reason.name] += 1
            break
        if found:
            return program, "\n    ".join(found), every_step
    return program, None, every_step


def shortened(program: list[str], fails: Callable[[list[str]], bool]) -> list[str]:
    """The program without the statements that the failure does not need."""
    changed = True
    while changed:
        changed = False
        for size in (4, 2, 1):
            i = 0
            while i < len(program):
                shorter = program[:i] + program[i + size :]
                if shorter and fails(shorter):
                    program, changed = shorter, True
                else:
                    i += 1
    return program


# --------------------------------------------------------------------------------------------------- with the oracle

#: What the oracle can tell about.
KNOWN = Features(
    complex=False, inference=False, hooks=False, create_graph=False, odd=False, custom=False, inner_gradients=False
)  # fmt: skip


def oracle_seed(seed: int, mine: Any, steps: int = 12) -> tuple[list[str], str | None]:
    """Write a program and run it against the oracle; the program, and where they differ."""
    generator = Generator(random.Random(seed), KNOWN)
    return _with_oracle(mine, lambda machine, number: generator.statement(machine) if number < steps else None)


def oracle_difference(program: list[str], mine: Any) -> str | None:
    """The same for a program that is written already."""
    return _with_oracle(mine, lambda machine, number: program[number] if number < len(program) else None)[1]


def _with_oracle(mine: Any, write: Callable[[Machine, int], str | None]) -> tuple[list[str], str | None]:
    ours, oracle = Machine(mine), Machine(Oracle())
    program: list[str] = []
    while (statement := write(ours, len(program))) is not None:
        program.append(statement)
        error = ours.run(statement)
        if error is not None:
            if any(word in statement for word in ("] +=", "] *=", "backward")):
                break  # half of it may have happened
            continue  # what is refused has changed nothing
        try:
            error = oracle.run(statement)
        except NotInThisMachine:
            break
        if error is not None:
            return program, f"only the oracle refuses: {error!r}"
        found = _oracle_view(ours, oracle)
        if found is not None:
            return program, found
    return program, None


def _oracle_view(ours: Machine, oracle: Machine) -> str | None:
    """Values and gradients that are not the oracle's."""
    for name, t in ours.tensors().items():
        expected = oracle.names[name]
        if not same(array(t), expected.values):
            return f"{name}: {array(t)!r} instead of {expected.values!r}"
        grad = t._grad_meta_.grad if t._grad_meta_ is not None else None
        mine = np.zeros(t.shape) if grad is None else array(grad)
        wanted = np.zeros(expected.shape) if expected.grad is None else expected.grad
        if not same(mine, wanted):
            return f"{name}.grad: {mine!r} instead of {wanted!r}"
    return None
