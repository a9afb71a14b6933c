"""Wrappers of in-place operators."""

from __future__ import annotations

import ast

from .argument_checks import watched
from .calls import (
    _array,
    _call_arguments,
    _kernel_arguments,
    _keywords,
    _send_strangers_away,
    _unwrap,
    overlap_allowed,
    signature,
)
from .nodes import Slots
from .recording import _connect, _edge, _metadata, _save
from .table import Entry


def _inplace_wrapper(entry: Entry, operator: str | None = None) -> str:
    """The in-place variant ``NAME_``: checks, kernel with ``out=``, version, history. See autograd/inplace.py.

    Or the special method `operator`, which answers NotImplemented to strangers.
    """
    name = f"{entry.name}_"
    if operator:
        head = "input, other"
        body = [f"{a.parameter} = {a.default}" for a in entry.schema.arguments[2:]]
    else:
        head = signature(entry, inplace=True)
        body = [f'"""In-place {entry.schema.base}."""']
        if entry.old_form:
            body += ["if old:", f"    return old_form({name}, ({_call_arguments(entry)}*old), {_keywords(entry)})"]
    if "**aliases" in head:
        body += ["if aliases:"]
        body += [f"    return merge_aliases({name}, ({_call_arguments(entry)}), {_keywords(entry)}, aliases)"]
    body += ["state = local.state", "if state.interceptor is not None:"]
    if operator:
        body += _send_strangers_away(entry)
    body += [f"    return state.interceptor({name}, ({_call_arguments(entry)}), {_keywords(entry)})"]
    body += _unwrap(entry, operator, inplace=True)
    slots = Slots(entry)
    reads_self = any(a.name == "self" for a in slots.tensors)
    overlap = overlap_allowed(entry)
    if entry.differentiable:
        edges: list[str] = []
        for a in entry.differentiable_arguments:
            edges += _edge(a) if a.name != "self" else [_edge(a)[0].replace("leaf_edge", "edge_before_write")]
        names = [f"edge_{a.name}" for a in entry.differentiable_arguments]
        body += [" = ".join(names) + " = None", "if state.grad_enabled:", *("    " + line for line in edges)]
        record = " or ".join(f"{n} is not None" for n in names)
        body += [f"record = {record}", f"begin_inplace(state, input, record{overlap})"]
        if reads_self:
            # The values that are about to be overwritten, with their history.
            body += ["original = clone(input) if record else None"]
    else:
        body += ["record = state.grad_enabled and input.requires_grad", f"begin_inplace(state, input, record{overlap})"]
    body += _check_overlap(entry)
    call = f"once(kernel_{entry.kernel}, {_kernel_arguments(entry)}, out=input_array)"
    if entry.differentiable and not _without_derivative(entry):
        # Saving can refuse too, so it comes before the write.
        body += ["result_array = input_array"]
        inner = _connect(entry, inplace=True) + _save(entry, "original" if reads_self else None)
        inner += _metadata(entry)
        if slots.tensors:
            # Hooks must see what is saved before it is overwritten (it may be an alias of what is written to).
            inner += ["if state.saved_tensors_hooks:", "    pack_before_write(state, node)"]
        body += ["if record:", *("    " + line for line in inner)]
        body += ["else:", "    node = None", *watched(entry, f"{entry.schema.base}_", _run_inplace(entry, call))]
        body += [f'end_inplace(input, input_array, node, "{entry.schema.base}_")']
        if slots.results:
            body += ["if record:", '    save_output(node, "result", input)']
    else:
        body += [f'node = NotImplementedInPlace(input, "{entry.schema.base}_") if record else None']
        body += watched(entry, f"{entry.schema.base}_", _run_inplace(entry, call))
        body += [f'end_inplace(input, input_array, node, "{entry.schema.base}_")']
    body.append("return input")
    return f"\n\ndef {operator or name}({head}):\n" + "".join(f"    {line}\n" for line in body)


def _without_derivative(entry: Entry) -> bool:
    """Does the result require grad, as torch's does, though there is no derivative?"""
    calls = (f.tree.func for f in entry.formulas if isinstance(f.tree, ast.Call))
    return {c.id for c in calls if isinstance(c, ast.Name)} == {"no_derivative"}


def _run_inplace(entry: Entry, call: str) -> list[str]:
    """The kernel, writing to its first argument, with the commonest case inline as in `_run_ufunc`."""
    if not entry.ufunc:
        return [call]
    further = "".join(
        f" and {a.parameter}.__class__ is int and {a.parameter} == {a.default}" for a in entry.schema.arguments[2:]
    )
    return [
        f"if other_array.__class__ is ndarray and input_array.dtype is other_array.dtype{further}:",
        "    try:",
        f"        ufunc_{entry.ufunc}(input_array, other_array, input_array)",
        "    except RuntimeWarning:",
        "        pass  # see core/quiet.py: NumPy has written by then",
        "    except (TypeError, ValueError):",
        f"        {call}",
        "else:",
        f"    {call}",
    ]


def _check_overlap(entry: Entry) -> list[str]:
    """What is read may not overlap with what is written: only tensors that share a version counter can."""
    lines = []
    for a in entry.schema.arguments[1:]:
        if a.type not in ("Tensor", "Tensor|Scalar") or a.name == "value":
            continue
        p, arr, strict = a.parameter, _array(a), a.name in entry.apart
        test = f"{p}._vc_ is not None and {p}._vc_ is input._vc_"
        test = f"{p} is input or {test}" if strict else f"{test} and {p} is not input"
        if a.type == "Tensor|Scalar":
            test = f"{p} is not {arr} and ({test})"
        lines += [f"if {test}:", f"    check_overlap(input_array, {arr}{', True' if strict else ''})"]
    return lines
