"""The context of a custom function, which is also its node in the graph.

`FunctionCtx` is what ``forward``, ``setup_context``, ``backward`` and ``jvp`` see as `ctx`: the methods to save tensors
and to say what was done to which.  `BackwardCFunction` is the node: the engine calls it with gradients, it calls the
user's ``backward`` and checks what that returns.  Each `Function` class gets a node class of its own
(``MyFn._backward_cls``, called ``MyFnBackward``), so ``y.grad_fn`` is the very `ctx` that ``forward`` saw.

Attributes that the user sets on `ctx` are in the node's ``__dict__``.  The engine's own are slots, and those have
names that nobody would choose (where one does, `apply` refuses it): ``ctx.shape``, ``ctx.dtype``, ``ctx.name`` are the
user's, and the engine reads none of them (`name_of`, `input_metadata`).
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..core.meta import materialize_autograd_meta
from ..core.state import local
from ..kernels import zeros
from ..tensor import Tensor, wrap
from ..tensor.special import bare, boxed
from .function_structure import Structure, put_together
from .node import TensorNode, name_of
from .saved_variable import Freed, SavedVariable, save_variable
from .saved_variable_errors import freed_error

if TYPE_CHECKING:
    from .node import InputMetadata


class FunctionCtx:
    """What the static methods of a `Function` get as `ctx`.

    >>> import retrograd as torch
    >>> class Scale(torch.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x, factor):
    ...         ctx.save_for_backward(x)    # tensors: checked for later writes, seen by saved-tensor hooks
    ...         ctx.factor = factor         # anything else: a plain attribute
    ...         return x * factor
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * ctx.factor, None
    >>> y = Scale.apply(torch.ones(2, requires_grad=True), 3)
    >>> y.grad_fn.factor, y.grad_fn.needs_input_grad
    (3, (True, False))
    """

    if TYPE_CHECKING:

        @property
        def saved_tensors(self) -> tuple[Tensor, ...]: ...
        @property
        def needs_input_grad(self) -> tuple[bool, ...]: ...
        # What forward() puts there for backward().
        def __getattr__(self, name: str) -> Any: ...
        def __setattr__(self, name: str, value: Any) -> None: ...

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Save tensors (or None) for ``backward``, which finds them in ``ctx.saved_tensors``; call it once."""
        self.to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Save tensors (or None) for ``jvp``, which finds them in ``ctx.saved_tensors``; call it once."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    f"on ctx. Got {type(tensor).__name__}"
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs ``forward`` has modified in place. Each of them must be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs: Any) -> None:
        """Deprecated: memory that tensors share is tracked without it."""
        warnings.warn(
            "`mark_shared_storage` is deprecated. Tensors with shared storages are automatically tracked. "
            "Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient. ``backward`` still gets one argument for each of them: zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """False: ``backward`` and ``jvp`` get None for a gradient that is undefined, instead of zeros."""
        if not isinstance(value, bool):
            raise TypeError(
                "set_materialize_grads received an invalid combination of arguments - got "
                f"({type(value).__name__}), but expected (bool)"
            )
        self.materialize_grads = value


class _Cleared:
    """In place of saved tensors that could be read once and have been."""


_CLEARED = _Cleared()


class _NumInputs:
    """``node.num_inputs``, unless the user has put something of that name on ctx."""

    def __get__(self, node: Any, owner: Any = None) -> int:
        return 0 if node is None else len(node.metadata_of_inputs)


class BackwardCFunction(TensorNode, FunctionCtx):
    """The node of a custom function. Each Function has a subclass of its own."""

    __slots__ = (
        "_input_structures",
        "_is_tensor_input",
        "_is_tensor_output",
        "_output_structures",
        "_required_gradients",
        "_saved_variables",
        "_undifferentiable",
    )

    #: The Function that this is the node of.
    _forward_cls: Any
    _autograd_function_id: int
    #: What `backward` and `vjp` of a Function are that its author has not written.
    _unwritten: Any

    #: One per argument of apply(), and which of their leaves are tensors: those have an edge each.
    _input_structures: tuple[Structure, ...]
    _is_tensor_input: list[bool]
    #: One per output of forward(); the leaves are the gradients that come in.
    _output_structures: tuple[Structure, ...]
    _is_tensor_output: tuple[bool, ...]
    #: How many gradients backward() has to return: those of keyword arguments may be missing.
    _required_gradients: int
    _saved_variables: Any
    #: Positions (among the incoming gradients) of outputs that are not differentiable.
    _undifferentiable: frozenset[int]

    # The user's, though nodes with one output have slots of these names: see the module's docstring.
    shape: Any = None  # type: ignore[misc]
    dtype: Any = None  # type: ignore[misc]
    num_inputs: Any = _NumInputs()  # type: ignore[assignment]

    # What forward() may set through the methods of FunctionCtx.
    to_save: Any = None
    saved_for_forward: Any = None
    dirty_tensors: Any = None
    non_differentiable: Any = None
    materialize_grads = True
    needs_input_grad: tuple[Any, ...] = ()
    _materialize_non_diff_grads = True
    _is_pure_view = False
    #: What makes the gradients of outputs that are special tensors (Note [Special tensors]) such tensors.
    _gradient_makers: dict[int, Callable[[Tensor], Tensor]] | None = None

    def __init__(self) -> None:
        self._saved_variables = ()

    # ------------------------------------------------------------------------------------------------------- running

    def apply(self, *args: Any) -> Any:  # type: ignore[override]
        """Run the user's backward: ``y.grad_fn.apply(grad, ...)``, or the engine on arrays, ``apply(edges, grads)``."""
        if len(args) != 2 or args[0].__class__ is not tuple or not isinstance(args[1], (tuple, list)):
            return self._call_user(list(args))
        # No name here may hold a gradient while backward() runs: under boxed_grads_call it can let them go.
        result = self._call_user(self._nested([None if g is None else boxed(g) for g in args[1]]))
        return tuple(None if g is None else bare(g) for g in self._gradients(result))

    def apply_tensors(self, edges: tuple[Any, ...], grads: Sequence[Any]) -> tuple[Any, ...]:
        return self._gradients(self._call_user(self._nested(list(grads))))

    def __call__(self, *grads: Tensor | None) -> Any:
        """Run this node alone, as ``y.grad_fn(g)`` does for other nodes."""
        outputs = self.apply_tensors(self.next_edges, grads)
        return outputs[0] if len(outputs) == 1 else outputs

    def _call_user(self, grads: list[Any]) -> Any:
        backward = self._get_user_fn()
        state = local.state
        recording = state.grad_enabled
        result = backward(self, grads) if self._forward_cls.boxed_grads_call else backward(self, *grads)
        state.grad_enabled = recording  # whatever mode it has set: the next node runs in that of the pass
        return result

    def _get_user_fn(self) -> Callable[..., Any]:
        cls = self._forward_cls
        backward, vjp, unwritten = cls.backward, cls.vjp, self._unwritten
        if backward is not unwritten and vjp is not unwritten:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                f"implement one of them. ({cls.__name__} has both; they are two names for one thing.)"
            )
        return vjp if vjp is not unwritten else backward

    def _nested(self, grads: list[Any]) -> list[Any]:
        """The incoming gradients as backward() gets them: zeros for None if asked for, nested as the outputs were."""
        if self.materialize_grads and any(grad is None for grad in grads):
            for position, (grad, metadata) in enumerate(zip(grads, self.metadata_of_inputs)):
                if (
                    grad is None
                    and self._is_tensor_output[position]
                    and (self._materialize_non_diff_grads or position not in self._undifferentiable)
                ):
                    grads[position] = zeros_of(metadata)
        if self._gradient_makers is not None:
            for position, maker in self._gradient_makers.items():
                if grads[position] is not None:
                    grads[position] = maker(grads[position])
        return put_together(self._output_structures, grads)

    def _gradients(self, result: Any) -> tuple[Any, ...]:
        """What backward() returned, checked: one gradient (or None) an edge."""
        inputs = self._input_structures
        expected = len(inputs)
        if result.__class__ is not tuple and not isinstance(result, tuple):
            result = (result,)
        elif expected == 1 and inputs[0].kind not in (None, list, dict) and len(result) != 1:
            result = (result,)  # the one argument was a tuple
        number = len(result)
        if number > expected and all(grad is None for grad in result[expected:]):
            result = result[:expected]
        elif number != expected:
            if not self._required_gradients <= number < expected:
                self._wrong_number(number, result)
            result += (None,) * (expected - number)
        leaves: list[Any] = []
        for position, (structure, grad) in enumerate(zip(inputs, result)):
            if structure.kind is None:
                leaves.append(grad)
            else:
                leaves += structure.match(grad, self._complain_about(position))
        gradients = []
        for position, (grad, is_tensor) in enumerate(zip(leaves, self._is_tensor_input)):
            if is_tensor:
                if grad is not None and not isinstance(grad, Tensor):
                    raise RuntimeError(
                        f"expected Variable or None (got {type(grad).__name__}): {name_of(self)} must return a Tensor "
                        f"or None as the gradient of argument {position}, e.g. torch.as_tensor(...)"
                    )
                if grad is not None and grad._special_ is not None:
                    grad = grad._plain_gradient_()  # type: ignore[attr-defined]
                gradients.append(grad)
            elif grad is not None:
                raise RuntimeError(
                    f"function {name_of(self)} returned a gradient different than None at position {position + 1}, but "
                    "the corresponding forward input was not a Variable. Return None there"
                )
        return tuple(gradients)

    def _wrong_number(self, number: int, result: tuple[Any, ...]) -> NoReturn:
        expected = len(self._input_structures)
        hint = f"backward must return one gradient for each argument of {self._forward_cls.__name__}.apply()"
        if number == 1 and isinstance(result[0], list):
            hint += ", as a tuple, not a list"
        elif number < expected:
            hint += ", with None for those that have none"
        raise RuntimeError(
            f"function {name_of(self)} returned an incorrect number of gradients (expected {expected}, got {number}): "
            + hint
        )

    def _complain_about(self, position: int) -> Callable[[str], Exception]:
        def complain(what: str) -> Exception:
            return RuntimeError(
                f"function {name_of(self)} returned a gradient at position {position + 1} that is not nested as the "
                f"argument was: {what}"
            )

        return complain

    # -------------------------------------------------------------------------------------------------- saved tensors

    def _save(self) -> None:
        """Keep what forward() gave to save_for_backward()."""
        to_save = self.to_save
        if to_save is None:
            return
        if not isinstance(to_save, tuple):
            raise RuntimeError(
                f"ctx.to_save is expected to be a tuple but is {type(to_save).__name__}: use ctx.save_for_backward(...)"
            )
        saved = []
        for position, tensor in enumerate(to_save):
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {position} is of type "
                    f"{type(tensor).__name__}. Keep other things as attributes: ctx.name = value "
                    f"(in {self._forward_cls.__name__})"
                )
            saved.append(self._save_one(tensor))
        self._saved_variables = tuple(saved)

    def _save_one(self, tensor: Tensor | None) -> SavedVariable:
        edge = None if tensor is None else tensor._history_()
        if tensor is not None and edge is not None and edge[0] is not self and self._is_dirty_view(tensor):
            return _SavedDirtyView(tensor, edge)
        return save_variable(tensor, edge is not None and edge[0] is self)

    def _is_dirty_view(self, tensor: Tensor) -> bool:
        return tensor._is_view() and any(tensor is dirty for dirty in self.dirty_tensors or ())

    @property
    def saved_tensors(self) -> tuple[Tensor, ...]:
        """What was saved for backward (within jvp: for forward), checked for writes since."""
        if self.saved_for_forward is not None:
            return self.saved_for_forward
        saved = self._raw_saved_tensors
        result = tuple(variable.unpack(self, f"saved_tensors[{i}]") for i, variable in enumerate(saved))
        if saved and self._forward_cls.clear_saved_tensors_on_access:
            self._saved_variables = _CLEARED
        return result  # type: ignore[return-value]  # None where None was saved: who saved it knows

    @property
    def saved_variables(self) -> tuple[Tensor | None, ...]:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    @property
    def _raw_saved_tensors(self) -> tuple[SavedVariable, ...]:
        saved = self._saved_variables
        if isinstance(saved, Freed):
            raise freed_error(self, saved)
        if saved is _CLEARED:
            raise RuntimeError(
                "saved_tensors can only be accessed once when clear_saved_tensors_on_access=True is set on the "
                f"autograd.Function ({self._forward_cls.__name__}). Either access saved_tensors only once, or set "
                "clear_saved_tensors_on_access=False."
            )
        return saved

    def maybe_clear_saved_tensors(self) -> None:
        """Let go of saved tensors that may be read only once."""
        if self._forward_cls.clear_saved_tensors_on_access:
            self._saved_variables = _CLEARED

    def release_variables(self, freed: Freed) -> None:
        if isinstance(self._saved_variables, tuple):
            for saved in self._saved_variables:
                saved.node = freed
        self._saved_variables = freed

    # ---------------------------------------------------------------------------- names that torch's nodes have, too

    def apply_boxed(self, grads: list[Any]) -> Any:
        """Run the user's backward on a list of gradients that it may empty."""
        return self._get_user_fn()(self, grads)

    def apply_jvp(self, *tangents: Any) -> Any:
        """Run the user's jvp."""
        return self._forward_cls.jvp(self, *tangents)

    def _compiled_autograd_key(self) -> Any:
        return self._forward_cls._compiled_autograd_key(self)

    def _get_compiled_autograd_symints(self) -> list[Any]:
        return []


