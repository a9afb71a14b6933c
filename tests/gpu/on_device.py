"""A sample of the database on a device and on the CPU: values, gradients, tangents and second derivatives side by
side."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import retrograd
import retrograd.autograd.forward_ad as fwAD
from reference import random_cotangent
from retrograd.arrays import places
from retrograd.arrays.philox import Philox
from retrograd.kernels import random as kernels_random
from retrograd.kernels import storage_root
from retrograd.tensor import wrap
from samples import Op, Sample
from samples.spec import laid_out


def put(array: np.ndarray, index: int = 0) -> Any:
    """A tensor on a device that lies in its memory as `array` does."""
    place = places.places[index]
    root = storage_root(array)
    if root is array or not array.size:
        return wrap(place.from_host(array))
    offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    held = place.from_host(root)
    return wrap(held.restride(array.shape, array.strides, offset, array.dtype))


class OnDevice:
    """The package, with a device for the CPU: what is made of numbers lies there."""

    def __init__(self, index: int = 0) -> None:
        self.index = index

    def __getattr__(self, name: str) -> Any:
        return getattr(retrograd, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        return put(array, self.index)


class OnCPU:
    def __getattr__(self, name: str) -> Any:
        return getattr(retrograd, name)


def flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


def is_tensor(thing: Any) -> bool:
    return isinstance(thing, retrograd.Tensor)


def numbers(tensor: Any) -> np.ndarray:
    """A tensor's numbers, copied to the host."""
    if not is_tensor(tensor):
        return np.asarray(tensor)
    tensor = tensor.detach().resolve_conj().resolve_neg()
    if tensor.layout is not retrograd.strided:
        tensor = tensor.to_dense()
    return np.array(tensor.cpu().numpy())


class Side:
    """One sample computed in one of the two."""

    def __init__(self, module: Any, op: Op, sample: Sample, device: Any) -> None:
        self.module, self.op, self.sample, self.device = module, op, sample, device
        retrograd.manual_seed(0)
        self.built = sample.build(module)
        self.leaves = self.built.leaves
        with retrograd.device(device):
            self.outputs = flat(op.call(module, self.built.args, self.built.kwargs))
        self.roots = [out for out in self.outputs if is_tensor(out) and out.requires_grad]

    def cotangents(self, requires_grad: bool = False) -> list[Any]:
        rng = np.random.default_rng(self.sample.seed + 1)
        made = []
        for root in self.roots:
            dtype = np.dtype(str(root.dtype).removeprefix("torch."))
            made.append(self.module.from_numpy(random_cotangent(rng, tuple(root.shape), dtype)))
        return [one.requires_grad_() for one in made] if requires_grad else made

    def gradients(self, create_graph: bool = False, cotangents: Any = None) -> list[Any]:
        if not self.roots:
            return [None] * len(self.leaves)
        cotangents = self.cotangents() if cotangents is None else cotangents
        with retrograd.device(self.device):
            grads = retrograd.autograd.grad(
                self.roots, self.leaves, cotangents, create_graph=create_graph, allow_unused=True, retain_graph=True
            )
        return list(grads)

    def seconds(self) -> list[Any]:
        cotangents = self.cotangents(requires_grad=True)
        grads = self.gradients(create_graph=True, cotangents=cotangents)
        rng = np.random.default_rng(self.sample.seed + 2)
        used, seeds = [], []
        for grad in grads:
            shape, dtype = ((), np.dtype(float)) if grad is None else (tuple(grad.shape), grad._memory_.dtype)
            drawn = random_cotangent(rng, shape, dtype)
            if grad is not None and grad.requires_grad:
                used.append(grad)
                seeds.append(self.module.from_numpy(drawn))
        wanted = [*self.leaves, *cotangents]
        if not used:
            return [None] * len(wanted)
        with retrograd.device(self.device):
            return list(retrograd.autograd.grad(used, wanted, seeds, allow_unused=True))

    def tangents(self) -> list[Any]:
        rng = np.random.default_rng(self.sample.seed + 3)
        given = []
        for spec, array in zip(self.sample.specs, self.sample.arrays(), strict=True):
            given.append(laid_out(random_cotangent(rng, array.shape, array.dtype), spec.layout)
                         if spec.differentiable else None)  # fmt: skip
        arrays = iter([d for d in given])
        retrograd.manual_seed(0)
        with fwAD.dual_level(), retrograd.device(self.device):
            made = self.sample.build(_Dual(self.module, arrays), requires_grad=False)
            found = []
            for out in flat(self.op.call(self.module, made.args, made.kwargs)):
                tangent = fwAD.unpack_dual(out).tangent if is_tensor(out) else None
                found.append(None if tangent is None else numbers(tangent))
        return found


