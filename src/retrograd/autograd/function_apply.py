"""``Function.apply``: runs a custom function's forward and puts its node into the graph.

The steps, in order:

1. the arguments are taken apart (function_structure.py) and the node is made, with the edges that the inputs
   have *now*;
2. ``forward`` (and ``setup_context``) run without recording;
3. what they said about their tensors is checked;
4. under forward mode, ``jvp`` runs (function_jvp.py);
5. the outputs get their history, and what is to be saved is saved.

Note [Outputs of custom functions]
What an output tensor becomes depends on where it comes from:

* a new tensor: it gets the node as its history;
* an input as it is: an alias is returned, a view of the input, with the node as history; the input itself
  keeps its own;
* an input that was modified in place and marked dirty: itself, its history rebased onto the node (if it is a view,
  through CopySlices on its base: Note [Views and in-place] in view_meta.py);
* a view of an input or of something else: it gets the node as history.  To write to it later would replay the view
  on its base and so lose the custom backward; hence its `creation_meta` forbids that, unless ``ctx._is_pure_view``
  says that the function is nothing but a view;
* not differentiable (marked so, not floating point, or nothing is recorded): no history; inputs as aliases.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ..core.dtypes import float32
from ..core.late import operators as ops
from ..core.late import transforms
from ..core.state import ThreadState, local, process
from ..core.where import users_level
from ..kernels import ndarray
from ..tensor import Tensor
from ..tensor.overriding import overrides
from .edge import gradient_edge
from .function_ctx import BackwardCFunction
from .function_jvp import run_jvp
from .function_structure import LEAF, put_together, take_apart
from .hooks import NodeHooks, rebase_hooks
from .inplace import bump_version, rebase_history
from .node import InputMetadata, Node, TensorNode, init_node, name_of
from .view_meta import CreationMeta, check_view

#: What the methods of FunctionCtx keep for `apply`.
_WHILE_FORWARD_RUNS = ("to_save", "saved_for_forward", "dirty_tensors", "non_differentiable")


def apply(cls: Any, args: tuple[Any, ...], kwargs: dict[Any, Any], with_setup_context: bool) -> Any:
    """Call the Function `cls`, which has a `setup_context` or whose forward has a `ctx`."""
    state = local.state
    if state.func_depth or state.batch_levels:
        result = transforms("custom_functions").apply_transformed(cls, args, kwargs, with_setup_context)
        if result is not NotImplemented:
            return result
    required = len(args)
    named: dict[Any, Any] = kwargs
    if with_setup_context:
        args, named = _bind(cls.forward, args, kwargs)
        required = len(args)
    elif kwargs:
        args, named = _bind(cls.forward, (None, *args), kwargs)
        args = args[1:]
        named = {name: value for name, value in named.items() if name in kwargs}

    ctx, tensors = _make_node(cls, state, args, named, required)
    edges = ctx.next_edges
    recording = bool(edges)
    try:
        output = _run_forward(cls, ctx, state, args, named, with_setup_context)
        if ctx.next_edges is not edges or ctx.extras is not None or ctx.array_class is not None:
            _check_engine_s_own(ctx, edges)
        if recording and not process.dual_levels and _is_plain(ctx, output, tensors):
            _record_plain(ctx, output)
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        leaves: list[Any] = []
        ctx._output_structures = tuple([take_apart(value, leaves) for value in outputs])
        results = _Outputs(cls, ctx, tensors, leaves, recording, with_setup_context).finish()
        if process.dual_levels:
            run_jvp(cls, ctx, tensors, leaves, results)
        ctx.saved_for_forward = None
        if recording:
            ctx._save()
    finally:
        # These lead to the outputs, and those lead here.
        attributes = ctx.__dict__
        if attributes:
            for name in _WHILE_FORWARD_RUNS:
                if name in attributes:
                    del attributes[name]

    values = put_together(ctx._output_structures, results)
    if not isinstance(output, tuple):
        return values[0]
    return type(output)(*values) if hasattr(output, "_fields") else tuple(values)


# ------------------------------------------------------------------------------------------------------------ arguments


def _bind(
    forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[Any, Any]
) -> tuple[tuple[Any, ...], dict[Any, Any]]:
    """The arguments with those given by name, and defaults, at their positions; what can only be named stays named."""
    bound = inspect.signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args, bound.kwargs


def _make_node(
    cls: Any, state: ThreadState, args: tuple[Any, ...], named: dict[Any, Any], required: int
) -> tuple[BackwardCFunction, list[Tensor]]:
    """The node, with its edges, and the tensors among the arguments' leaves."""
    ctx: BackwardCFunction = cls._backward_cls()
    init_node(ctx, ())  # numbered before what forward() may record
    ctx.__dict__.clear()
    leaves: list[Any] = []
    structures = [take_apart(value, leaves) for value in args]
    if named:
        rest: list[Any] = []
        structure = take_apart(named, rest)
        if structure is not LEAF:
            # Gradients of what can only be named come as one dict at the end.
            structures.append(structure)
            leaves += rest
    tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
    ctx._input_structures = tuple(structures)
    ctx._is_tensor_input = [isinstance(leaf, Tensor) for leaf in leaves]
    ctx._required_gradients = required

    wants = [isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves]
    ctx.needs_input_grad = tuple(put_together(structures, wants, any))
    if state.grad_enabled is not False and any(wants):  # torch records these in inference mode too
        ctx.next_edges = tuple([gradient_edge(tensor) for tensor in tensors])
    return ctx, tensors


