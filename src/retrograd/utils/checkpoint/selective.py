"""Selective checkpoints: a policy says, operator by operator, what is kept of the forward pass.

Note [Keeping a result]
What is kept of an operator is what its kernel returned.  In the recomputation the operator runs with a kernel that
hands that back: so it makes the same node, and saves the same tensors, as if it had computed them.  Results that are
views, and writes in place, are never kept but done again: the one costs nothing, the other must happen.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from ... import kernels
from ...autograd.intercept import results_of
from ...core.records import record_of
from ...ops.overload import OpOverload, OpOverloadPacket, overload_of, with_kernel
from ...tensor import Tensor
from .._python_dispatch import TorchDispatchMode


class SelectiveCheckpointContext:
    """What a policy is told besides the operator and its arguments.

    `op_output` is what the operator has returned.  `is_recompute` is always False: policies are asked in the
    forward pass only.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class CheckpointPolicy(enum.Enum):
    """What a policy can answer. MUST and PREFER differ only for compilers, which there are none of here.

    SAVE keeps the operator's result; RECOMPUTE and (as in torch without a compiler) CPU_OFFLOAD compute it again.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


def _policy_from_bool(save: bool) -> CheckpointPolicy:
    return CheckpointPolicy.MUST_SAVE if save else CheckpointPolicy.PREFER_RECOMPUTE


#: Operators that policies are not asked about: checkpointing itself detaches.
SAC_IGNORED_OPS = {OpOverload(OpOverloadPacket("detach"), "default", Tensor.detach)}

#: What the storage says of a result that was not kept, and of one that was handed out.
_RECOMPUTE: Any = object()
_CONSUMED: Any = object()
#: Instead of what a kernel returned: an operator that a program has defined.
_OF_A_PROGRAM: Any = object()

_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)


class _Kept:
    """The result of an operator. `val` shows it to the curious, without history."""

    def __init__(self, op: OpOverload, result: Any, returned_by_kernel: Any) -> None:
        self.op = op
        self.val = _detached(result)
        self.versions = [tensor._version for tensor in results_of(self.val)]
        self.returned_by_kernel = returned_by_kernel

    def check_versions(self) -> None:
        for tensor, version in zip(results_of(self.val), self.versions, strict=True):
            if tensor._version != version:
                vc = tensor._vc_
                by = "" if vc is None else vc.last_write
                raise RuntimeError(
                    "Tensor cached during selective activation checkpoint has been mutated: the result of "
                    f"{self.op} was modified in place{by}. Modify a clone of it, do not save it, or, if the gradients "
                    "do not depend on its values, pass allow_cache_entry_mutation=True"
                )


def _detached(result: Any) -> Any:
    if isinstance(result, Tensor):
        return result.detach()
    if isinstance(result, (tuple, list)):
        return tuple(_detached(item) for item in result)
    return result


def _is_new(result: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> bool:
    """Is the result memory of its own, neither a view of an argument nor the argument itself?"""
    given = {id(kernels.storage_root(t._memory_)) for t in _tensors((*args, *kwargs.values()))}
    return not any(id(kernels.storage_root(t._memory_)) in given for t in _tensors((result,)))


def _tensors(values: Any) -> list[Tensor]:
    result = []
    for value in values:
        if isinstance(value, Tensor):
            result.append(value)
        elif isinstance(value, (tuple, list)):
            result += _tensors(value)
    return result


class _SelectiveMode(TorchDispatchMode):
    """Counts the calls of each operator: the n-th of the recomputation is the n-th of the forward pass."""

    def __init__(self, storage: dict[OpOverload, dict[int, Any]]) -> None:
        self.storage = storage
        self.func_counter: dict[OpOverload, int] = defaultdict(int)
        #: [what the kernel of the operator that is running has returned, or is to return]. Substituted kernels refer to
        #: this list and not to `self`, whose storage they would keep: a free-threaded Python frees functions only
        #: when it collects garbage.
        self.at_hand: list[Any] = [None]
        self._substituted: dict[Callable[..., Any], Callable[..., Any] | None] = {}

    def __enter__(self) -> Any:
        self.func_counter.clear()
        return super().__enter__()

    def _left(self) -> None:
        self.at_hand[0] = None
        self._substituted.clear()

    def substituted(self, operator: Callable[..., Any]) -> Callable[..., Any] | None:
        """The operator with ``self.substitute(kernel)`` as its kernel; None if its own has to run."""
        if operator not in self._substituted:
            # The kernel of a view becomes part of the view's history.
            keep = _keeps_its_kernel(operator)
            self._substituted[operator] = None if keep else with_kernel(operator, self.substitute)
        return self._substituted[operator]

    def substitute(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        raise NotImplementedError

    def _observe(
        self,
        observer: Any,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        op = overload_of(operator)
        if op in SAC_IGNORED_OPS:
            return proceed()
        number = self.func_counter[op]
        self.func_counter[op] += 1
        return self.run(op, number, operator, args, kwargs, proceed)

    def run(
        self,
        op: OpOverload,
        number: int,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        raise NotImplementedError


class _CachingTorchDispatchMode(_SelectiveMode):
    """Around the forward pass: asks the policy, and keeps results."""

    def __init__(self, policy_fn: Callable[..., Any], storage: dict[OpOverload, dict[int, Any]]) -> None:
        super().__init__(storage)
        self.policy_fn = policy_fn

    def run(
        self,
        op: OpOverload,
        number: int,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        substituted = self.substituted(operator)
        result = proceed() if substituted is None else proceed(substituted)
        returned, self.at_hand[0] = self.at_hand[0], None
        own = isinstance(operator, OpOverload)  # an operator of a program's own has no history yet
        context = SelectiveCheckpointContext(is_recompute=False, op_output=result if own else _detached(result))
        policy = self.policy_fn(context, op, *args, **kwargs)
        if isinstance(policy, bool):
            policy = _policy_from_bool(policy)
        save = policy in (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
        if own:
            returned = _OF_A_PROGRAM  # it is called below its history: what it returned is all there is to it
        kept = (
            _Kept(op, result, returned)
            if save and returned is not None and _is_new(result, args, kwargs)
            else _RECOMPUTE
        )
        self.storage[op][number] = kept
        return result

    def substitute(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        at_hand = self.at_hand

        def run_kernel(*arrays: Any, **options: Any) -> Any:
            result = at_hand[0] = kernel(*arrays, **options)
            return result

        return run_kernel


def _keeps_its_kernel(operator: Callable[..., Any]) -> bool:
    record = record_of(operator)
    return record is None or record.view or record.writes


class _CachedTorchDispatchMode(_SelectiveMode):
    """Around the recomputation: hands kept results out, once."""

    def __init__(
        self,
        policy_fn: Callable[..., Any] | None,
        storage: dict[OpOverload, dict[int, Any]],
        allow_cache_entry_mutation: bool = False,
    ) -> None:
        super().__init__(storage)
        self.allow_cache_entry_mutation = allow_cache_entry_mutation

    def run(
        self,
        op: OpOverload,
        number: int,
        operator: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[Any, Any],
        proceed: Callable[..., Any],
    ) -> Any:
        entries = self.storage.get(op)
        if entries is None:
            raise RuntimeError(f"{op} encountered during backward but not found in storage. {_MISMATCH}")
        entry = entries.get(number)
        if entry is None:
            raise RuntimeError(
                f"{op} invocation index {number} encountered during backward but not found in storage. {_MISMATCH}"
            )
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        if entry is _RECOMPUTE:
            return proceed()
        entries[number] = _CONSUMED
        if not self.allow_cache_entry_mutation:
            entry.check_versions()
        if entry.returned_by_kernel is _OF_A_PROGRAM:
            return entry.val
        self.at_hand[0] = entry.returned_by_kernel
        return proceed(self.substituted(operator))

    def substitute(self, kernel: Callable[..., Any]) -> Callable[..., Any]:
        at_hand = self.at_hand

        def run_kernel(*arrays: Any, **options: Any) -> Any:
            result, at_hand[0] = at_hand[0], None
            return result

        return run_kernel


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., CheckpointPolicy | bool] | list[Any], allow_cache_entry_mutation: bool = False
) -> tuple[TorchDispatchMode, TorchDispatchMode]:
    """The two contexts of a checkpoint that keeps some results: for its `context_fn`.

    A policy is called as ``policy(ctx, op, *args, **kwargs)`` after each operator and answers with a `CheckpointPolicy`
    (or True to save).  A list of operators stands for the policy that saves their results.

    >>> import functools
    >>> import retrograd as torch
    >>> from retrograd.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    >>> a = torch.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(lambda a: (a @ a).sin().sum(), a, use_reentrant=False, context_fn=keep)
    >>> y.backward()  # computes the sine again, and not the product
    """
    if isinstance(policy_fn_or_list, list):
        chosen = [_as_overload(op) for op in policy_fn_or_list]

        def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *args: Any, **kwargs: Any) -> CheckpointPolicy:
            return _policy_from_bool(op in chosen)

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list  # type: ignore[assignment]
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[OpOverload, dict[int, Any]] = defaultdict(dict)
    return (
        _CachingTorchDispatchMode(policy, storage),
        _CachedTorchDispatchMode(None, storage, allow_cache_entry_mutation),
    )


def _as_overload(op: Any) -> OpOverload:
    """An element of the list: an OpOverload or, beyond torch, the operator itself (``torch.mm``)."""
    if isinstance(op, OpOverload):
        return op
    if record_of(op) is not None:
        return overload_of(op)
    hint = ""
    if isinstance(op, OpOverloadPacket):
        hint = (
            " Please update the OpOverloadPacket to a specific OpOverload. For example, if you have "
            "`torch.ops.aten.mm`, change it to `torch.ops.aten.mm.default`."
        )
    raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}")
