"""Writes ``_generated/functions.py``: the operators that users call, as straight-line code.

A wrapper runs the kernel; if something that it was given requires grad, it makes the node, connects it, saves what
the formulas that will run need, and sets the history of the result.
"""

from __future__ import annotations

from .argument_checks import argument_call, watched
from .calls import (
    _call_arguments,
    _keywords,
    _late,
    _make_results,
    _returned,
    _run_kernel,
    _run_ufunc,
    _send_strangers_away,
    _unwrap,
    edge_comes_last,
    has_out,
    own_name,
    signature,
)
from .inplace_functions import _inplace_wrapper
from .recording import _record
from .table import Entry

HEADER = '''"""Operators, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from builtins import any as _any
from builtins import slice as _slice
from retrograd import kernels
from retrograd.ops.accidents import unfit
from retrograd.ops.arguments import argument
from retrograd.ops.old_forms import old_form
from retrograd.autograd.basic_nodes import NotImplementedInPlace
from retrograd.autograd.edge import leaf_edge
from retrograd.autograd.inplace import begin_inplace, check_overlap, edge_before_write, end_inplace
from retrograd.autograd.saved_variable import pack_before_write, save, save_list, save_output
from retrograd.core.meta import AutogradMeta
from retrograd.core.state import local
from retrograd.core.version_counter import INFERENCE, VersionCounter, version_counter
from retrograd.autograd.view_meta import DifferentiableViewMeta, as_view
from retrograd.core.dtypes import as_numpy_dtype
from retrograd.kernels import as_array, ndarray, ufuncs
from retrograd.kernels.compiled import on_threads
from retrograd.tensor.lazy_conjugation import class_with_flipped_bit
from retrograd.ops.support import (
    INT,
    NUMBERS,
    array_second,
    int_tuple,
    merge_aliases,
    missing,
    needs_a_tensor,
    no_array,
    not_differentiable,
    number,
    number_first,
    reflected,
    renamed,
    tensor_list,
    tensor_list_arrays,
    write_out,
)
from retrograd.core.quiet import once, quietly
from retrograd.return_types import return_type
from retrograd.tensor import Tensor, new

from . import nodes

asarray, DOUBLE, SINGLE = ufuncs.asarray, ufuncs.dtype(ufuncs.float64), ufuncs.dtype(ufuncs.float32)
'''


def write_functions(entries: list[Entry]) -> str:
    """The source of the module."""
    parts = [HEADER]
    kernels = sorted({e.kernel for e in entries})
    parts.append("\n" + "".join(f"kernel_{k} = kernels.{k}\n" for k in kernels))
    names = sorted({e.ufunc for e in entries if e.ufunc})
    parts.append("".join(f"ufunc_{name} = on_threads(ufuncs.{name})\n" for name in names))
    for entry in entries:
        parts.append(_wrapper(entry))
        parts += [_wrapper(entry, operator) for operator in entry.operators if not _is_inplace(operator)]
        if entry.inplace:
            parts.append(_inplace_wrapper(entry))
            parts += [_inplace_wrapper(entry, operator) for operator in entry.operators if _is_inplace(operator)]
    parts.append(_exports(entries))
    return "".join(parts)


def _is_inplace(operator: str) -> bool:
    """``__iadd__`` and its like."""
    return operator.startswith("__i") and operator != "__invert__"


