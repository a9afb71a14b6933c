"""Forward gradients: the tangents that a tensor has, one per dual level, and the rules by which it gets them.

``AutogradMeta.fw_grad`` is None until a tensor becomes dual; then it is a `ForwardGrad`.  A `Level` remembers weakly
who has a tangent of it and, when it is closed, takes them all away.  forward_ad.py is what users and operators call.

Note [Forward gradients of views]
Views and in-place operations on dual tensors work because of one rule about layout:

* a tensor and its tangent have the same sizes, strides, storage offset, size of storage and conj and neg bits
  (`has_same_meta`);
* a view operator gives the view a tangent that is a view of the base's tangent;
* an in-place operator modifies the tangent in place.

So whatever memory two tensors share, their tangents share as well, and the six cases fall out of it:

1. ``foo.copy_(bar)``, both dual: the tangent of foo is written to.
2. ``foo[0].copy_(bar)``: the tangent of ``foo[0]`` is a view of foo's, so foo's has changed.
3. ``view = foo[0]; foo.copy_(bar)``: the same the other way round.
4. `foo` is regular and its view becomes dual by a write: `set_fw_grad` gives foo a tangent of zeros, of which the new
   one is a view.
5. `foo` is regular and becomes dual by a write when views of it exist: `fw_grad` of a view without a tangent of its own
   asks the base, and takes the view of the base's tangent.
6. A view becomes dual and a sibling is asked: 4, then 5.

The base in question is that of the *forward* view (`DifferentiableViewMeta.forward`).  It is the ordinary base, except
that a dual tensor is an alias of its primal and yet no forward view of it: writing to the one does not make the other
dual.

Note [Nested levels]
A tensor that is dual at two levels is ``x + t e1`` with `x` and `t` both dual at the level outside: the tangent at an
inner level itself has a tangent at the outer ones, and never the other way round.  An operator therefore computes its
tangent of level k with operators that see the levels outside of k only, and perturbations are never mixed up.

For the same reason nothing that does not vary at level k may have a gradient that does:

* a formula whose steps are recorded is given primals (`primal_of`), so that a tangent has not saved dual tensors;
* a backward pass that starts from tensors that do not vary at level k, such as a tangent that was unpacked or a primal,
  does not see level k, although nodes on its way have saved tensors that are dual there.

What remains, as in torch: a pass that starts from a tensor which varies *and* was computed from a tangent of the same
level gives the right gradient, but the part of that gradient's own tangent which comes through the other tangent is not
to be relied on.  A level of its own for each derivative, as in ``d(d(f))``, is always right.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import ref as reference

from .. import kernels
from ..core.late import operators as ops
from ..core.late import transforms
from ..core.locks import fork_safe_lock
from ..core.meta import AutogradMeta
from ..core.state import local, process
from ..tensor import Tensor, new, wrap
from ..tensor.lazy_conjugation import bits_of, keep_bits
from .view_meta import FORWARD_BASE, Step, replay_on_tensor, steps_by_place

# Two threads that ask a view for its tangent must get one.
_lock = fork_safe_lock()


class ForwardGrad:
    """The tangents of one tensor, by level.

    >>> import retrograd as torch
    >>> import retrograd.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level() as level:
    ...     tangents = fwAD.make_dual(torch.ones(2), torch.zeros(2))._grad_meta_.fw_grad
    ...     print(tangents.contains(level), tangents.value(level))
    True tensor([0., 0.])
    >>> tangents.contains(level)
    False
    """

    __slots__ = ("__weakref__", "ended", "values")

    values: dict[Level, Tensor]
    #: Set where a tangent ended with a transform: who says so when somebody asks for it.
    ended: Any

    def keep(self, level: Level, tangent: Tensor) -> None:
        self.values[level] = tangent
        level.remember(self)

    # By the number of a level, for those who come from torch's:

    def contains(self, level: int) -> bool:
        """Is there a tangent at the level of this number?"""
        return self.value(level) is not None

    def value(self, level: int) -> Tensor | None:
        """The tangent at the level of this number; None if there is none, or no such level is open."""
        levels = process.dual_levels
        return self.values.get(levels[level]) if 0 <= level < len(levels) else None

    def set_value(self, value: Tensor, level: int) -> None:
        """Make `value` the tangent at the level of this number."""
        levels = process.dual_levels
        if not 0 <= level < len(levels):
            raise RuntimeError(f"Trying to set a forward gradient at level {level}, but no such dual level is open")
        self.keep(levels[level], value)

    def reset(self, level: int) -> None:
        """Have no tangent at the level of this number."""
        levels = process.dual_levels
        if 0 <= level < len(levels):
            self.values.pop(levels[level], None)

    def clear(self) -> None:
        """Have no tangents at all."""
        self.values.clear()

    def empty(self) -> bool:
        """Is there no tangent?"""
        return not self.values

    def copy(self) -> ForwardGrad:
        """The same tangents, for another tensor: what that one gets or loses from now on is its own."""
        result = new_forward_grad()
        for level, tangent in self.values.copy().items():
            result.keep(level, tangent)
        return result


def new_forward_grad() -> ForwardGrad:
    forward_grad = ForwardGrad()
    forward_grad.values = {}
    return forward_grad


class Level:
    """One dual level. `observer`: what is around every operator while it is open (forward_ad.py)."""

    __slots__ = ("ending", "index", "limit", "members", "observer")

    def __init__(self) -> None:
        self.observer: Any = None
        #: What takes the place of tangents when this level is closed: None for nothing.
        self.ending: Any = None
        #: Its place among those that are open.
        self.index: int = 0
        #: Who has a tangent of this level, from whatever thread; the dead are cleared out when there are more than
        #: `limit`. A deque: what one thread appends while another clears out is not lost.
        self.members: deque[reference[ForwardGrad]] = deque()
        self.limit: int = 1000

    def remember(self, forward_grad: ForwardGrad) -> None:
        """A tangent of this level has been set."""
        self.members.append(reference(forward_grad))
        if len(self.members) > self.limit:
            self.forget_the_dead()

    def forget_the_dead(self) -> None:
        members = self.members
        with _lock:
            for _ in range(len(members)):
                member = members.popleft()
                if member() is not None:
                    members.append(member)
            self.limit = 1000 + 2 * len(members)

    def clear(self) -> None:
        """Take away every tangent of this level."""
        members, dropped, ending = self.members, [], self.ending
        with _lock:
            while members:
                forward_grad = members.popleft()()
                if forward_grad is not None:
                    dropped.append(forward_grad.values.pop(self, None))
                    if ending is not None:
                        forward_grad.ended = ending
        # They die here, together, when no tensor refers to any of them any more.
        dropped.clear()


# -------------------------------------------------------------------------------------------------------------- reading


def fw_grad(tensor: Tensor, level: Level) -> Tensor | None:
    """The tangent of `tensor` at `level`, or None."""
    meta: Any = tensor._grad_meta_
    if meta is None or not local.state.fw_grad_enabled:
        return None
    forward_grad = meta.fw_grad
    if forward_grad is not None:
        tangent = forward_grad.values.get(level)
        if tangent is not None:
            return tangent
    return _from_base(tensor, meta, level) if meta.is_view and meta.forward is not FORWARD_BASE else None


def has_fw_grad(tensor: Tensor) -> bool:
    """Does `tensor` have a tangent at any level that is open?"""
    return tensor._grad_meta_ is not None and any(fw_grad(tensor, level) is not None for level in process.dual_levels)


def forward_view(meta: Any) -> tuple[Tensor, tuple[Step, ...]]:
    """Whose tangent a view's is a view of, and the steps that lead there."""
    if meta.forward is None:
        return meta.base, meta.replay
    base, start = meta.forward
    return base, meta.replay[start:]


