"""Optimizer: groups of parameters with their settings, and a state for each parameter.

A subclass gives its settings to ``__init__`` as `defaults` and defines `step`.  In a state dict parameters are
numbered in order, so that it can be loaded into an optimizer of a model made anew.
"""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any, ClassVar, TypeAlias

from ..autograd.grad_mode import enable_grad, set_grad_enabled
from ..autograd.hooks import RemovableHandle, add_hook
from ..core import dtypes
from ..ops import factories
from ..tensor import Tensor, type_name
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype
from .checks import (
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
)

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]

#: Helpers of torch's module of this name, for optimizers that are written with them.
HELPERS = (
    _default_to_fused_or_foreach,
    _device_dtype_check_for_fused,
    _get_capturable_supported_devices,
    _get_scalar_dtype,
    _get_value,
    _to_scalar,
)

ParamsT: TypeAlias = Iterable[Tensor | dict[str, Any] | tuple[str, Tensor]]
StateDict: TypeAlias = dict[str, Any]

_global_optimizer_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_optimizer_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()


class _RequiredParameter:
    """Marks a setting that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: _RequiredParameter = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` before each step of every optimizer.

    >>> import retrograd as torch
    >>> def announce(optimizer, args, kwargs):
    ...     print(type(optimizer).__name__)
    >>> w = torch.ones(1, requires_grad=True)
    >>> with torch.optim.optimizer.register_optimizer_step_pre_hook(announce):
    ...     torch.optim.SGD([w]).step()
    SGD
    """
    return add_hook(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call ``hook(optimizer, args, kwargs)`` after each step of every optimizer."""
    return add_hook(_global_optimizer_post_hooks, hook)


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, a step, which records what it does if the optimizer is differentiable and nothing if not."""

    @functools.wraps(func)
    def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(bool(self.defaults["differentiable"])):
            return func(self, *args, **kwargs)

    return step


def _view_as_real(params: list[Tensor], *state_and_grads: list[Tensor]) -> None:
    """Put real views in place of the complex tensors of lists."""
    from .update import as_real  # rules are loaded by who steps

    for i, param in enumerate(params):
        if param.is_complex():
            for tensors in (params, *state_and_grads):
                tensors[i] = as_real(tensors[i])


class Optimizer:
    """The base class of optimizers.

    `params` is an iterable of tensors, of (name, tensor) pairs, or of groups: dictionaries with ``"params"`` and
    settings that differ from `defaults`.

    >>> import retrograd as torch
    >>> class SignDescent(torch.optim.Optimizer):
    ...     def __init__(self, params, lr):
    ...         super().__init__(params, {"lr": lr})
    ...     @torch.no_grad()
    ...     def step(self, closure=None):
    ...         for group in self.param_groups:
    ...             for p in group["params"]:
    ...                 p.sub_(p.grad.sign(), alpha=group["lr"])
    >>> w = torch.tensor([1., -1.], requires_grad=True)
    >>> (w * w).sum().backward()
    >>> SignDescent([w], lr=0.5).step()
    >>> w
    tensor([ 0.5000, -0.5000], requires_grad=True)
    """

    #: Settings that state dicts and pickles of older versions do not have, and what they stand for there.
    _OLDER: ClassVar[dict[str, Any]] = {}
    #: Numbers of the state that older versions kept as such, and that are tensors now.
    _NUMBERS: ClassVar[tuple[str, ...]] = ("step",)

    state: defaultdict[Tensor, Any]
    param_groups: list[dict[str, Any]]
    defaults: dict[str, Any]

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type_name(params)}: put it into a list"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._make_hooks()
        self._patch_step_function()
        groups: list[Any] = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; `closure`, if given, computes the loss anew and returns it."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    # ---------------------------------------------------------------------------------------------------- parameters

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own, for instance layers that are trained from now on."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _listed(param_group["params"])
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if len(set(params)) != len(params):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        named = bool(names) or "param_names" in param_group
        for group in self.param_groups:
            if ("param_names" in group) != named:
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with' if named else 'without'} names to the optimizer"
                )
            if not set(group["params"]).isdisjoint(params):
                raise ValueError("some parameters appear in more than one parameter group")
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                clear_grad(param, set_to_none)

    # -------------------------------------------------------------------------------------------------------- saving

    def state_dict(self) -> StateDict:
        """The state and the groups, with numbers in place of parameters."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        before = 0
        for group in self.param_groups:
            numbers = {id(param): number for number, param in enumerate(group["params"], before)} | numbers
            before += len(group["params"])
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(param)] for param in group["params"]]})
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        state_dict: StateDict = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            replacement = hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        return state_dict

    def load_state_dict(self, state_dict: StateDict) -> None:
        """Take over a copy of what `state_dict` gave, for parameters in the same order.

        >>> import retrograd as torch
        >>> w = torch.ones(1, requires_grad=True)
        >>> a, b = torch.optim.SGD([w], lr=0.1), torch.optim.SGD([w], lr=0.5)
        >>> b.load_state_dict(a.state_dict())
        >>> b.param_groups[0]["lr"]
        0.1
        """
        state_dict = state_dict.copy()
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            replacement = hook(self, state_dict)
            if replacement is not None:
                state_dict = replacement
        saved = state_dict["param_groups"]
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(given["params"]) for mine, given in zip(self.param_groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        by_number: dict[Any, tuple[Tensor, dict[str, Any]]] = {}
        groups = []
        for mine, given in zip(self.param_groups, saved, strict=True):
            for number, param in zip(given["params"], mine["params"], strict=True):
                by_number[number] = param, given
            settings = deepcopy({name: value for name, value in given.items() if name != "params"})
            if "param_names" in mine:
                settings.setdefault("param_names", mine["param_names"])
            groups.append({**settings, "params": mine["params"]})
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in by_number:
                param, given = by_number[number]
                state[param] = _like_parameter(param, given, value)
            else:
                state[number] = deepcopy(value)
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_optimizer_step_pre_hooks" not in self.__dict__:
            self._make_hooks()
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)
        for group in self.param_groups:
            for name, value in self._OLDER.items():
                group.setdefault(name, value)
            for param in group["params"]:
                of_param = self.state.get(param) or {}
                for name in self._NUMBERS:
                    if name in of_param and not isinstance(of_param[name], Tensor):
                        of_param[name] = new_number(of_param[name], param, group)

    # --------------------------------------------------------------------------------------------------------- hooks

    def _make_hooks(self) -> None:
        self._optimizer_step_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_step_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_pre_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
        self._optimizer_load_state_dict_post_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()

    def _patch_step_function(self) -> None:
        """Give the class's `step` its hooks, when it is first used, and this instance the name of `zero_grad`."""
        cls = type(self)
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{cls.__name__}.zero_grad"
        if not getattr(cls.step, "hooked", False):
            hooked = self.profile_hook_step(cls.step)
            hooked.hooked = True  # type: ignore[attr-defined]
            cls.step = hooked  # type: ignore[method-assign]

    def _optimizer_step_code(self) -> None:
        """Called after each step, for those who look for steps in a trace of calls."""

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """`func`, a step, between the hooks of all optimizers and those of this one."""

        @functools.wraps(func)
        def step(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
            pre, post = self._optimizer_step_pre_hooks, self._optimizer_step_post_hooks
            if not (pre or post or _global_optimizer_pre_hooks or _global_optimizer_post_hooks):
                result = func(self, *args, **kwargs)
                self._optimizer_step_code()
                return result
            args = (self, *args)
            for hook in [*_global_optimizer_pre_hooks.values(), *pre.values()]:
                replacement = hook(self, args, kwargs)
                if replacement is not None:
                    if not isinstance(replacement, tuple) or len(replacement) != 2:
                        raise RuntimeError(
                            f"{func} must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
                        )
                    args, kwargs = replacement
            result = func(*args, **kwargs)
            self._optimizer_step_code()
            for hook in [*post.values(), *_global_optimizer_post_hooks.values()]:
                hook(self, args, kwargs)
            return result

        return step

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other (args, kwargs)."""
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._optimizer_step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` before each `state_dict`."""
        return _placed(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` after each `state_dict`; it may return another one."""
        return _placed(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer, state_dict)`` before one is loaded; it may return another one."""
        return _placed(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(optimizer)`` after a state dict was loaded."""
        return _placed(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    # --------------------------------------------------------------------------------------------- what torch has too

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: Any, with_indices: bool = False) -> dict[Any, Any]:
        return _group_tensors_by_device_and_dtype(tensorlistlist, with_indices)

    def _accelerator_graph_capture_health_check(self) -> None:
        """Nothing is captured in graphs here."""

    _cuda_graph_capture_health_check = _accelerator_graph_capture_health_check

    def __repr__(self) -> str:
        lines = []
        for index, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {index}\n")
            lines += [f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params"]
        return f"{type(self).__name__} ({''.join(lines)})"


class GroupedOptimizer(Optimizer):
    """An optimizer that goes through its groups, one after the other: a subclass defines `_update_group`."""

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change each parameter that has a gradient; `closure`, if given, computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            self._update_group(group)
        return loss

    def _update_group(self, group: dict[str, Any]) -> None:
        raise NotImplementedError

    def _collect(
        self, title: str, group: dict[str, Any], names: tuple[str, ...], params: list[Tensor], *lists: list[Tensor]
    ) -> bool:
        """Fill lists with the parameters that have gradients, these, and their state; whether one is complex.

        The state is a tensor of zeros for each of `names` and, last, the number of steps.
        """
        has_complex = False
        for param, grad in dense_grads(title, group):
            has_complex |= param.is_complex()
            state = self.state[param]
            if not state:
                state["step"] = new_number(0.0, param, group)
                state.update({name: factories.zeros_like(param) for name in names})
            params.append(param)
            for collected, value in zip(lists, (grad, *[state[name] for name in names], state["step"]), strict=True):
                collected.append(value)
        return has_complex


# -------------------------------------------------------------------------------------------------------------- pieces


def _listed(params: Any) -> tuple[list[Any], list[str]]:
    """Parameters, and their names if they came with some."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = list(params)
    names = [param[0] for param in listed if isinstance(param, tuple)]
    if names and len(names) != len(listed):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [param[1] if isinstance(param, tuple) else param for param in listed], names


def _placed(hooks: OrderedDict[int, Callable[..., Any]], hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    """Add a hook, as the last or the first one."""
    handle = add_hook(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def new_number(value: Any, param: Tensor, group: dict[str, Any]) -> Tensor:
    """A number of a parameter's state, as a tensor."""
    fused = group.get("fused")
    on = param.device if group.get("capturable") or fused else None
    return factories.tensor(float(_get_value(value)), dtype=_get_scalar_dtype(is_fused=fused), device=on)


def clear_grad(param: Tensor, set_to_none: bool) -> None:
    """Forget the gradient of one parameter, or set it to zero."""
    grad = param.grad
    if grad is None:
        return
    if set_to_none:
        param.grad = None
        return
    if grad.grad_fn is not None:
        grad.detach_()
    else:
        grad.requires_grad_(False)
    grad.zero_()


def _like_parameter(param: Tensor, group: dict[str, Any], value: Any, key: Any = None) -> Any:
    """A copy of a piece of state, with tensors in the dtype of their parameter; counts of steps stay as they are."""
    if isinstance(value, Tensor):
        dtype: dtypes.dtype | None = None
        if key == "step":
            dtype = dtypes.float32 if group.get("capturable") or group.get("fused") else None
            device = param.device if dtype is not None else value.device
        else:
            dtype = param.dtype if param.is_floating_point() else None
            device = param.device
        return value.detach().to(device=device, dtype=dtype or value.dtype, copy=True)
    if isinstance(value, dict):
        return {name: _like_parameter(param, group, item, name) for name, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset, deque)):
        items = [_like_parameter(param, group, item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return deepcopy(value)


def dense_grads(optimizer: str, group: dict[str, Any], instead: str = "") -> list[tuple[Tensor, Tensor]]:
    """The parameters of a group that have gradients, with these; none of them is sparse."""
    found = []
    for param in group["params"]:
        grad = param.grad
        if grad is not None:
            if grad.is_sparse:
                raise RuntimeError(f"{optimizer} does not support sparse gradients{instead}")
            found.append((param, grad))
    return found
