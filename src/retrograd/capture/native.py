"""A program with its elementwise calls and sums in C."""

from __future__ import annotations

import ctypes

from .c_code import HEADER, CWriter
from .compiling import compiled
from .memory import Memory
from .plain import Writer, write_plain
from .planning import touched
from .program import Program


def write(program: Program, memory: Memory, backend: str, remarks: bool = False) -> tuple[Writer, CWriter | None]:
    """The program as lines of Python, and its C, if it has some."""
    if backend == "native":
        return write_native(program, memory, remarks)
    return write_plain(program, memory, remarks), None


def write_native(program: Program, memory: Memory, remarks: bool = False) -> tuple[Writer, CWriter]:
    """The program as lines of Python that call its groups, with what is in each as remarks; and its C."""
    writer = Writer(program, memory, remarks)
    c_code = CWriter(program, memory)
    units = program.units
    writer.pointers = c_code.pointers
    writer.in_c = {v.storage.number for u in units if u.kind != "python" for call in u.calls for v in touched(call)}
    todo = 0
    while todo < len(units):
        writer.release(todo)
        end = todo
        while end < len(units) and units[end].kind != "python":
            end += 1
        if end > todo:
            for value in [v for unit in units[todo:end] for call in unit.calls for v in touched(call)]:
                writer.make_room(value.storage)
            c_code.group(units[todo:end])
            name = f"native_{len(c_code.functions) - 1}"
            writer.lines.append(f"{name}(pointers)")
            for position in range(todo, end):
                writer.let_go(position)
            if remarks:
                before = len(writer.lines)
                for call in [call for unit in units[todo:end] for call in unit.calls]:
                    writer.write(call)
                writer.lines[before:] = ["#   " + line for line in writer.lines[before:]]
            todo = end
        else:
            writer.write(units[todo].calls[0])
            writer.let_go(todo)
            todo += 1
    if c_code.functions and not remarks:
        library = compiled(HEADER + "\n".join(c_code.functions))
        table = c_code.pointer_table()
        pointers = (ctypes.c_void_p * len(table))(*table)
        writer.names["pointers"] = ctypes.addressof(pointers)
        writer.names["_table"] = pointers  # which the address is of
        for number in range(len(c_code.functions)):
            function = getattr(library, f"g{number}")
            function.argtypes, function.restype = [ctypes.c_void_p], None
            writer.names[f"native_{number}"] = function
    return writer, c_code