class _SavedDirtyView(SavedVariable):
    """An input that is a view, was written to by forward() and is saved by it.

    Its new history leads through its base to the node that saves it, so that a plain reference would close a circle.
    The values are kept without history, and the history weakly: it lives as long as the view does.
    """

    __slots__ = ("history",)

    def __init__(self, view: Tensor, edge: Any) -> None:
        super().__init__(None)
        self.version = view._version
        self.tensor = view.detach()
        self.fw_grad = view._grad_meta_.fw_grad  # type: ignore[union-attr]  # it is a view
        self.history = weakref.ref(edge[0]), edge[1]

    def unpack(self, saved_for: Any = None, name: str = "tensor") -> Tensor | None:
        result = super().unpack(saved_for, name)
        if result is None or self.unpack_hook is not None:
            return result
        node = self.history[0]()
        if node is None:
            if local.state.grad_enabled:
                raise RuntimeError(
                    "No grad_fn for non-leaf saved tensor: a view that was modified in place and saved for backward is "
                    "gone, and its history with it. Keep the view alive to differentiate twice, or save a clone of it"
                )
            return result
        result = result.detach()
        result._edge_ = (node, self.history[1])
        if self.fw_grad is not None:
            materialize_autograd_meta(result).fw_grad = self.fw_grad.copy()
        return result


def zeros_of(metadata: InputMetadata) -> Tensor:
    """A gradient (or tangent) of zeros."""
    shape, np_dtype, _ = metadata
    return wrap(zeros(shape, np_dtype))
