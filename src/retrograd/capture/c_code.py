"""C for groups of calls: elementwise chains become one loop, sums a loop of their own, 0-d arrays plain arithmetic.

The arithmetic is NumPy's: no contraction of products and sums, NaN and equal numbers in maxima as its loops treat them,
sums of rows in pairs of blocks as its own.  Exponentials and their like are C's, and only for a few elements: NumPy's
vector loops are faster for many.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .c_functions import IN_C, TEXT
from .fusion import COMPARE, INFIX, LIBM, TYPES, Unit, made_by, reduction, row_length
from .memory import Memory
from .program import Program
from .runtime import runtime
from .values import Call, Value

#: Loops over so many elements are worth more than one thread.
WORTH_THREADS = 1 << 15

HEADER = """#include <math.h>
#include <string.h>
#define isnan_(x) ((x) != (x))
typedef void (*Part)(char **, long, long);
#define SHARE(part, rounds) ((void (*)(Part, char **, long))P[1])(part, P, rounds)
"""

_PAIRWISE = """
static T sum_T(const T *a, long n)
{
    if (n < 8) { T r = (T)-0.0; for (long i = 0; i < n; i++) r += a[i]; return r; }
    if (n <= 128) {
        T r[8]; long i;
        for (int k = 0; k < 8; k++) r[k] = a[k];
        for (i = 8; i < n - n % 8; i += 8) for (int k = 0; k < 8; k++) r[k] += a[i + k];
        T s = ((r[0] + r[1]) + (r[2] + r[3])) + ((r[4] + r[5]) + (r[6] + r[7]));
        for (; i < n; i++) s += a[i];
        return s;
    }
    long h = n / 2; h -= h % 8;
    return sum_T(a, h) + sum_T(a + h, n - h);
}
"""
HEADER += _PAIRWISE.replace("sum_T", "sum_f").replace("T", "float") + _PAIRWISE.replace("sum_T", "sum_d").replace(
    "T", "double"
)
HEADER += TEXT


class CWriter:
    """Writes the functions of a program's groups."""

    def __init__(self, program: Program, memory: Memory) -> None:
        self.program: Program = program
        self.memory: Memory = memory
        #: storage (or the arena, None; or the function that shares loops among threads, -1) -> place in the table
        self.pointers: dict[int | None, int] = {None: 0, -1: 1}
        self.threads: bool = runtime() is not None
        self.functions: list[str] = []
        #: How many loops are shared among threads.
        self.shared: int = 0
        self.fused: list[list[Call]] = []

    def pointer_table(self) -> list[int]:
        table = [0] * len(self.pointers)
        for number, place in self.pointers.items():
            if number == -1:
                shared = runtime()
                table[place] = 0 if shared is None else shared.share
            elif number is None:
                table[place] = self.memory.arena.__array_interface__["data"][0]
            elif number in self.memory.own:
                table[place] = self.memory.own[number].__array_interface__["data"][0]
            elif number not in self.program.borrowed and number not in self.program.loose:  # (who come when they come)
                table[place] = self.program.storages[number].start
        return table

    def address(self, value: Value) -> str:
        number = value.storage.number
        place: int
        if number in self.program.plan.offsets:
            place, offset = 0, self.program.plan.offsets[number] + value.offset
        else:
            place, offset = self.pointers.setdefault(number, len(self.pointers)), value.offset
        return f"(P[{place}] + {offset})"

    # ------------------------------------------------------------------------------------------------------ groups

    def group(self, units: list[Unit]) -> None:
        """One function for units that follow each other."""
        body: list[str] = []
        before: list[str] = []
        for unit in units:
            lines, rounds, elements = self._loop(unit) if unit.kind == "loop" else self._single(unit.calls[0])
            if unit.kind == "loop" and len(unit.calls) > 1:
                self.fused.append(unit.calls)
            if rounds > 1 and elements >= WORTH_THREADS and self.threads:
                self.shared += 1
                text = "".join([f"    {line}\n" for line in lines])
                before.append(f"static void p{self.shared}(char **P, long lo, long hi)\n{{\n{text}}}\n")
                body.append(f"SHARE(p{self.shared}, {rounds});")
            else:
                body += ["{", *([f"const long lo = 0, hi = {rounds};"] if rounds > 1 else []), *lines, "}"]
        text = "".join([f"    {line}\n" for line in body])
        self.functions.append("".join(before) + f"void g{len(self.functions)}(char **P)\n{{\n{text}}}\n")

    def _loop(self, unit: Unit) -> tuple[list[str], int, int]:
        """Calls of one shape as one loop: what nobody reads later is not stored.

        Given back are its lines, for the rounds from `lo` to `hi`, how many rounds there are, and of how many elements.
        """
        calls = unit.calls
        first = made_by(calls[0])
        assert first is not None
        size = first.size
        rows = {row_length(value, first) for call in calls for value in call.reads if value.shape != first.shape} - {0}
        row = max(rows, default=0)
        lines: list[str] = []
        inside: list[str] = []
        names: dict[Any, str] = {}
        bases: dict[Any, str] = {}

        def base(value: Value, letter: str) -> str:
            key = value.key
            if key not in bases:
                kind = TYPES[value.dtype.char]
                bases[key] = f"{letter}{len(bases)}"
                lines.append(f"{kind} *{bases[key]} = ({kind} *){self.address(value)};")
            return bases[key]

        def operand(value: Value) -> str:
            if value.key in names:
                return names[value.key]
            if value.storage.number in self.program.constants and value.size == 1:
                text = literal(self.memory.view(value))
                if text is not None:
                    return text
            name = base(value, "a")
            if row and value.size == row and value.shape != first.shape:
                return f"{name}[j]"
            if value.size == 1 and size != 1:
                return f"{name}[0]"
            return f"{name}[i]" if size != 1 else f"{name}[0]"

        stores: dict[Any, str] = {}
        for number, call in enumerate(calls):
            out = made_by(call)
            assert out is not None
            operands = [operand(value) for value in (call.args if call.name == "np.where" else call.reads)]
            inside.append(f"{TYPES[out.dtype.char]} t{number} = {expression(call, operands, out.dtype.char)};")
            names[out.key] = f"t{number}"
            if out.storage.number not in self.program.plan.registers:
                stores[out.key] = f"{base(out, 'o')}[{'i' if size != 1 else '0'}] = t{number};"
        inside += stores.values()
        if size == 1:
            return [*lines, *inside], 1, 1
        body = " ".join(inside)
        if row:
            low, high = ("0", "1") if size == row else ("lo", "hi")
            begin = f"for (long r = {low}; r < {high}; r++) {{ long first = r * {row};"
            inner = f"for (long j = 0; j < {row}; j++) {{ long i = first + j; {body} }}"
            return [*lines, begin, '_Pragma("GCC ivdep")', inner, "}"], size // row, size
        return [*lines, '_Pragma("GCC ivdep")', f"for (long i = lo; i < hi; i++) {{ {body} }}"], size, size

    def _single(self, call: Call) -> tuple[list[str], int, int]:
        """The same for a call that is none of a chain."""
        out = made_by(call)
        assert out is not None
        kind = TYPES[out.dtype.char]
        if call.kind == "reduce":
            return self._sum(call, out, kind)
        if call.name in ("np.zeros", "np.ones") and not call.reads:
            target = self.address(out)
            size = out.size
            low, high = ("0", "1") if size == 1 else ("lo", "hi")
            if call.name == "np.zeros":
                each = f"sizeof({kind})"
                return [f"memset({target} + {low} * {each}, 0, ({high} - {low}) * {each});"], size, size
            return [f"{kind} *o = ({kind} *){target}; for (long i = {low}; i < {high}; i++) o[i] = 1;"], size, size
        values = list(call.args if call.name == "np.where" else call.reads)
        shape = out.shape
        steps = [_spread(value, shape) for value in values] + [out.strides]
        dims = _coalesced(shape, steps)
        lines = [
            f"{TYPES[v.dtype.char]} *a{n} = ({TYPES[v.dtype.char]} *){self.address(v)};" for n, v in enumerate(values)
        ]
        lines.append(f"{kind} *o = ({kind} *){self.address(out)};")
        places = []
        for n in range(len(steps)):
            places.append(" + ".join([f"i{d} * {dim[1][n]}" for d, dim in enumerate(dims) if dim[1][n]]) or "0")
        operands = [
            f"*({TYPES[v.dtype.char]} *)((char *)a{n} + {places[n]})" if places[n] != "0" else f"*a{n}"
            for n, v in enumerate(values)
        ]
        target = f"*({kind} *)((char *)o + {places[-1]})"
        inner = f"{target} = {expression(call, operands, out.dtype.char)};"
        loops = "".join([
            f"for (long i{d} = {'0' if d else 'lo'}; i{d} < {dim[0] if d else 'hi'}; i{d}++) "
            for d, dim in enumerate(dims)
        ])  # fmt: skip
        return [*lines, loops + inner], dims[0][0] if dims else 1, out.size

    def _sum(self, call: Call, out: Value, kind: str) -> tuple[list[str], int, int]:
        found = reduction(call)
        assert found is not None
        how, rows, columns = found
        lines = [f"{kind} *a = ({kind} *){self.address(call.reads[0])}; {kind} *o = ({kind} *){self.address(out)};"]
        if how == "rows":
            name = "sum_" + out.dtype.char
            if rows == 1:
                lines.append(f"o[0] = {name}(a, {columns});")
            else:
                lines.append(f"for (long i = lo; i < hi; i++) o[i] = {name}(a + i * {columns}, {columns});")
            return lines, rows, rows * columns
        low, high = ("0", "1") if columns == 1 else ("lo", "hi")
        lines.append(f"memcpy(o + {low}, a + {low}, ({high} - {low}) * sizeof({kind}));")
        lines.append(
            f"for (long i = 1; i < {rows}; i++) {{ {kind} *r = a + i * {columns}; "
            f"for (long j = {low}; j < {high}; j++) o[j] += r[j]; }}"
        )
        return lines, columns, rows * columns