def _run_forward(
    cls: Any, ctx: Any, state: ThreadState, args: tuple[Any, ...], named: dict[Any, Any], with_setup_context: bool
) -> Any:
    """forward() and setup_context(), with neither history nor tangents."""
    before = state.grad_enabled, state.fw_grad_enabled
    state.grad_enabled = state.fw_grad_enabled = False
    try:
        if not with_setup_context:
            return cls.forward(ctx, *args, **named)
        output = cls.forward(*args, **named)
        cls.setup_context(ctx, args, output)
        return output
    finally:
        state.grad_enabled, state.fw_grad_enabled = before


def _check_engine_s_own(ctx: Any, edges: tuple[Any, ...]) -> None:
    """The user may put anything on ctx, but for the few names that the engine itself reads there."""
    for name, untouched in (
        ("next_edges", ctx.next_edges is edges),
        ("extras", ctx.extras is None or isinstance(ctx.extras, NodeHooks)),
        ("array_class", ctx.array_class is None),
    ):
        if not untouched:
            raise AttributeError(
                f"ctx.{name} is the engine's own in {name_of(ctx)}: choose another name for what "
                f"{ctx._forward_cls.__name__} keeps on ctx"
            )


# -------------------------------------------------------------------------------------------------------------- outputs


def _is_plain(ctx: Any, output: Any, inputs: list[Tensor]) -> bool:
    """Is `output` one new tensor about which nothing was said? Most functions return such a one."""
    return (
        output.__class__ is Tensor
        and output._grad_meta_ is None
        and output._edge_ is None
        and output._memory_.dtype.kind in "fcVW"
        and ctx.dirty_tensors is None
        and ctx.non_differentiable is None
        and not ctx._is_pure_view
        and not any(output is tensor for tensor in inputs)
    )


def _record_plain(ctx: Any, output: Tensor) -> None:
    """What `_Outputs` comes to for such an output."""
    data = output._numbers_
    ctx._output_structures, ctx._is_tensor_output, ctx._undifferentiable = (LEAF,), (True,), frozenset()
    ctx.metadata_of_inputs = ((data.shape, data.dtype, data.__class__),)
    output._edge_ = (ctx, 0)
    ctx.saved_for_forward = None
    ctx._save()


