"""Writes ``_generated/functions.py``: the operators that users call, as straight-line code.

A wrapper runs the kernel; if something that it was given requires grad, it makes the node, connects it, saves what
the formulas that will run need, and sets the history of the result.
"""

from __future__ import annotations

from .argument_checks import argument_call, not_plain, watched
from .nodes import Slots, needed_by
from .schema import Argument
from .table import Entry

HEADER = '''"""Operators, generated from derivatives/*.yaml. Do not edit: change the table."""

from __future__ import annotations

from builtins import any as _any
from builtins import max as _max
from retrograd import kernels
from retrograd.ops.accidents import unfit
from retrograd.ops.arguments import argument
from retrograd.autograd.basic_nodes import NotImplementedInPlace
from retrograd.autograd.edge import gradient_edge
from retrograd.autograd.inplace import begin_inplace, check_overlap, edge_before_write, end_inplace
from retrograd.autograd.saved_variable import SavedVariable, pack_before_write, save_list, save_output
from retrograd.core.state import local
from retrograd.core.version_counter import INFERENCE, VersionCounter, version_counter
from retrograd.autograd.view_meta import DifferentiableViewMeta, as_view
from retrograd.core.dtypes import as_numpy_dtype
from retrograd.kernels import as_array, ndarray, ufuncs
from retrograd.tensor.lazy_conjugation import class_with_flipped_bit
from retrograd.ops.support import (
    INT,
    NUMBERS,
    array_second,
    int_tuple,
    merge_aliases,
    missing,
    needs_a_tensor,
    not_a_tensor,
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
'''

COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
#: NumPy's names for arguments that torch also accepts.
ALIASES = {"dim": "axis", "keepdim": "keepdims"}


def write_functions(entries: list[Entry]) -> str:
    """The source of the module."""
    parts = [HEADER]
    kernels = sorted({e.kernel for e in entries})
    parts.append("\n" + "".join(f"kernel_{k} = kernels.{k}\n" for k in kernels))
    parts.append("".join(f"ufunc_{u} = ufuncs.{u}\n" for u in sorted({e.ufunc for e in entries if e.ufunc})))
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


def signature(entry: Entry, inplace: bool = False) -> str:
    """The Python parameters, as they stand between the brackets of ``def``."""
    parts, star = [], False
    late = _late(entry)
    for a in entry.schema.arguments:
        if a.type == "int[]...":
            parts.append(f"*{a.parameter}")
            star = True
            continue
        if a.keyword_only and not star:
            parts.append("*")
            star = True
        default = "None" if a in late and not inplace else a.default
        parts.append(a.parameter if default is None else f"{a.parameter}={default}")
    if has_out(entry) and not inplace:
        if not star:
            parts.append("*")
        parts.append("out=None")
    if _has_aliases(entry):
        parts.append("**aliases")
    return ", ".join(parts)


def _has_aliases(entry: Entry) -> bool:
    """Does the function take NumPy's names, or ``size=(2, 3)``?"""
    public = entry.method or not entry.view
    return any((a.name in ALIASES and public) or a.type == "int[]..." for a in entry.schema.arguments)


def _late(entry: Entry) -> list[Argument]:
    """The arguments that must be given, from the first on that has NumPy's name too, and may be given by that."""
    required = [a for a in entry.schema.arguments if a.default is None and not a.keyword_only]
    first = next((i for i, a in enumerate(required) if a.name in ALIASES), len(required))
    late = required[first:]
    may_be_none = any(a.type == "any" or a.type.endswith(("?", "...")) for a in late)
    return [] if may_be_none else late


def has_out(entry: Entry) -> bool:
    """Does the function take ``out=``? Those whose results are new memory."""
    return not entry.view and not entry.schema.returns_list


def _call_arguments(entry: Entry) -> str:
    """The arguments as the wrapper received them, to call it (or an interceptor) again."""
    return "".join(
        f"*{a.parameter}, " if a.type == "int[]..." else f"{a.parameter}, "
        for a in entry.schema.arguments
        if not a.keyword_only
    )