def _spread(value: Value, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that is broadcast to a shape."""
    added = len(shape) - len(value.shape)
    own = [step if size == whole else 0 for step, size, whole in zip(value.strides, value.shape, shape[added:])]
    return (*[0] * added, *own)


def _coalesced(shape: tuple[int, ...], steps: list[tuple[int, ...]]) -> list[tuple[int, list[int]]]:
    """Dimensions with their steps, neighbours merged where one loop can do for both."""
    dims: list[tuple[int, list[int]]] = []
    for d, n in enumerate(shape):
        if n == 1:
            continue
        these = [step[d] for step in steps]
        if dims and all(before == n * now for before, now in zip(dims[-1][1], these)):
            dims[-1] = dims[-1][0] * n, these
        else:
            dims.append((n, these))
    return dims


def literal(array: np.ndarray) -> str | None:
    """A number of one element as C has it, to the last bit."""
    value = array.item()
    if not isinstance(value, float) or not math.isfinite(value):
        return None
    return f"({TYPES[array.dtype.char]}){value.hex()}"


#: Functions of one number: `f` is the suffix of libm's functions, `type` that of the result.
OF_ONE: dict[Any, str] = {
    np.square: "{x} * {x}", np.negative: "-{x}", np.sqrt: "sqrt{f}({x})", np.absolute: "fabs{f}({x})",
    np.reciprocal: "({type})1 / {x}", np.sign: "isnan_({x}) ? {x} : ({type})(({x} > 0) - ({x} < 0))",
    np.positive: "{x}", np.conjugate: "{x}", np.logical_not: "!{x}", np.invert: "!{x}",
}  # fmt: skip


def expression(call: Call, operands: list[str], char: str) -> str:
    """One element of a pointwise call."""
    function: Any = call.function
    suffix = "f" if char == "f" else ""
    if call.kind == "copy":
        return f"({TYPES[char]}){operands[0]}" if call.reads[0].dtype.char != char else operands[0]
    if call.name == "np.where":
        return f"{operands[0]} ? {operands[1]} : {operands[2]}"
    if len(operands) == 1 and len(call.args) == 2:  # the same array twice is read once
        operands = operands * 2
    if function in IN_C:
        return IN_C[function].format(x=operands[0], y=operands[-1])
    if function in INFIX:
        return f"{operands[0]} {INFIX[function]} {operands[1]}"
    if function in COMPARE:
        return f"{operands[0]} {COMPARE[function]} {operands[1]}"
    x = operands[0]
    if function in (np.maximum, np.minimum):
        y, sign = operands[1], ">" if function is np.maximum else "<"
        return f"isnan_({x}) ? {x} : ({x} {sign} {y} ? {x} : {y})"
    if function in OF_ONE:
        return OF_ONE[function].format(x=x, f=suffix, type=TYPES[char])
    if function in (np.logical_and, np.bitwise_and):
        return f"{x} & {operands[1]}"
    if function in (np.logical_or, np.bitwise_or):
        return f"{x} | {operands[1]}"
    return f"{LIBM[function]}{suffix}({', '.join(operands)})"
