"""An optimizer's rule as one kernel for all parameters: Note [Update rules] in optim/update.py.

A rule is a function of arrays that computes with the names of a namespace.  `Code` is one more such namespace, in which
a name writes a line of a kernel: the rule is called once, and what it wrote is compiled.  A launch has a table of
pointers, and each block of threads finds out whose piece it has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..capturing import capture_of
from .elementwise import _dense
from .launching import Launcher, stored, types

if TYPE_CHECKING:
    from ..places import Place

#: Parameters of one launch, elements of a block, and numbers that a rule may have.
_MANY, _PIECE, _NUMBERS = 48, 1024, 16


class Unwritable(Exception):
    """A rule does something that `Code` has no line for."""


class Value:
    """An element of an array, or a number, in a kernel."""

    def __init__(self, text: str) -> None:
        self.text = text

    def _compare(self, sign: str, other: Any) -> Value:
        return Value(f"({self.text} {sign} {_text(other)})")

    def __lt__(self, other: Any) -> Value:
        return self._compare("<", other)

    def __gt__(self, other: Any) -> Value:
        return self._compare(">", other)

    def __bool__(self) -> bool:
        raise Unwritable


def _text(value: Any) -> str:
    if isinstance(value, Value):
        return value.text
    if value.__class__ in (int, float):
        return f"(W){value!r}"
    raise Unwritable


class Code:
    """The names that rules use; see `ARRAYS` of kernels/updates.py."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _new(self, expression: str) -> Value:
        name = f"t{len(self.lines)}"
        self.lines.append(f"W {name} = {expression};")
        return Value(name)

    def _set(self, x: Value, expression: str) -> None:
        self.lines.append(f"{x.text} = {expression};")

    def absolute(self, x: Any, out: Any = None) -> Value:
        return self._new(f"fabs({_text(x)})")

    def add(self, x: Any, y: Any, out: Any = None) -> Value:
        return self._new(f"{_text(x)} + {_text(y)}")

    def divide(self, x: Any, y: Any, out: Any = None) -> Value:
        return self._new(f"{_text(x)} / {_text(y)}")

    def maximum(self, x: Any, y: Any, out: Any = None) -> Value:
        return self._new(f"Larger()({_text(x)}, {_text(y)})")

    def multiply(self, x: Any, y: Any, out: Any = None) -> Value:
        return self._new(f"{_text(x)} * {_text(y)}")

    def negative(self, x: Any, out: Any = None) -> Value:
        return self._new(f"-{_text(x)}")

    def sqrt(self, x: Any, out: Any = None) -> Value:
        return self._new(f"sqrt({_text(x)})")

    def subtract(self, x: Any, y: Any, out: Any = None) -> Value:
        return self._new(f"{_text(x)} - {_text(y)}")

    def plus(self, x: Any, y: Any, scale: Any) -> Value:
        return self._new(f"{_text(x)} + {_text(y)} * {_text(scale)}")

    def add_(self, x: Any, y: Any, scale: Any) -> None:
        self._set(x, f"{x.text} + {_text(y)} * {_text(scale)}")

    def mul_(self, x: Any, y: Any) -> None:
        self._set(x, f"{x.text} * {_text(y)}")

    def lerp_(self, x: Any, y: Any, weight: Any, rest: Any) -> None:
        step = f"({_text(y)} - {x.text})"
        self._set(x, f"{x.text} + {step} * {_text(weight)}" if rest is None else f"{_text(y)} - {step} * {_text(rest)}")

    def addcmul_(self, x: Any, a: Any, b: Any, scale: Any) -> None:
        self._set(x, f"{x.text} + {_text(a)} * {_text(b)}" + ("" if scale is None else f" * {_text(scale)}"))

    def addcdiv_(self, x: Any, a: Any, b: Any, scale: Any) -> None:
        self._set(x, f"{x.text} + {_text(a)} / {_text(b)}" + ("" if scale is None else f" * {_text(scale)}"))

    def maximum_(self, x: Any, y: Any) -> None:
        self._set(x, f"Larger()({x.text}, {_text(y)})")

    def copy_(self, x: Any, y: Any) -> None:
        self._set(x, _text(y))

    def __getattr__(self, name: str) -> Any:
        raise Unwritable