def _keywords(entry: Entry) -> str:
    return "{" + ", ".join(f'"{a.parameter}": {a.parameter}' for a in entry.schema.arguments if a.keyword_only) + "}"


def _array(a: Argument) -> str:
    """The local name of what the kernel gets for an argument."""
    return f"{a.parameter}_array" if a.is_tensor or a.type == "dtype?" else a.parameter


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
    # Inside `threshold(input, threshold, value)`, the function's name is its argument's.
    shadowed = any(a.parameter == entry.name for a in arguments)
    public = f'globals()["{entry.name}"]' if shadowed else entry.name
    if reflected:
        body += ["if not isinstance(other, NUMBERS):", f'    return reflected("{operator}", input, other)']
    if not operator and has_out(entry):
        body += ["if out is not None:"]
        checks = "" if entry.differentiable else ", False"
        body += [f"    return write_out({public}, out, ({_call_arguments(entry)}), {_keywords(entry)}{checks})"]
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
    run = _run_ufunc(entry) if operator and entry.ufunc and not reflected else _run_kernel(entry)
    body += watched(entry, entry.schema.base, run)
    body += _make_results(entry)
    if entry.differentiable:
        body += _record(entry)
    body.append(f"return {_returned(entry)}")
    return f"\n\ndef {name}({head}):\n" + "".join(f"    {line}\n" for line in body)


def _send_strangers_away(entry: Entry) -> list[str]:
    """In a special method, before an interceptor is called: what `_unwrap` does later for calls without one."""
    operands = "Tensor" if entry.schema.arguments[1].type == "Tensor" else "(Tensor, *NUMBERS)"
    return [f"    if not isinstance(other, {operands}):", "        return NotImplemented"]


def takes_numbers(entry: Entry) -> bool:
    """May the first argument be a number too, as in ``torch.mul(2, x)``? If Python has a sign that computes with it."""
    arguments = entry.schema.arguments
    return any(o not in COMPARISONS for o in entry.operators) and [a.type for a in arguments[1:2]] == ["Tensor|Scalar"]


def _unwrap(entry: Entry, operator: str | None = None, inplace: bool = False) -> list[str]:
    """Tensors to arrays, and the checks that go with it."""
    lines = []
    late = _late(entry) if not operator and not inplace and _has_aliases(entry) else []
    for position, a in enumerate(entry.schema.arguments, 1):
        p, arr = a.parameter, _array(a)
        where = f'"{entry.schema.base}", "{p}", {position}'
        if a.type == "Tensor" or (inplace and position == 1):
            # A view is taken of the memory, whatever its bits say. See Note [Lazy conjugation].
            data = "_memory" if entry.view and position == 1 else "_data"
            lines += ["try:", f"    {arr} = {p}.{data}", "except AttributeError:"]
            if operator and position == 2:
                lines.append("    return NotImplemented")
            elif position == 1 and takes_numbers(entry) and not inplace:
                lines.append(
                    f"    return number_first({entry.name}, {where}, ({_call_arguments(entry)}), {_keywords(entry)})"
                )
            else:
                lines.append(f"    raise not_a_tensor({where}, {p}) from None")
        elif a.type == "Tensor?":
            lines += ["try:", f"    {arr} = None if {p} is None else {p}._data", "except AttributeError:"]
            lines.append(f"    raise not_a_tensor({where}, {p}) from None")
        elif a.type == "Tensor|Scalar":
            lines += [f"if {p}.__class__ is Tensor or isinstance({p}, Tensor):"]
            lines += [f"    {arr} = {p}._data"]
            if operator:
                compares = operator in ("__eq__", "__ne__")
                answer = f"array_second({entry.name}, input, {p})" if compares else "NotImplemented"
                lines += [f"elif not isinstance({p}, NUMBERS):", f"    return {answer}"]
            elif a.default == "None":
                lines += [f"elif {p} is None:", f"    {arr} = None"]
            lines += ["else:", f"    {p} = {arr} = number({where}, {p})"]
        elif a.type == "Tensor[]":
            lines += [f"{p} = tensor_list({where}, {p})", f"{arr} = tensor_list_arrays({p})"]
        elif a.type == "int[]...":
            if not entry.view:  # (views are asked for no sizes from within)
                lines += [f"if not {p}:", f'    raise missing("{entry.schema.base}", "{p}")']
            lines.append(f"{p} = int_tuple({where}, {p})")
        elif operator and position > 2:
            continue  # its default
        elif a.type == "dtype?":
            lines.append(f"{arr} = None if {p} is None else as_numpy_dtype({p})")
        elif (test := not_plain(a)) is not None and not (a.type == "int" and a in late):  # (or looked at already)
            lines += [f"if {test}:", f"    {p} = {argument_call(entry, a, position)}"]
    either = [a for a in entry.schema.arguments if a.is_tensor]
    if either and all(a.type == "Tensor|Scalar" for a in either):
        # A number is its own array.
        numbers = " and ".join(f"{a.parameter} is {_array(a)}" for a in either)
        names = ", ".join(a.parameter for a in either)
        lines += [f"if {numbers}:", f'    raise needs_a_tensor("{entry.schema.base}", {names})']
    return lines