class _Outputs:
    """Turns what forward() returned into what apply() returns: Note [Outputs of custom functions]."""

    def __init__(
        self, cls: Any, ctx: Any, inputs: list[Tensor], raw: list[Any], recording: bool, with_setup_context: bool
    ) -> None:
        self.cls = cls
        self.ctx = ctx
        self.inputs = inputs
        self.input_ids = {id(tensor) for tensor in inputs}
        self.raw = raw
        self.recording = recording
        self.dirty = self._tensors("dirty_tensors", "mark_dirty can only accept variables, but argument")
        self.undifferentiable = self._tensors(
            "non_differentiable", "mark_non_differentiable only accepts variable arguments, but got"
        )
        saved = (*(ctx.to_save or ()), *(ctx.saved_for_forward or ())) if with_setup_context else ()
        self.saved_by_setup = {id(tensor) for tensor in saved}

    def _tensors(self, attribute: str, complaint: str) -> dict[int, Tensor]:
        tensors = getattr(self.ctx, attribute)
        if tensors is None:
            return {}
        if not isinstance(tensors, tuple):
            raise RuntimeError(f"ctx.{attribute} is expected to be a tuple but is {type(tensors).__name__}")
        for position, tensor in enumerate(tensors):
            if not isinstance(tensor, Tensor):
                raise RuntimeError(f"{complaint} {position} is of type {type(tensor).__name__} (in {self._who})")
        return {id(tensor): tensor for tensor in tensors}

    @property
    def _who(self) -> str:
        return f"{self.cls.__name__}.forward"

    def finish(self) -> list[Any]:
        ctx, raw = self.ctx, self.raw
        for tensor in self.dirty.values():
            bump_version(tensor, self._who)
        self._check()

        ctx._is_tensor_output = tuple([isinstance(value, Tensor) for value in raw])
        ctx.metadata_of_inputs = tuple([_metadata(value) for value in raw])
        special: list[tuple[int, Any]] = [(i, t) for i, t in enumerate(raw) if isinstance(t, Tensor) and t._special_]
        makers = {i: t._gradient_maker_() for i, t in special}
        ctx._gradient_makers = {i: maker for i, maker in makers.items() if maker is not None} or None
        differentiable = [self._is_differentiable(value) for value in raw]
        ctx._undifferentiable = frozenset(i for i, yes in enumerate(differentiable) if not yes)
        several = sum(differentiable) > 1
        results = []
        for position, (value, yes) in enumerate(zip(raw, differentiable)):
            if isinstance(value, Tensor):
                value = self._with_history(value, position, yes, several)
            results.append(value)
        return results

    def _is_differentiable(self, value: Any) -> bool:
        return (
            self.recording
            and isinstance(value, Tensor)
            and value._memory_.dtype.kind in "fcVW"
            and id(value) not in self.undifferentiable
        )

    def _check(self) -> None:
        """Everything that can be refused, before anything is changed."""
        raw = self.raw
        outputs = [value for value in raw if isinstance(value, Tensor)]
        for tensor in self.dirty.values():
            if not any(tensor is output for output in outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                    f"that are modified inplace must all be outputs of the Function. (A tensor of shape "
                    f"{list(tensor.shape)} that {self._who} gave to mark_dirty is not among what it returned.)"
                )
        if self.ctx._is_pure_view and (len(outputs) != 1 or len(raw) != 1 or len(self.inputs) != 1):
            raise RuntimeError(
                "Pure view custom Function can only have one input Tensor and one output Tensor. Open an issue if you "
                f"need to support more. ({self.cls.__name__} has {len(self.inputs)} and {len(outputs)}.)"
            )
        for value in outputs:
            if id(value) in self.dirty:
                if self._is_differentiable(value):
                    self._check_dirty(value)
            elif id(value) in self.input_ids and id(value) in self.saved_by_setup:
                if not self._is_differentiable(value) and value.requires_grad:
                    continue  # it is detached, and what was saved is another tensor
                raise RuntimeError(
                    "A input that has been returned as-is as output is being saved for backward. This is not "
                    "supported if you override setup_context. You should return and save a view of the input instead, "
                    f"e.g. with x.view_as(x) or setup ctx inside the forward function itself. (In {self._who}.)"
                )

    def _check_dirty(self, tensor: Tensor) -> None:
        """May the history of an input that was modified be rebased?"""
        meta: Any = tensor._grad_meta_
        is_input = id(tensor) in self.input_ids
        if not tensor._is_view():
            if tensor._edge_ is None and meta is not None and meta.requires_grad:
                raise RuntimeError(
                    "a leaf Variable that requires grad has been used in an in-place operation. "
                    f"{self._who} gave it to mark_dirty: pass it x.clone(), or write the function out of place"
                )
            if not is_input:
                warnings.warn(
                    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
                    f"mutated should be passed to ctx.mark_dirty(). (In {self._who}.)",
                    UserWarning,
                    stacklevel=users_level(),
                )
            return
        if not is_input:
            raise RuntimeError(
                "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                f"should be passed to ctx.mark_dirty(). (In {self._who}.)"
            )
        if len(self.raw) > 1:
            raise RuntimeError(
                "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                "return more than one Tensor. This is not supported by the current autograd engine. You should either "
                "make sure the input is not a view (using .clone() for example) or make your Function only return one "
                "Tensor (potentially splitting it into two Functions: one doing the inplace that returns a single "
                f"Tensor and a second one that does the other operations). (In {self._who}.)"
            )
        check_view(tensor, meta)
        if tensor.requires_grad and meta.base.is_leaf:
            raise RuntimeError(
                "a view of a leaf Variable that requires grad is being used in an in-place operation. "
                f"{self._who} gave it to mark_dirty: pass it a clone of the view, or write the function out of place"
            )

    def _with_history(self, tensor: Tensor, position: int, differentiable: bool, several: bool) -> Tensor:
        ctx = self.ctx
        is_input, is_dirty = id(tensor) in self.input_ids, id(tensor) in self.dirty
        if not differentiable:
            if not tensor.requires_grad:
                if is_input and not is_dirty:
                    tensor = _returned_as_is(tensor)
            elif is_input:
                return tensor.detach()
            elif not tensor._is_view():
                tensor.detach_()
        elif is_dirty:
            self._rebase(tensor, position)
            return tensor
        else:
            if is_input:
                tensor = _returned_as_is(tensor)
            _set_gradient_edge(tensor, (ctx, position))
        meta: Any = tensor._grad_meta_
        if meta is not None and meta.is_view and not is_dirty:
            if several:
                meta.creation_meta = CreationMeta.MULTI_OUTPUT_NODE
            else:
                meta.creation_meta = CreationMeta.DEFAULT if ctx._is_pure_view else CreationMeta.IN_CUSTOM_FUNCTION
        return tensor

    def _rebase(self, tensor: Tensor, position: int) -> None:
        ctx = self.ctx
        if not tensor._is_view():
            old = tensor._edge_
            edge = tensor._edge_ = (ctx, position)
            if tensor._grad_meta_ is not None:
                tensor._grad_meta_.requires_grad = False
                rebase_hooks(tensor, old, edge)
            return
        written = next(i for i, other in enumerate(self.inputs) if other is tensor)
        rebase_history(tensor, ctx if written == 0 else _WrittenFirst(ctx, written))


