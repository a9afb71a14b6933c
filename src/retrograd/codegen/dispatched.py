"""Writes ``_generated/dispatched.py``: operators whose kernel is Python code, of a class or a mode of the user's.

The same wrappers once more, for Note [Python dispatch] in ops/dispatch.py: what a kernel would compute from arrays
comes, as tensors, from ``call()``; around it the operator records its history as it always does.  Where a wrapper has
arrays, these have what stands for them (``_memory_``): shapes and dtypes are all that is read of it.
"""

from __future__ import annotations

import re

from .argument_checks import argument_call, not_plain
from .calls import _array, _returned, overlap_allowed, signature
from .inplace_functions import _without_derivative
from .nodes import Slots
from .recording import _connect, _edge, _metadata, _record, _save
from .table import Entry

HEADER = '''"""Operators with Python code for a kernel, from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from builtins import any as _any
from retrograd import kernels
from retrograd.autograd.basic_nodes import NotImplementedInPlace
from retrograd.autograd.edge import leaf_edge
from retrograd.autograd.inplace import begin_inplace, edge_before_write, end_inplace
from retrograd.autograd.saved_variable import pack_before_write, save, save_list, save_output
from retrograd.autograd.view_meta import DifferentiableViewMeta, as_view
from retrograd.core.dtypes import as_numpy_dtype
from retrograd.core.meta import AutogradMeta
from retrograd.core.state import local
from retrograd.core.version_counter import INFERENCE, VersionCounter, version_counter
from retrograd.ops.arguments import argument
from retrograd.ops.support import INT, int_tuple, not_differentiable
from retrograd.tensor import Tensor, new
from retrograd.tensor.special import bare

from . import nodes
'''


def write_dispatched(entries: list[Entry]) -> str:
    """The source of the module."""
    views = sorted({entry.kernel for entry in entries if entry.view})
    classes = [f"{e.name}_result" for e in entries if len(e.schema.results) > 1]
    names = sorted({e.name for e in entries if e.view} | {"clone"})
    imports = "".join(f"    {name},\n" for name in sorted([*classes, *names]))
    head = HEADER + f"from .functions import (\n{imports})\n\n"
    parts = [head, *[f"kernel_{kernel} = kernels.{kernel}\n" for kernel in views]]
    counts = "".join(f'    "{entry.name}": {len(entry.saves)},\n' for entry in entries if entry.saves)
    what = "How many arrays for the backward pass a kernel returns besides its results."
    parts.append(f"\n#: {what}\nSAVES = {{\n{counts}}}\n")
    for entry in entries:
        parts.append(_function(entry))
        if entry.inplace:
            parts.append(_inplace_function(entry))
    return "".join(parts)


def _head(entry: Entry, inplace: bool) -> str:
    parameters = signature(entry, inplace=inplace).replace(", **aliases", "").replace("*old", "*")
    parameters = re.sub(r"(, \*)?, out=None$", "", parameters)
    return f"call, {parameters}"


def _stand_ins(entry: Entry) -> list[str]:
    lines = []
    for position, a in enumerate(entry.schema.arguments, 1):
        p, array = a.parameter, _array(a)
        if a.is_list:
            lines += [f"{p} = tuple({p})", f"{array} = [None if t is None else t._memory_ for t in {p}]"]
        elif a.type == "Tensor":
            lines.append(f"{array} = {p}._memory_")
        elif a.is_tensor:
            lines.append(f"{array} = {p}._memory_ if isinstance({p}, Tensor) else {p}")
        elif a.type == "dtype?":
            lines.append(f"{array} = as_numpy_dtype({p})")
        elif a.type == "int[]...":
            lines.append(f'{p} = int_tuple("{entry.schema.base}", "{p}", {position}, {p})')
        elif (test := not_plain(a)) is not None:
            lines += [f"if {test}:", f"    {p} = {argument_call(entry, a, position)}"]
    return lines


def _results(entry: Entry) -> list[str]:
    results = entry.schema.results
    if entry.schema.returns_list:
        lines = ["results = list(call())", "arrays = [bare(result) for result in results]"]
        if entry.view:
            lines += ["vc = input._vc_ or version_counter(input)", "for result in results:", "    result._vc_ = vc"]
        return lines
    if len(results) > 1:
        names = ", ".join(results)
        lines = [f"({names}), ({', '.join(entry.saves)},) = call()" if entry.saves else f"{names} = call()"]
        return lines + [f"{r}_array = None if {r} is None else bare({r})" for r in results]
    saves = f"result, ({', '.join(entry.saves)},) = call()"  # which the kernel would have returned too
    lines = [saves if entry.saves else "result = call()"]
    lines += ["if result is None:", "    return None", "result_array = bare(result)"]
    if entry.view:
        lines += ["vc = input._vc_ or version_counter(input)", "result._vc_ = vc", "shape = result_array.shape"]
    elif entry.inline:
        lines += ["shape = result_array.shape"]
    return lines


def _function(entry: Entry) -> str:
    body = ["state = local.state", *_stand_ins(entry), *_results(entry)]
    if entry.differentiable:
        body += _record(entry)
    body.append(f"return {_returned(entry)}")
    return f"\n\ndef run_{entry.name}({_head(entry, False)}):\n" + "".join(f"    {line}\n" for line in body)


def _inplace_function(entry: Entry) -> str:
    body = ["state = local.state", *_stand_ins(entry), "result_array = input_array"]
    slots = Slots(entry)
    overlap = overlap_allowed(entry)
    recorded = entry.differentiable and not _without_derivative(entry)
    if entry.differentiable:
        edges: list[str] = []
        for a in entry.differentiable_arguments:
            edges += _edge(a) if a.name != "self" else [_edge(a)[0].replace("leaf_edge", "edge_before_write")]
        names = [f"edge_{a.name}" for a in entry.differentiable_arguments]
        body += [" = ".join(names) + " = None", "if state.grad_enabled:", *("    " + line for line in edges)]
        body += [f"record = {' or '.join(f'{n} is not None' for n in names)}"]
    else:
        body += ["record = state.grad_enabled and input.requires_grad"]
    body += [f"begin_inplace(state, input, record{overlap})"]
    reads_self = any(a.name == "self" for a in slots.tensors)
    if recorded:
        if reads_self:
            body += ["original = clone(input) if record else None"]
        inner = _connect(entry, inplace=True) + _save(entry, "original" if reads_self else None) + _metadata(entry)
        inner = ["shape = result_array.shape", *inner] if entry.inline else inner
        if slots.tensors:
            inner += ["if state.saved_tensors_hooks:", "    pack_before_write(state, node)"]
        body += ["if record:", *("    " + line for line in inner), "else:", "    node = None"]
    else:
        body += [f'node = NotImplementedInPlace(input, "{entry.schema.base}_") if record else None']
    body += ["version = input._version", "call()", "if input._vc_ is not None and input._vc_ is not INFERENCE:"]
    body += ["    input._vc_.version = version  # (what the kernel itself has counted is counted here)"]
    body += [f'end_inplace(input, input._memory_, node, "{entry.schema.base}_")']
    if recorded and slots.results:
        body += ["if record:", '    save_output(node, "result", input)']
    body.append("return input")
    return f"\n\ndef run_{entry.name}_({_head(entry, True)}):\n" + "".join(f"    {line}\n" for line in body)