def _kernel_arguments(entry: Entry) -> str:
    return ", ".join(_array(a) for a in entry.schema.arguments)


def _run_kernel(entry: Entry) -> list[str]:
    targets = [f"{r}_array" for r in entry.schema.results] + entry.saves
    if entry.schema.returns_list:
        targets = ["arrays", *entry.saves]
    target, arguments = ", ".join(targets), _kernel_arguments(entry)
    call = f"{target} = kernel_{entry.kernel}({arguments})"
    if entry.inline:
        return [
            "try:",
            f"    result_array = {entry.inline.replace('self', 'input_array')}",
            "    shape = result_array.shape",
            "    if result_array.base is not input_array or shape != size:",
            f"        result_array = kernels.checked_{entry.kernel}({arguments}, result_array)",
            "except (TypeError, ValueError):",
            f"    {call}",
            "    shape = result_array.shape",
        ]
    if entry.view:
        return [call]
    # See core/quiet.py.
    return [
        "try:",
        f"    {call}",
        "except RuntimeWarning:",
        f"    {target} = quietly(kernel_{entry.kernel}, {arguments})",
    ]


def _run_ufunc(entry: Entry) -> list[str]:
    """The kernel, with its commonest case, two arrays of one dtype, inline."""
    call = f"kernel_{entry.kernel}({_kernel_arguments(entry)})"
    return [
        "try:",
        "    if other_array.__class__ is ndarray and input_array.dtype is other_array.dtype:",
        f"        result_array = ufunc_{entry.ufunc}(input_array, other_array)",
        "        if result_array.__class__ is not ndarray:",
        "            result_array = as_array(result_array)",
        "    else:",
        f"        result_array = {call}",
        "except (RuntimeWarning, TypeError, ValueError):",
        f"    result_array = quietly(kernel_{entry.kernel}, {_kernel_arguments(entry)})",
    ]


def _make_results(entry: Entry) -> list[str]:
    lines = []
    data = "_memory" if entry.view else "_data"
    cls = f'class_with_flipped_bit(input, "{entry.flips}")' if entry.flips else "Tensor"
    if entry.view:
        lines.append("vc = input._vc or version_counter(input)")
    if entry.schema.returns_list:
        lines += ["results = []", "for array in arrays:", "    result = new(Tensor)", f"    result.{data} = array"]
        lines += [f"    result._vc = {'vc' if entry.view else 'state.new_vc'}"]
        lines += ["    result._meta = result._edge = None"]
        lines += ["    results.append(result)"]
        return lines
    for r in entry.schema.results:
        lines += [f"{r} = new({cls})", f"{r}.{data} = {r}_array"]
        lines += [f"{r}._vc = {'vc' if entry.view else 'state.new_vc'}"]
        # (A view gets its meta below.)
        lines += [f"{r}._edge = None" if entry.view and entry.differentiable else f"{r}._meta = {r}._edge = None"]
    return lines