def _steps_from(base: Tensor, view: Tensor, steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """The steps to a view, also if its base has been given another shape in place since."""
    return (base._grad_meta_ is not None and base._grad_meta_.restrided and steps_by_place(view, base)) or steps


def _from_base(tensor: Tensor, meta: Any, level: Level) -> Tensor | None:
    """Case 5: a view whose base has become dual since."""
    base, steps = forward_view(meta)
    tangent = fw_grad(base, level)
    if tangent is None:
        return None
    with _lock:
        forward_grad = _materialize(meta)
        if level in forward_grad.values:
            return forward_grad.values[level]
        result = _view_of(tangent, _steps_from(base, tensor, steps))
        forward_grad.keep(level, result)
    return result


def _view_of(tangent: Tensor, steps: tuple[Step, ...]) -> Tensor:
    """The view of a base's tangent. No observer need see it: at the levels outside, it reads from the base again."""
    state = local.state
    recording, interceptor = state.grad_enabled, state.interceptor
    state.grad_enabled = True
    if interceptor is not None:  # where there is none, another thread may set one now
        state.interceptor = None
    try:
        return replay_on_tensor(steps, tangent)
    finally:
        state.grad_enabled = recording
        if interceptor is not None:
            state.interceptor = interceptor


# -------------------------------------------------------------------------------------------------------------- setting


def set_fw_grad(
    tensor: Tensor, tangent: Tensor, level: Level, is_inplace: bool = False, layout: Tensor | None = None
) -> Tensor:
    """Make `tangent` the tangent of `tensor` at `level`, and return `tensor`.

    `is_inplace`: `tensor` was just written to by an operator; `layout`: a tensor of the same layout, of which less is
    to be found out.
    """
    if tangent is None:
        raise RuntimeError(
            "Cannot set a forward grad that is an undefined Tensor: unpack_dual(tensor).primal is the tensor without "
            "one"
        )
    if tangent._grad_meta_ is not None and fw_grad(tangent, level) is not None:
        raise RuntimeError(
            f"Setting a forward grad that itself has a forward gradient at the same level {level.index} is not "
            "supported. Use unpack_dual(tangent).primal to leave that one out."
        )
    if tensor._memory_.dtype.kind not in "fcVW" or tangent._memory_.dtype.kind not in "fcVW":
        raise RuntimeError("Expected both tensor and its forward grad to be floating point or complex")
    meta: Any = tensor._grad_meta_
    if meta is None:
        meta = tensor._grad_meta_ = AutogradMeta()
    forward_grad = meta.fw_grad
    if forward_grad is None:
        forward_grad = _materialize(meta)
    elif level in forward_grad.values:
        if not is_inplace:
            raise RuntimeError("Only inplace operations can re-set the forward grad of a Tensor that already has one.")
        if forward_grad.values[level] is not tangent:
            raise RuntimeError(
                "Cannot set a value of a forward grad if it already exists. Inplace operations should modify it "
                "inplace."
            )
        return tensor
    if tangent._memory_.shape != tensor._memory_.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if is_inplace and meta.is_view and meta.forward is not FORWARD_BASE:
        tangent = _through_base(tensor, meta, tangent, level)
    if not has_same_meta(tangent, tensor if layout is None else layout):
        if not is_inplace and meta.is_view and meta.forward is not FORWARD_BASE:
            raise RuntimeError(
                "Expected the output of forward differentiable view operations to have the tangent have the same "
                "layout as primal, see Note [Forward gradients of views]"
            )
        tangent = _zeros_for(tensor, tangent).copy_(tangent)  # type: ignore[attr-defined]
    forward_grad.keep(level, tangent)
    return tensor


def _materialize(meta: AutogradMeta) -> ForwardGrad:
    with _lock:
        if meta.fw_grad is None:
            meta.fw_grad = new_forward_grad()
        return meta.fw_grad


def _through_base(tensor: Tensor, meta: Any, tangent: Tensor, level: Level) -> Tensor:
    """Case 4: a regular view has become dual by a write, and so does its base."""
    base, steps = forward_view(meta)
    if fw_grad(base, level) is not None:
        return tangent
    if has_same_meta(tangent, base) and has_same_meta(tangent, tensor):
        of_base = tangent
    else:
        of_base = _zeros_for(base, tangent)
        of_view = _view_of(of_base, _steps_from(base, tensor, steps))
        of_view.copy_(tangent)  # type: ignore[attr-defined]
        tangent = of_view
    set_fw_grad(base, of_base, level)
    return tangent


def attach(tangent: Tensor, level: Level) -> ForwardGrad:
    """The ForwardGrad of a result that is fresh from an operator and laid out as its tangent is."""
    forward_grad = new(ForwardGrad)
    forward_grad.values = {level: tangent}
    members = level.members
    members.append(reference(forward_grad))
    if len(members) > level.limit:
        level.forget_the_dead()
    return forward_grad


def attach_view(view: Tensor, tangent: Tensor, level: Level) -> None:
    """`set_fw_grad` for a fresh view and the same view of the base's tangent: they are laid out alike as those are."""
    meta = view._grad_meta_
    if meta is None:
        set_fw_grad(view, tangent, level)
    elif meta.fw_grad is None:
        meta.fw_grad = attach(tangent, level)
    elif level not in meta.fw_grad.values:  # or somebody has asked the view, and it its base
        meta.fw_grad.keep(level, tangent)


# --------------------------------------------------------------------------------------------------------------- layout


def has_same_meta(a: Tensor, b: Tensor) -> bool:
    """Do the same indices mean the same places in storages of the same size, to be read with the same bits?"""
    one, other = a._memory_, b._memory_
    if one.shape != other.shape or (a.__class__ is not b.__class__ and bits_of(a) != bits_of(b)):
        return False
    if a._special_ is not None or b._special_ is not None:
        if b._special_ is None and a._transparent_:  # type: ignore[attr-defined]
            # A plain tensor with a tangent for each example: they lie alike, in storages that are no one's own.
            steps = zip(one.shape, a.stride(), b.stride(), strict=True)
            return all(n == 1 or mine == theirs for n, mine, theirs in steps)
        return True  # it has no storage, and no places
    if one.base is None and other.base is None:
        # Arrays that own their memory are dense.
        return one.strides == other.strides or kernels.strides(one) == kernels.strides(other) or not one.size
    if kernels.storage_numel(one) != kernels.storage_numel(other):
        return False
    if not one.size:
        return True
    if kernels.storage_offset(one) != kernels.storage_offset(other):
        return False
    pairs = zip(one.shape, kernels.strides(one), kernels.strides(other), strict=True)
    return all(mine == theirs or n == 1 for n, mine, theirs in pairs)


def _zeros_for(tensor: Tensor, tangent: Tensor) -> Tensor:
    """What `tangent`, which lies otherwise than `tensor`, is written to in order to be its tangent."""
    if tangent._special_ is not None and tensor._special_ is None and tangent._transparent_:  # type: ignore[attr-defined]
        return transforms("levels").zeros_for(tensor, tangent)
    return zeros_of_layout(tensor)


def zeros_of_layout(tensor: Tensor) -> Tensor:
    """Zeros that have the same meta as `tensor`."""
    if tensor._special_ is not None:
        return ops.zeros_like(tensor)
    result = wrap(kernels.zeros_of_layout(tensor._memory_))
    if tensor.__class__ is not Tensor:
        keep_bits(tensor, result)
    return result