def write(rule: Callable[..., None], letter: str, columns: Sequence[bool], settings: Sequence[Any]) -> str:
    """The kernel of a rule for rows that have these columns."""
    code = Code()
    names = [f"v{i}" if there else None for i, there in enumerate(columns)]
    numbers: list[Any] = []
    for i, setting in enumerate(settings):
        if setting.__class__ in (int, float):
            numbers.append(Value(f"(W)n[{i}]"))
        elif setting is None or setting.__class__ is bool:
            numbers.append(setting)
        else:
            raise Unwritable
    rule(code, *[None if name is None else Value(name) for name in names], *numbers)
    used = [i for i, name in enumerate(names) if name is not None]
    loads = "".join(f"W v{i} = up(((const T*)s.at[{i}][t])[j]); " for i in used)
    stores = "".join(f"put((T*)s.at[{i}][t] + j, v{i}); " for i in used if i != 1)
    body = "\n".join(code.lines)
    return f"""{types(letter)}
struct Larger {{ __device__ W operator()(W a, W b) const {{ return a != a || a > b ? a : b; }} }};
struct S {{ const double* told; double n[{_NUMBERS}]; long long sizes[{_MANY}]; void* at[{len(columns)}][{_MANY}];
    int starts[{_MANY}]; int count; int pad; }};
extern "C" __global__ void k(S s) {{
    const double* n = s.told ? s.told : s.n;
    int t = 0;
    while (t + 1 < s.count && s.starts[t + 1] <= (int)blockIdx.x) ++t;
    long long first = (long long)(blockIdx.x - s.starts[t]) * {_PIECE};
    long long end = first + {_PIECE} < s.sizes[t] ? first + {_PIECE} : s.sizes[t];
    for (long long j = first + threadIdx.x; j < end; j += blockDim.x) {{
{loads}
{body}
{stores}
    }}
}}
"""


def takes(arrays: Sequence[Any]) -> bool:
    """Do the arrays of a row lie in one way, and fill their memory?"""
    first = arrays[0]
    place = getattr(first, "place", None)
    if place is None or place.updates is None or stored(first.dtype) is None:
        return False
    if not _dense(first.shape, first.strides, first.dtype.itemsize):
        return False
    for array in arrays[1:]:
        if array is not None and (
            getattr(array, "place", None) is not place or array.shape != first.shape or array.dtype != first.dtype
            or (array.strides != first.strides and array.size > 1)
        ):  # fmt: skip
            return False
    return True


class UpdateKernels:
    """Rules as kernels of one device."""

    def __init__(self, launcher: Launcher) -> None:
        self.launcher: Launcher = launcher
        self.place: Place = launcher.place
        self._unwritable: set[Any] = set()

    def __call__(
        self, rule: Callable[..., None], rows: list[list[Any]], settings: Sequence[Any],
        again: Callable[[int], Sequence[Any]] | None,
    ) -> bool:  # fmt: skip
        """Run a rule on rows of arrays of one dtype, which `takes` takes. `again`: the settings of later launches of a
        graph. False if it has no kernel."""
        first = rows[0]
        letter = stored(first[0].dtype)
        assert letter is not None
        columns = tuple([array is not None for array in first])
        kinds = tuple([setting if setting is None or setting.__class__ is bool else 0.5 for setting in settings])
        key = ("update", rule, letter, columns, kinds)
        if key in self._unwritable or len(settings) > _NUMBERS:
            return False
        width = len(columns)
        try:
            kernel = self.launcher.kernel(
                key, lambda: write(rule, letter, columns, settings),
                f"Q{_NUMBERS}d{_MANY}q{_MANY * width}Q{_MANY}i2i",
            )  # fmt: skip
        except Unwritable:
            self._unwritable.add(key)
            return False
        place = self.place
        place.activate()
        numbers = [float(setting) if setting.__class__ in (int, float) else 0.0 for setting in settings]
        numbers += [0.0] * (_NUMBERS - len(numbers))
        told = 0
        capture = capture_of(place)
        if capture is not None and again is not None:
            told = self._told(capture, numbers, again)
        rows = [row for row in rows if row[0].size]
        for start in range(0, len(rows), _MANY):
            part = rows[start : start + _MANY]
            empty = [0] * (_MANY - len(part))
            sizes = [row[0].size for row in part]
            starts, blocks = [], 0
            for size in sizes:
                starts.append(blocks)
                blocks += -(-size // _PIECE)
            at = [x for i in range(width) for x in (*[0 if row[i] is None else row[i].ptr for row in part], *empty)]
            kernel(blocks, 256, place.class_now().stream_pointer, told, *numbers, *sizes, *empty, *at, *starts, *empty,
                   len(part), 0)  # fmt: skip
        return True

    def _told(self, capture: Any, numbers: list[float], again: Callable[[int], Sequence[Any]]) -> int:
        """Where a graph reads the settings of its launch: they change from one to the next."""
        launches = [0]

        def settings() -> Any:
            found = again(launches[0])
            launches[0] += 1
            made = [float(one) if one.__class__ in (int, float) else 0.0 for one in found]
            return np.array(made + [0.0] * (_NUMBERS - len(made)))

        return capture.constant_again(np.array(numbers), settings).data.ptr