def _edge(a: Argument) -> list[str]:
    p, edge = a.parameter, f"edge_{a.name}"
    if a.is_list:
        return [f"edges = tuple(t._edge or t._meta and gradient_edge(t) for t in {p})"]
    if a.type == "Tensor|Scalar":
        # A number (or None) is its own array.
        return [f"{edge} = None if {p} is {_array(a)} else {p}._edge or {p}._meta and gradient_edge({p})"]
    if a.type == "Tensor?":
        return [f"{edge} = None if {p} is None else {p}._edge or {p}._meta and gradient_edge({p})"]
    return [f"{edge} = {p}._edge or {p}._meta and gradient_edge({p})"]


def _connect(entry: Entry) -> list[str]:
    """Make the node: edges, numbers."""
    arguments = entry.differentiable_arguments
    lines = [f"node = nodes.{entry.node}()"]
    if entry.tensor_node:
        either = [a for a in entry.schema.arguments if a.type == "Tensor|Scalar"]
        given = " or ".join(f"{a.parameter} is not {_array(a)}" for a in either)
        lines = []
        for test, name, form in (f"if {given}", entry.tensor_node, entry), ("else", entry.node, entry.for_numbers()):
            named = "".join(f"edge_{a.name}, " for a in form.differentiable_arguments)
            lines += [f"{test}:", f"    node = nodes.{name}()", f"    node.next_edges = ({named})"]
    if arguments[0].is_list:
        lines += ["node.next_edges = edges"]
        lines += ["node.topological_nr = 1 + _max(edge[0].topological_nr for edge in edges if edge is not None)"]
    elif len(arguments) == 1:
        edge = f"edge_{arguments[0].name}"
        lines += [f"node.next_edges = ({edge},)", f"node.topological_nr = {edge}[0].topological_nr + 1"]
    else:
        edges = [f"edge_{a.name}" for a in arguments]
        if not entry.tensor_node:
            lines += [f"node.next_edges = ({', '.join(edges)})"]
        lines += [f"topological_nr = 0 if {edges[0]} is None else {edges[0]}[0].topological_nr"]
        for edge in edges[1:]:
            lines += [f"if {edge} is not None and {edge}[0].topological_nr > topological_nr:"]
            lines += [f"    topological_nr = {edge}[0].topological_nr"]
        lines += ["node.topological_nr = topological_nr + 1"]
    lines += ["node.sequence_nr = state.sequence_nr", "state.sequence_nr += 1", "node.extras = None"]
    return lines


def _any_edge(entry: Entry) -> str:
    arguments = entry.differentiable_arguments
    if arguments[0].is_list:
        return "_any(edges)"  # operators called `any` and `max` hide the builtins
    return " or ".join(f"edge_{a.name} is not None" for a in arguments)


def _save(entry: Entry, original: str | None = None) -> list[str]:
    """Fill the node's slots. `original` stands for ``self`` where an in-place operator has overwritten it."""
    slots = Slots(entry)
    several = len(entry.differentiable_arguments) > 1
    lines = []
    for a in slots.tensors:
        p = a.parameter
        if a.is_list:
            lines.append(f"node.{a.name}_ = save_list({p})")
            continue
        value = original if original and a.name == "self" else p
        if a.type == "Tensor":
            save = f"node.{a.name}_ = {value} if {value}._vc is None else SavedVariable({value})"
        elif a.type == "Tensor?":
            save = f"node.{a.name}_ = {value} if {value} is None or {value}._vc is None else SavedVariable({value})"
        else:
            # A number (or None) is its own array.
            save = (
                f"node.{a.name}_ = {value} if {value} is {_array(a)} or {value}._vc is None else SavedVariable({value})"
            )
        readers = needed_by(entry, a.name)
        if several and len(readers) < len(entry.differentiable_arguments):
            lines += [f"if {' or '.join(f'edge_{r} is not None' for r in readers)}:", f"    {save}"]
        else:
            lines.append(save)
    for a, what in slots.attributes:
        p = a.parameter
        if a.is_list:
            what_of = {"shapes": "shape", "dtypes": "dtype"}[what]
            lines.append(f"node.{a.name}_{what} = tuple(array.{what_of} for array in {p}_array)")
        elif a.type == "Tensor":
            lines.append(f"node.{a.name}_{what} = {p}_array.{what}")
        else:
            lines.append(f"node.{a.name}_{what} = {p}_array.{what} if hasattr({p}_array, '{what}') else None")
    for a in slots.plain:
        lines.append(f"node.{a.name}_ = {_array(a)}")
    for r, what in slots.result_attributes:
        lines.append(f"node.{r}_{what} = {r}_array.{what}")
    for s in slots.saves:
        lines.append(f"node.{s}_ = {s}")
    return lines