def _wrapper(entry: Entry, operator: str | None = None) -> str:
    """The function, or the special method `operator` (which answers NotImplemented to strangers)."""
    arguments = entry.schema.arguments
    name = operator or entry.name
    reflected = operator is not None and operator.startswith("__r") and operator not in ("__rshift__",)
    body: list[str] = []
    if operator:
        head = "input, other" if len(arguments) > 1 else "input"
        body += [f"{a.parameter} = {a.default}" for a in arguments[2:]]
    else:
        head = signature(entry)
    if not operator:
        body.append(f'"""{entry.doc or entry.schema.base}"""')
    public = own_name(entry)
    if reflected:
        body += ["if not isinstance(other, NUMBERS):", f'    return reflected("{operator}", input, other)']
    if not operator and entry.old_form:
        keywords = _keywords(entry).replace("}", ', "out": out}')
        body += ["if old:", f"    return old_form({public}, ({_call_arguments(entry)}*old), {keywords})"]
    if not operator and has_out(entry):
        body += ["if out is not None:"]
        checks = "" if entry.differentiable else ", False"
        keywords = _keywords(entry)
        if "**aliases" in head:
            keywords = "aliases" if keywords == "{}" else keywords.replace("}", ", **aliases}")
        body += [f"    return write_out({public}, out, ({_call_arguments(entry)}), {keywords}{checks})"]
    if not operator and "**aliases" in head:
        late = _late(entry)
        names = "".join(f', "{a.parameter}"' for a in late)
        # One test for what is missing and for what is not plainly an int.
        plain = "".join(f" or {a.parameter} {'.__class__ is not int' if a.type == 'int' else ' is None'}" for a in late)
        absent = "".join(f" or {a.parameter} is None" for a in late)
        call = f"return merge_aliases({public}, ({_call_arguments(entry)}), {_keywords(entry)}, aliases{names})"
        body += [f"if aliases{plain.replace(' .', '.').replace('  ', ' ')}:"]
        if plain.replace("  ", " ") == absent:
            body += [f"    {call}"]
        else:
            body += [f"    if aliases{absent}:", f"        {call}"]
            for position, a in enumerate(arguments, 1):
                if a in late and a.type == "int":
                    body += [f"    {a.parameter} = {argument_call(entry, a, position)}"]
    body.append("state = local.state")
    body += ["if state.interceptor is not None:"]
    if operator and len(arguments) > 1 and not reflected:
        body += _send_strangers_away(entry)
    body += [f"    return state.interceptor({public}, ({_call_arguments(entry)}), {_keywords(entry)})"]
    body += _unwrap(entry, operator)
    inline = bool(operator and entry.ufunc)
    run = _run_ufunc(entry, reflected) if inline else _run_kernel(entry)
    body += watched(entry, entry.schema.base, run)
    body += _make_results(entry)
    if entry.differentiable:
        body += _record(entry, dtype_is_known=inline)
        if edge_comes_last(entry):
            body += [f"{entry.schema.results[0]}._edge_ = None"]
    body.append(f"return {_returned(entry)}")
    return f"\n\ndef {name}({head}):\n" + "".join(f"    {line}\n" for line in body)


def _exports(entries: list[Entry]) -> str:
    lines = ["\n"]
    for entry in entries:
        if len(entry.schema.results) > 1:
            fields = ", ".join(f'"{r}"' for r in entry.schema.results)
            lines.append(
                f'{entry.name}_result = return_type("{entry.schema.base.lstrip("_")}", {fields})\n'
            )
    spaces: dict[str, list[str]] = {}
    aliases: dict[str, str] = {}
    for entry in entries:
        for space, name, inplace in entry.places():
            function = f"{entry.name}{'_' * inplace}"
            if name != function and space != "linalg":  # (which wraps them)
                # One object for the function and the method; its name is what errors about arguments call it.
                aliases[name] = f'    "{name}": renamed({function}, "{name}"),\n'
                function = f'ALIASES["{name}"]'
            spaces.setdefault(space, []).append(f'"{name}": {function},')
        spaces.setdefault("Tensor", []).extend(f'"{operator}": {operator},' for operator in entry.operators)
    lines += ["\n\nALIASES = {\n", *aliases.values(), "}\n"]
    lines.append("\n\n#: Operators that users see: namespace -> name -> function.\nPUBLIC = {\n")
    for space, members in sorted(spaces.items()):
        lines += [f'    "{space}": {{\n', *[f"        {member}\n" for member in members], "    },\n"]
    lines.append("}\n")
    return "".join(lines)
