"""The part of a wrapper that records: edges, the node, what it saves."""

from __future__ import annotations

from .calls import _array, edge_comes_last
from .nodes import Slots, needed_by
from .schema import Argument
from .table import Entry


def _edge(a: Argument) -> list[str]:
    p, edge = a.parameter, f"edge_{a.name}"
    if a.is_list:
        return [f"edges = tuple(t._edge_ or t._grad_meta_ and leaf_edge(t) for t in {p})"]
    if a.type == "Tensor|Scalar":
        # A number (or None) is its own array.
        return [f"{edge} = None if {p} is {_array(a)} else {p}._edge_ or {p}._grad_meta_ and leaf_edge({p})"]
    if a.type == "Tensor?":
        return [f"{edge} = None if {p} is None else {p}._edge_ or {p}._grad_meta_ and leaf_edge({p})"]
    return [f"{edge} = {p}._edge_ or {p}._grad_meta_ and leaf_edge({p})"]


def _connect(entry: Entry, inplace: bool = False) -> list[str]:
    """Make the node: edges, numbers."""
    arguments = entry.differentiable_arguments
    lines = [f"node = nodes.{(inplace and entry.inplace_node) or entry.node}()"]
    for name, node in entry.given_nodes.items():
        lines = [f"node = (nodes.{entry.node} if {name} is None else nodes.{node})()"]
    if entry.tensor_node:
        either = [a for a in entry.schema.arguments if a.type == "Tensor|Scalar"]
        given = " or ".join(f"{a.parameter} is not {_array(a)}" for a in either)
        lines = []
        for test, name, form in (f"if {given}", entry.tensor_node, entry), ("else", entry.node, entry.for_numbers()):
            named = "".join(f"edge_{a.name}, " for a in form.differentiable_arguments)
            lines += [f"{test}:", f"    node = nodes.{name}()", f"    node.next_edges = ({named})"]
    if entry.number_nodes:
        by_name = {a.name: a for a in entry.schema.arguments}
        forms: list[tuple[str, str, set[str]]] = [
            (f"{by_name[n].parameter} is {_array(by_name[n])}", node, {n}) for n, node in entry.number_nodes.items()
        ]
        lines = []
        for position, (test, node, numbers) in enumerate([*forms, ("", entry.node, set())]):
            kept = "".join(f"edge_{a.name}, " for a in entry.without(numbers).differentiable_arguments)
            lines += [f"{'elif' if position else 'if'} {test}:" if test else "else:"]
            lines += [f"    node = nodes.{node}()", f"    node.next_edges = ({kept})"]
    if arguments[0].is_list:
        lines += ["node.next_edges = edges"]
    elif not entry.tensor_node and not entry.number_nodes:
        lines += [f"node.next_edges = ({''.join(f'edge_{a.name}, ' for a in arguments).strip()})"]
    lines += ["node.sequence_nr = state.sequence_nr", "state.sequence_nr += 1", "node.extras = None"]
    return lines


def _any_edge(entry: Entry) -> str:
    arguments = entry.differentiable_arguments
    if arguments[0].is_list:
        return "_any(edges)"  # an operator called `any` hides the builtin
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
            save = f"node.{a.name}_ = {value} if {value}._vc_ is None else save({value})"
        elif a.type == "Tensor?":
            save = f"node.{a.name}_ = {value} if {value} is None or {value}._vc_ is None else save({value})"
        else:
            # A number (or None) is its own array.
            save = (
                f"node.{a.name}_ = {value} if {value} is {_array(a)} or {value}._vc_ is None else save({value})"
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


def _record(entry: Entry, dtype_is_known: bool = False) -> list[str]:
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
        inner += ["for position, result in enumerate(results):", "    result._edge_ = (node, position)"]
    else:
        inner += _metadata(entry, dtype_is_known)
        for r, _ in slots.results:
            inner += ["vc = VersionCounter()", "vc.version = 0", f"{r}._vc_ = vc"]
            inner += [f"node.{r}_ = {r}_array", f"node.{r}_vc = vc"]
        for position, r in enumerate(entry.schema.results):
            if entry.output_differentiability[position]:
                inner += [f"{r}._edge_ = (node, {entry.output_nr(position)})"]
        if edge_comes_last(entry):
            inner += [f"return {entry.schema.results[0]}"]
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
        plain = "(meta := input._grad_meta_) is None or meta.__class__ is AutogradMeta and input.__class__ is Tensor"
        inner += [f"if ({plain}) and vc is not INFERENCE:"]
        inner += ["    result._grad_meta_ = meta = DifferentiableViewMeta()"]
        inner += ["    meta.edge = edge", "    meta.attr_version = vc.version", "    meta.base = input"]
        inner += [f"    meta.step = ({step}, None)", "    return result"]
        after = [f"as_view(state, input, result, ({step}, None), edge)"]
    body = [f"if {_any_edge(entry)}:", *("    " + line for line in inner)]
    start = "node = None" if entry.schema.returns_list else "edge = None"
    return [start, "if state.grad_enabled:", *("    " + line for line in edges + body), *after]


def _metadata(entry: Entry, dtype_is_known: bool = False) -> list[str]:
    """What the node's incoming gradients must look like."""
    results = entry.schema.results
    if len(results) == 1:
        fields = {"shape": "shape", "dtype": "dtype", "array_class": "__class__"}
        lines = [f"node.{field} = {results[0]}_array.{attribute}" for field, attribute in fields.items()]
        if entry.inline:
            lines[0] = "node.shape = shape"
        if dtype_is_known:
            lines[1] = "node.dtype = dtype"
        return lines
    results = [r for r, has_gradient in zip(results, entry.output_differentiability) if has_gradient]
    each = "".join(f"({r}_array.shape, {r}_array.dtype, {r}_array.__class__), " for r in results)
    return [f"node.metadata_of_inputs = ({each.strip()})", f"node.num_inputs = {len(results)}", "node.shape = None"]