def _refuse_unrecorded(entry: Entry) -> list[str]:
    """Refuse an argument that requires grad and has no formula: its gradient would be zero without a word.

    (Only optional ones, such as weights: the others are indices and masks, which never require grad.)
    """
    recorded = entry.differentiable_arguments
    lines = []
    for a in entry.schema.arguments:
        optional = a.type == "Tensor?" or (a.type == "Tensor|Scalar" and a.default == "None")
        if optional and a not in recorded:
            given = f"{a.parameter} is not None" if a.type == "Tensor?" else f"{a.parameter} is not {_array(a)}"
            lines += [f"if {given} and {a.parameter}.requires_grad:"]
            lines += [f'    raise not_differentiable("{entry.schema.base}", "{a.name}")']
    return lines


def _record(entry: Entry) -> list[str]:
    lines = _refuse_unrecorded(entry)
    for a in entry.differentiable_arguments:
        lines += _edge(a)
    inner = _connect(entry) + _save(entry)
    slots = Slots(entry)
    if entry.view:
        return _record_view(entry, lines, inner)
    if entry.schema.returns_list:
        inner += ["node.metadata_of_inputs = tuple((a.shape, a.dtype, a.__class__) for a in arrays)"]
        inner += ["node.num_inputs = len(arrays)", "node.shape = None"]
        inner += ["for position, result in enumerate(results):", "    result._edge = (node, position)"]
    else:
        inner += _metadata(entry)
        for r, _ in slots.results:
            inner += ["vc = VersionCounter()", "vc.version = 0", f"{r}._vc = vc"]
            inner += [f"node.{r}_ = {r}_array", f"node.{r}_vc = vc"]
        for position, r in enumerate(entry.schema.results):
            if entry.output_differentiability[position]:
                inner += [f"{r}._edge = (node, {entry.output_nr(position)})"]
    body = [f"if {_any_edge(entry)}:", *("    " + line for line in inner)]
    return ["if state.grad_enabled:", *("    " + line for line in lines + body)]


def _record_view(entry: Entry, edges: list[str], inner: list[str]) -> list[str]:
    """The same for a view, which also learns its base. See Note [Views and in-place]."""
    arguments = "".join(f"{_array(a)}, " for a in entry.schema.arguments[1:])
    step = f"kernel_{entry.kernel}, {entry.name}, ({arguments.strip()})"
    if entry.schema.returns_list:
        inner += ["node.metadata_of_inputs = tuple((a.shape, a.dtype, a.__class__) for a in arrays)"]
        inner += ["node.num_inputs = len(arrays)", "node.shape = None"]
        after = ["for position, result in enumerate(results):"]
        after += ["    edge = None if node is None else (node, position)"]
        after += [f"    as_view(state, input, result, ({step}, position), edge, True)"]
    else:
        inner += [*_metadata(entry), "edge = (node, 0)"]
        # as_view(), for the commonest case inline.
        inner += ["if input._meta is None and vc is not INFERENCE:"]
        inner += ["    result._meta = meta = new(DifferentiableViewMeta)"]
        inner += ["    meta.edge = edge", "    meta.attr_version = vc.version", "    meta.base = input"]
        inner += [f"    meta.step = ({step}, None)", "    return result"]
        after = [f"as_view(state, input, result, ({step}, None), edge)"]
    body = [f"if {_any_edge(entry)}:", *("    " + line for line in inner)]
    start = "node = None" if entry.schema.returns_list else "edge = None"
    return [start, "if state.grad_enabled:", *("    " + line for line in edges + body), *after]


