"""Kernels of expressions: one launch for a formula of any number of steps, whatever its operands' layouts.

How operands lie together is worked out once for each combination of shapes and strides (`plan_of`): where they can be
gone through as one row, a kernel of that form is taken, else one that works out each element's places.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.state import local
from ..memory import take
from .launching import STORED, THREADS, Kernel, Launcher, blocks_for, configuration, contiguous, prepared, stored
from .launching import _local as local_buffers
from .pending import Pending, add_to, elements, is_wanted

if TYPE_CHECKING:
    from ..places import Place

new = object.__new__
#: The most dimensions that are left when those that lie as one are taken together.
_DIMS = 6
_MOST_PLANS = 4096
_INTEGERS = {"q": "long long", "i": "int", "?": "bool", "B": "unsigned char", "l": "long long"}


class Plan:
    """How elements of a result and its operands lie together."""

    __slots__ = ("blocks", "count", "dims", "nbytes", "row", "shape", "steps", "strides")

    def __init__(self, shape: tuple[int, ...], strides: tuple[int, ...], item: int, dims: Any, steps: Any) -> None:
        self.shape, self.strides = shape, strides
        self.count: int = math.prod(shape)
        self.nbytes: int = self.count * item
        self.blocks: int = blocks_for(self.count)
        #: Are all operands one row of elements?
        self.row: bool = not dims or (len(dims) == 1 and all(step == 1 for (step,) in steps))
        missing = _DIMS - len(dims)
        self.dims: list[int] = [len(dims), *dims, *[1] * missing]
        #: For each operand, the result first, its strides in elements.
        self.steps: list[int] = [one for step in steps for one in (*step, *[0] * missing)]


_plans: dict[Any, Plan | None] = {}


def _dense(shape: tuple[int, ...], strides: tuple[int, ...], item: int) -> bool:
    """Do the elements fill their memory, in any order of dimensions?"""
    step = item
    for n, stride in sorted(zip(shape, strides, strict=True), key=lambda pair: (pair[1], pair[0])):
        if n != 1:
            if stride != step:
                return False
            step *= n
    return True


def plan_of(key: Any, item: int, operands: Any, out: Any, out_item: int) -> Plan | None:
    """The plan for operands, each a pair of shape and strides; `out`: the strides of the result, where that is there.

    None: they do not fit together, or not in a way that kernels take.
    """
    made = _plan(item, operands, out, out_item)
    if len(_plans) >= _MOST_PLANS:
        _plans.clear()
    _plans[key] = made
    return made


def _plan(item: int, operands: Any, out: Any, out_item: int) -> Plan | None:
    try:
        shape = np.broadcast_shapes(*[shape for shape, _ in operands])
    except ValueError:
        return None
    rank = len(shape)
    if out is not None:
        strides = out
    else:
        strides = contiguous(shape, out_item)
        for own, steps in operands:  # the result lies as the first operand that has its shape
            if own == shape:
                if steps != strides and _dense(own, steps, item):
                    strides = tuple([step // item * out_item for step in steps])
                break
    if math.prod(shape) >= 1 << 31 or any(step % out_item for step in strides):
        return None
    lanes = [[step // out_item for step in strides]]
    for own, steps in operands:
        if any(step % item for step in steps):
            return None
        lead = rank - len(own)
        lanes.append([0] * lead + [0 if own[d] == 1 else steps[d] // item for d in range(len(own))])
    order = sorted((d for d in range(rank) if shape[d] != 1), key=lambda d: -abs(lanes[0][d]))
    dims: list[int] = []
    steps_of: list[list[int]] = [[] for _ in lanes]
    for d in order:
        if dims and all(kept[-1] == lane[d] * shape[d] for kept, lane in zip(steps_of, lanes, strict=True)):
            dims[-1] *= shape[d]
            for kept, lane in zip(steps_of, lanes, strict=True):
                kept[-1] = lane[d]
        else:
            dims.append(shape[d])
            for kept, lane in zip(steps_of, lanes, strict=True):
                kept.append(lane[d])
    return Plan(shape, strides, out_item, dims, steps_of) if len(dims) <= _DIMS else None


class Formula:
    """An expression of arrays ``a``, ``b``, ``c``, … and numbers ``p``, ``q``, ``r``, as a kernel of one device.

    Elements are computed in W: float, or double where they are doubles. `result`: "T" for elements as those of the
    operands, else what kernels call them.
    """

    def __init__(
        self, launcher: Launcher, name: str, expression: str, arrays: int, numbers: int = 0, result: str = "T"
    ) -> None:
        self.launcher: Launcher = launcher
        self.name: str = name
        self.expression: str = expression
        self.result: str = result
        self.arrays: int = arrays
        self.numbers: int = numbers
        self.place: Place = launcher.place
        self.dtype: Any = {"bool": np.dtype(np.bool_)}.get(result)
        self._rows: dict[np.dtype, Kernel | None] = {}
        self._apart: dict[np.dtype, Kernel | None] = {}
        self._pairs: dict[Any, Any] = {}
        self._launch: Any = None

    def _source(self, letter: str, row: bool) -> str:
        held = "T" if self.result == "T" else self.result
        names, numbers = "abcdefg"[: self.arrays], "pqrs"[: self.numbers]
        members = "".join(f"const T* {x}; " for x in names) + "".join(f"double {x}; " for x in numbers)
        loads = "".join(f"W {x} = up(s.{x}[{'i' if row else 'j' + x}]); " for x in names)
        values = "".join(f"W {x} = s.{x}; " for x in numbers)
        head = f"typedef {STORED.get(letter) or _INTEGERS[letter]} T;\n"
        work = "double" if letter == "d" else "float" if letter in STORED else "long long" if letter in "ql" else "int"
        head += f"typedef {work} W;\ntypedef {held} R;\n"
        value = "W" if held == "T" else "float" if held in ("f16", "bf16") else held
        body = f"{loads}put(s.o + {'i' if row else 'jo'}, ({value})({self.expression}));"
        if row:
            members = f"R* o; long long n; {members}"
            inner = body
        else:
            lanes = "o" + names
            members = f"R* o; long long n; {members}int rank; int dims[{_DIMS}]; int pad; " + "".join(
                f"long long t{x}[{_DIMS}]; " for x in lanes
            )
            places = "".join(f"long long j{x} = 0; " for x in lanes)
            walk = "".join(f"j{x} += at * s.t{x}[d]; " for x in lanes)
            inner = (
                f"{places}unsigned rest = i;\nfor (int d = s.rank - 1; d >= 0; --d) {{ unsigned n = s.dims[d], "
                f"next = rest / n; long long at = rest - next * n; rest = next; {walk}}}\n{body}"
            )
        return (
            f"{head}struct S {{ {members}}};\n"
            'extern "C" __global__ void k(S s) {\n'
            f"{values}\n"
            "for (long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x; i < s.n; "
            f"i += (long long)gridDim.x * blockDim.x) {{\n{inner}\n}}\n}}\n"
        )

    def _kernel(self, dtype: np.dtype, row: bool) -> Kernel | None:
        table = self._rows if row else self._apart
        letter = stored(dtype) or (dtype.char if dtype.char in _INTEGERS and self.dtype is not None else None)
        found = None
        if letter is not None:
            layout = "Qq" + "Q" * self.arrays + "d" * self.numbers
            layout += "" if row else f"{_DIMS + 2}i{_DIMS * (self.arrays + 1)}q"
            key = ("elementwise", self.name, self.arrays, letter, row)
            found = self.launcher.kernel(key, lambda: self._source(letter, row), layout)
        table[dtype] = found
        return found

    def pair(self, a: Any, b: Any) -> Any:
        """The same as `many` for two arrays, with what it looks up kept together: it is called for each operator."""
        found = self._pairs.get((a.dtype.num, a.shape, a.strides, b.shape, b.strides))
        if found is None:
            return self._new_pair(a, b)
        shape, strides, dtype, nbytes, count, pack, function, configurations, rest = found
        place = self.place
        now = place.thread
        if now.active is not place:
            place._activate()
        kind = now.classes.get(place.index, place.array_class)
        out = new(kind)  # as `Place.fresh` does it
        out._raw = out.base = None
        out.dtype, out.shape, out.strides = dtype, shape, strides
        out.block = block = take(nbytes, place.physical)
        out.ptr = pointer = block.pointer.ptr
        how = configurations.get(kind)
        if how is None:
            how = configurations[kind] = configuration(blocks_for(count), THREADS, kind.stream_pointer)
        local = local_buffers
        pack(local.buffer, 0, pointer, count, a.ptr, b.ptr, *rest)
        if self._launch(how, function, local.parameters, None):
            raise RuntimeError("CUDA error: a kernel could not be launched")
        return out

    def _key(self, arrays: tuple[Any, ...], out: Any) -> tuple[Any, ...]:
        """What decides a plan."""
        shapes = tuple([(x.shape, x.strides) for x in arrays])
        return arrays[0].dtype.num, shapes, out is not None and out.strides, self.dtype

    def _new_pair(self, a: Any, b: Any) -> Any:
        made = self.many((a, b), None)
        if made is not None and made.size:
            self._launch = prepared()
            plan = _plans[self._key((a, b), None)]
            assert plan is not None
            kernel = (self._rows if plan.row else self._apart)[a.dtype]
            assert kernel is not None
            if len(self._pairs) >= _MOST_PLANS:
                self._pairs.clear()
            rest = () if plan.row else (*plan.dims, 0, *plan.steps)
            key = a.dtype.num, a.shape, a.strides, b.shape, b.strides
            self._pairs[key] = (
                plan.shape, plan.strides, self.dtype or a.dtype, plan.nbytes, plan.count, kernel.pack, kernel.function,
                {}, rest,
            )  # fmt: skip
        return made

    def many(self, arrays: tuple[Any, ...], out: Any, *numbers: float) -> Any:
        """The result of arrays of one dtype on this device; None if this is nothing for the kernel."""
        dtype = arrays[0].dtype
        key = self._key(arrays, out)
        shapes = key[1]
        plan: Any = _plans.get(key, self)  # type: ignore[call-overload]
        if plan is self:
            item = dtype.itemsize
            size = item if self.dtype is None else self.dtype.itemsize
            plan = plan_of(key, item, shapes, None if out is None else out.strides, size)
        if plan is None:
            return None
        kernel: Any = (self._rows if plan.row else self._apart).get(dtype, self)
        if kernel is self:
            kernel = self._kernel(dtype, plan.row)
        if kernel is None:
            return None
        if out is None:
            out = self.place.fresh(plan.shape, plan.strides, self.dtype or dtype, plan.nbytes)
        elif self._refuses(out, plan, dtype, arrays):
            return None
        else:
            self.place.activate()
        if plan.count:
            stream = self.place.class_now().stream_pointer
            pointers = [x.ptr for x in arrays]
            if plan.row:
                kernel(plan.blocks, THREADS, stream, out.ptr, plan.count, *pointers, *numbers)
            else:
                kernel(plan.blocks, THREADS, stream, out.ptr, plan.count, *pointers, *numbers, *plan.dims, 0,
                       *plan.steps)  # fmt: skip
        return out

    def _refuses(self, out: Any, plan: Plan, dtype: np.dtype, arrays: Any) -> bool:
        """Is `out` not for the kernel: of another shape, dtype or device, or in the memory of an operand?"""
        if out.shape != plan.shape or out.dtype != (self.dtype or dtype) or out.place is not self.place:
            return True
        if out.size > 1 and 0 in out.strides and any(s == 0 and n > 1 for s, n in zip(out.strides, out.shape)):
            return True
        root = out if out.base is None else out.base
        for x in arrays:
            same = x is out or (x.ptr == out.ptr and x.strides == out.strides and x.shape == out.shape)
            if not same and (x is root or x.base is root or (root.base is not None and x.base is root.base)):
                return True
        return False


class Cast:
    """Copies of arrays: to other dtypes, and into other layouts."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self._formulas: dict[np.dtype, Formula | None] = {}

    def __call__(self, a: Any, dtype: np.dtype, out: Any = None) -> Any:
        """`a` as `dtype`, as it lies; or written to `out`, which it is broadcast to."""
        formula: Any = self._formulas.get(dtype, self)  # type: ignore[call-overload]
        if formula is self:
            letter = stored(dtype)
            formula = None
            if letter is not None:
                formula = Formula(self.launcher, f"cast {letter}", "a", 1, 0, STORED[letter])
                formula.dtype = dtype
            self._formulas[dtype] = formula
        if formula is None or (stored(a.dtype) is None and a.dtype.char not in "?"):
            return None
        return formula.many((a,), out)