#: Stands for an output that is not a tensor: no gradient ever comes in for it.
_NOT_A_TENSOR = ((), float32.np, ndarray)


def _metadata(value: Any) -> InputMetadata:
    if not isinstance(value, Tensor):
        return _NOT_A_TENSOR
    data = value._memory_
    if value._special_ is not None and value._gradient_maker_() is not None:  # type: ignore[attr-defined]
        data = value._plain_gradient_()._memory_  # type: ignore[attr-defined]
    return data.shape, data.dtype, data.__class__


def _returned_as_is(tensor: Tensor) -> Tensor:
    """An input that forward returned: a view of it. Classes that override functions say what a view of theirs is."""
    if tensor.__class__ is Tensor or tensor._special_ is not None or not overrides(tensor.__class__):
        return _alias(tensor)
    state = local.state
    recording = state.grad_enabled
    state.grad_enabled = False
    try:
        return tensor.view_as(tensor)
    finally:
        state.grad_enabled = recording


def _alias(tensor: Tensor) -> Tensor:
    """A view of all of `tensor`, by an operation that nobody records or observes."""
    state = local.state
    recording, interceptor = state.grad_enabled, state.interceptor
    state.grad_enabled = False
    if interceptor is not None:  # where there is none, another thread may set one now
        state.interceptor = None
    try:
        return ops.alias(tensor)
    finally:
        state.grad_enabled = recording
        if interceptor is not None:
            state.interceptor = interceptor


def _set_gradient_edge(tensor: Tensor, edge: tuple[Node, int]) -> None:
    meta: Any = tensor._grad_meta_
    if meta is None:
        tensor._edge_ = edge
        return
    meta.requires_grad = False
    if meta.is_view:
        meta.edge = edge
        meta.attr_version = tensor._version
    else:
        tensor._edge_ = edge


class _WrittenFirst(TensorNode):
    """A custom node with its inputs in another order: CopySlices wants the written one first."""

    __slots__ = ("fn", "written")

    def __init__(self, fn: Node, written: int) -> None:
        init_node(self, self._moved(fn.next_edges, written))
        self.fn = fn
        self.written = written
        self.metadata_of_inputs = fn.input_metadata

    def name(self) -> str:
        return name_of(self.fn)

    @staticmethod
    def _moved(values: Sequence[Any], written: int) -> tuple[Any, ...]:
        return (values[written], *values[:written], *values[written + 1 :])

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        first, *others = edges
        others.insert(self.written, first)
        return self._moved(self.fn.apply_tensors(tuple(others), grads), self.written)

    def release_variables(self, freed: Any) -> None:
        self.fn.release_variables(freed)