def _metadata(entry: Entry) -> list[str]:
    """What the node's incoming gradients must look like."""
    results = entry.schema.results
    if len(results) == 1:
        fields = {"shape": "shape", "dtype": "dtype", "array_class": "__class__"}
        lines = [f"node.{field} = {results[0]}_array.{attribute}" for field, attribute in fields.items()]
        return ["node.shape = shape", *lines[1:]] if entry.inline else lines
    results = [r for r, has_gradient in zip(results, entry.output_differentiability) if has_gradient]
    each = "".join(f"({r}_array.shape, {r}_array.dtype, {r}_array.__class__), " for r in results)
    return [f"node.metadata_of_inputs = ({each.strip()})", f"node.num_inputs = {len(results)}", "node.shape = None"]


def _returned(entry: Entry) -> str:
    if entry.schema.returns_list:
        return "tuple(results)"
    if len(entry.schema.results) == 1:
        return entry.schema.results[0]
    return f"{entry.name}_result({', '.join(entry.schema.results)})"


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
    overlap = ", True" if entry.may_overlap else ""
    if entry.differentiable:
        edges: list[str] = []
        for a in entry.differentiable_arguments:
            edges += _edge(a) if a.name != "self" else [_edge(a)[0].replace("gradient_edge", "edge_before_write")]
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
    if entry.differentiable:
        # Saving can refuse too, so it comes before the write.
        body += ["result_array = input_array"]
        inner = _connect(entry) + _save(entry, "original" if reads_self else None)
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


def _run_inplace(entry: Entry, call: str) -> list[str]:
    """The kernel, writing to its first argument, with the commonest case inline as in `_run_ufunc`."""
    if not entry.ufunc:
        return [call]
    further = "".join(
        f" and {a.parameter} is not True and {a.parameter} == {a.default}" for a in entry.schema.arguments[2:]
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
        test = f"{p}._vc is not None and {p}._vc is input._vc"
        if not strict:
            test += f" and {p} is not input"
        if a.type == "Tensor|Scalar":
            test = f"{p} is not {arr} and {test}"
        lines += [f"if {test}:", f"    check_overlap(input_array, {arr}{', True' if strict else ''})"]
    return lines


def _exports(entries: list[Entry]) -> str:
    lines = ["\n"]
    for entry in entries:
        if len(entry.schema.results) > 1:
            fields = ", ".join(f'"{r}"' for r in entry.schema.results)
            lines.append(
                f'{entry.name}_result = return_type("{entry.schema.base.lstrip("_")}", {fields})\n'
            )
    lines.append("\n\n#: Operators that users see under their own name.\nPUBLIC = {\n")
    for entry in entries:
        if not entry.schema.overload:
            lines.append(f'    "{entry.name}": {entry.name},\n')
            for name in entry.aliases:
                lines.append(f'    "{name}": renamed({entry.name}, "{name}"),\n')
    lines.append("}\n\nMETHODS = {\n")
    for entry in entries:
        if entry.method:
            lines.append(f'    "{entry.schema.base}": {entry.name},\n')
            for name in entry.aliases:
                # The method is the function, where that is public.
                alias = f'renamed({entry.name}, "{name}")' if entry.schema.overload else f'PUBLIC["{name}"]'
                lines.append(f'    "{name}": {alias},\n')
            if entry.inplace:
                lines.append(f'    "{entry.schema.base}_": {entry.name}_,\n')
                lines += [f'    "{name}_": renamed({entry.name}_, "{name}_"),\n' for name in entry.aliases]
        elif entry.inplace:
            lines.append(f'    "{entry.name}_": {entry.name}_,\n')
        for operator in entry.operators:
            lines.append(f'    "{operator}": {operator},\n')
    lines.append("}\n")
    return "".join(lines)