class _Dual:
    """The module, making dual tensors."""

    def __init__(self, module: Any, directions: Any) -> None:
        self.module, self.directions = module, directions

    def __getattr__(self, name: str) -> Any:
        return getattr(self.module, name)

    def from_numpy(self, array: np.ndarray) -> Any:
        tensor, direction = self.module.from_numpy(array), next(self.directions)
        return tensor if direction is None else fwAD.make_dual(tensor, self.module.from_numpy(direction))


def rounding(*arrays: np.ndarray, sample: Sample) -> float:
    names = {a.dtype.name for a in arrays} | {spec.dtype for spec in sample.specs}
    return 2e-2 if "float16" in names else 1e-4 if names & {"float32", "complex64"} else 1e-8


def check(what: str, here: list[Any], there: list[Any], sample: Sample, device: Any) -> None:
    """Raise unless the device's results are those of the CPU, and lie on the device."""
    assert len(here) == len(there), f"{what}: {len(there)} results for {len(here)}"
    for number, (cpu, gpu) in enumerate(zip(here, there, strict=True)):
        name = f"{what} {number}"
        if cpu is None or gpu is None:
            given = cpu if gpu is None else gpu
            assert given is None or not np.any(numbers(given)), f"{name}: undefined on one of the two"
            continue
        if is_tensor(cpu):
            assert is_tensor(gpu), f"{name}: no tensor"
            assert gpu.dtype == cpu.dtype, f"{name}: dtype {gpu.dtype} for {cpu.dtype}"
            if what not in ON_CPU:
                assert gpu.device == device, f"{name}: is on {gpu.device}"
        a, b = numbers(cpu), numbers(gpu)
        assert a.shape == b.shape, f"{name}: shape {b.shape} for {a.shape}"
        if a.dtype.kind in "OUS":
            assert np.all(a == b), name
            continue
        digits = rounding(a, b, sample=sample)
        np.testing.assert_allclose(b, a, rtol=digits, atol=digits, equal_nan=True, err_msg=name)


def _twister_words(self: Philox, count: int) -> Any:
    """In the place of a device's random words: those that the CPU's generator of the same seed gives."""
    if not hasattr(self, "twister"):
        self.twister = retrograd.Generator().manual_seed(self.seed).twister
    self.offset += count
    return self.place.from_host(kernels_random.words(self.twister, count))


def _twister_draw(self: Philox, name: str, *parameters: Any) -> Any:
    if not hasattr(self, "twister"):
        self.twister = retrograd.Generator().manual_seed(self.seed).twister
    return self.place.by_host(getattr(self.twister, name), parameters, {})


@contextmanager
def same_words() -> Iterator[None]:
    """Within the block a seed gives the same words on a device as on the CPU, so that what is drawn can be compared."""
    before = Philox.words, Philox._by_library
    Philox.words, Philox._by_library = _twister_words, _twister_draw
    try:
        yield
    finally:
        Philox.words, Philox._by_library = before


#: Operators that give some of their results on the CPU: they call x.cpu().
ON_CPU = ("new tensors, options",)
STEPS = ("values", "gradients", "tangents", "second")


def compare(op: Op, sample: Sample, steps: tuple[str, ...] = STEPS) -> dict[str, str]:
    """What differs, by step; nothing if all is well."""
    device = places.places[0].device
    problems: dict[str, str] = {}
    with warnings.catch_warnings(), same_words():
        warnings.simplefilter("ignore")
        try:
            here = Side(retrograd, op, sample, "cpu")
        except Exception as error:  # not a sample for us
            return {"cpu": _short(error)}
        try:
            there = Side(OnDevice(), op, sample, device)
            check("value" if op.name not in ON_CPU else op.name, here.outputs, there.outputs, sample, device)
        except Exception as error:
            return {"values": _short(error)}
        if not op.differentiable or not any(spec.differentiable for spec in sample.specs):
            return problems
        for step in steps:
            if step == "values" or (step == "second" and not sample.second):
                continue
            try:
                expected = _step(step, here)
            except Exception as error:  # there is no such derivative on the CPU either
                try:
                    _step(step, there)
                except type(error):
                    continue
                except Exception as other:
                    problems[step] = f"{_short(other)} (CPU: {_short(error)})"
                continue
            try:
                check(step, expected, _step(step, there), sample, device)
            except Exception as error:
                problems[step] = _short(error)
    return problems


def _step(step: str, side: Side) -> list[Any]:
    return side.gradients() if step == "gradients" else side.seconds() if step == "second" else side.tangents()


def _short(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    where = next(
        (f for f in reversed(frames) if "retrograd/" in f.filename and "/arrays/" not in f.filename),
        frames[-1] if frames else None,
    )
    at = "" if where is None else f" @{where.filename.rpartition('retrograd/')[2]}:{where.lineno}"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:110]}{at}"