#: Ufuncs as expressions: of one operand, and of two.
UNARY: dict[str, str] = {
    "negative": "-a", "exp": "exp(a)", "log": "log(a)", "sqrt": "sqrt(a)", "tanh": "tanh(a)", "absolute": "fabs(a)",
    "square": "a * a", "reciprocal": "(W)1 / a", "sin": "sin(a)", "cos": "cos(a)", "log1p": "log1p(a)",
    "expm1": "expm1(a)",
}  # fmt: skip
BINARY: dict[str, str] = {
    "add": "a + b", "subtract": "a - b", "multiply": "a * b", "true_divide": "a / b", "divide": "a / b",
    "maximum": "a >= b || a != a ? a : b", "minimum": "a <= b || a != a ? a : b",
}  # fmt: skip
COMPARISONS: dict[str, str] = {
    "less": "a < b", "less_equal": "a <= b", "greater": "a > b", "greater_equal": "a >= b", "equal": "a == b",
    "not_equal": "a != b",
}  # fmt: skip
_REAL = (float, int, np.float32, np.float64, np.float16)


class OwnUfunc:
    """A ufunc of arrays of one floating dtype, or of one such array and a number."""

    def __init__(self, launcher: Launcher, name: str) -> None:
        self.place: Place = launcher.place
        self.single: bool = name in UNARY
        self.adds: bool = name == "add"
        self.pair: Any = None
        result = "bool" if name in COMPARISONS else "T"
        expression = UNARY.get(name) or BINARY.get(name) or COMPARISONS[name]
        self.whole: Formula = Formula(launcher, name, expression, 1 if self.single else 2, 0, result)
        if not self.single:
            self.pair = self.whole.pair
            last = expression.replace("b", "p")
            first = "".join({"a": "p", "b": "a"}.get(c, c) for c in expression)
            self.last: Formula = Formula(launcher, f"{name} number", last, 1, 1, result)
            self.first: Formula = Formula(launcher, f"number {name}", first, 1, 1, result)

    def pair_later(self, a: Any, b: Any) -> Any:
        """A product, which may be computed later: Note [Pending gradients] in pending.py."""
        place = self.place
        if place.thread.adding is not None and is_wanted(place, local.state.current_node):
            later = elements(place, a, b)
            if later is not None:
                return later
        return self.whole.pair(a, b)

    def __call__(self, args: tuple[Any, ...], out: Any) -> Any:
        """The result; None if this is nothing for the kernel."""
        place = self.place
        if self.single:
            a = args[0]
            return self.whole.many((a,), out) if getattr(a, "place", None) is place else None
        a, b = args
        try:
            if a.place is place:
                if b.place is place and a.dtype is b.dtype:
                    if out is None:
                        return self.pair(a, b)
                    if b._raw.__class__ is Pending and out is a and self.adds and add_to(out, b):
                        return out
                    return self.whole.many(args, out)
                if a.dtype != b.dtype or b.place is not place:
                    return None
                return self.whole.many(args, out)
        except AttributeError:
            pass
        if getattr(a, "place", None) is place:
            array, number, formula = a, b, self.last
        elif getattr(b, "place", None) is place:
            array, number, formula = b, a, self.first
        else:
            return None
        if number.__class__ is np.ndarray:
            if number.ndim or number.dtype != array.dtype:
                return None
            number = float(number)
        elif number.__class__ not in _REAL or (isinstance(number, np.generic) and number.dtype != array.dtype):
            return None
        return formula.many((array,), out, number) if stored(array.dtype) is not None else None


def ufunc_of(launcher: Launcher | None, name: str) -> OwnUfunc | None:
    """Our kernel for a ufunc of NumPy's name."""
    if launcher is None or not (name in UNARY or name in BINARY or name in COMPARISONS):
        return None
    return OwnUfunc(launcher, name)
