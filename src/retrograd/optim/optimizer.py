"""Optimizer: groups of parameters with their settings, and a state for each parameter.

A subclass gives its settings to ``__init__`` as `defaults` and defines `step`.  In a state dict parameters are
numbered in order, so that it can be loaded into an optimizer of a model made anew.
"""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from ..autograd.grad_mode import enable_grad, set_grad_enabled
from ..autograd.hooks import RemovableHandle, add_hook
from ..tensor import Tensor


class _Required:
    """Marks a setting that every group must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()


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

    state: defaultdict[Tensor, Any]
    param_groups: list[dict[str, Any]]

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{params.type()}: put it into a list"
            )
        self.defaults = defaults
        self.state = defaultdict(dict)
        self.param_groups = []
        self._step_pre_hooks: OrderedDict[int, Callable] = OrderedDict()
        self._step_post_hooks: OrderedDict[int, Callable] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.step)  # type: ignore[method-assign]

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once; `closure`, if given, computes the loss anew and returns it."""
        raise NotImplementedError(f"{type(self).__name__} does not define step()")

    # ---------------------------------------------------------------------------------------------------- parameters

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with settings of their own, for instance layers that are trained from now on."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        listed = [params] if isinstance(params, Tensor) else list(params)
        if listed and all(isinstance(param, tuple) for param in listed):
            param_group["param_names"] = [name for name, _ in listed]
            listed = [param for _, param in listed]
        param_group["params"] = listed
        for param in listed:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not self.defaults.get("differentiable") and not (param.is_leaf or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len({id(param) for param in listed}) != len(listed):
            import warnings

            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                UserWarning,
                stacklevel=3,
            )
        known = {id(param) for group in self.param_groups for param in group["params"]}
        if not known.isdisjoint(id(param) for param in listed):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero."""
        for group in self.param_groups:
            for param in group["params"]:
                clear_grad(param, set_to_none)

    # -------------------------------------------------------------------------------------------------------- saving

    def state_dict(self) -> dict[str, Any]:
        """The state and the groups, with numbers in place of parameters."""
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            settings = {name: value for name, value in group.items() if name != "params"}
            groups.append({**settings, "params": [numbers[id(param)] for param in group["params"]]})
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, for parameters in the same order.

        >>> import retrograd as torch
        >>> w = torch.ones(1, requires_grad=True)
        >>> a, b = torch.optim.SGD([w], lr=0.1), torch.optim.SGD([w], lr=0.5)
        >>> b.load_state_dict(a.state_dict())
        >>> b.param_groups[0]["lr"]
        0.1
        """
        saved = state_dict["param_groups"]
        if len(self.param_groups) != len(saved):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(mine["params"]) != len(given["params"]) for mine, given in zip(self.param_groups, saved)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        numbers = chain.from_iterable(group["params"] for group in saved)
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number: dict[Any, Tensor] = dict(zip(numbers, params, strict=True))
        state: defaultdict[Any, Any] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in by_number:
                state[by_number[number]] = _like_parameter(by_number[number], value)
            else:
                state[number] = deepcopy(value)
        groups = []
        for mine, given in zip(self.param_groups, saved, strict=True):
            settings = deepcopy({name: value for name, value in given.items() if name != "params"})
            if "param_names" in mine:
                settings.setdefault("param_names", mine["param_names"])
            groups.append({**settings, "params": mine["params"]})
        self.__setstate__({"state": state, "param_groups": groups})

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in ("_step_pre_hooks", "_step_post_hooks"):
            self.__dict__.setdefault(name, OrderedDict())
        for group in self.param_groups:  # settings that an older version did not have
            for setting, default in self.defaults.items():
                group.setdefault(setting, default)

    # --------------------------------------------------------------------------------------------------------- hooks

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` before each step; it may return other (args, kwargs)."""
        return add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call ``hook(optimizer, args, kwargs)`` after each step."""
        return add_hook(self._step_post_hooks, hook)

    def __repr__(self) -> str:
        lines = []
        for index, group in enumerate(self.param_groups):
            lines.append(f"\nParameter Group {index}\n")
            lines += [f"    {name}: {group[name]}\n" for name in sorted(group) if name not in ("params", "param_names")]
        return f"{type(self).__name__} ({''.join(lines)})"


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


def _like_parameter(param: Tensor, value: Any, key: Any = None) -> Any:
    """A copy of a piece of state, with tensors in the dtype of their parameter; counts of steps stay as they are."""
    if isinstance(value, Tensor):
        if key != "step" and param.is_floating_point():
            return value.detach().to(param.dtype, copy=True)
        return value.detach().clone()
    if isinstance(value, dict):
        return {name: _like_parameter(param, item, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_like_parameter(param, item) for item in value)
    return deepcopy(value)


def _with_hooks(step: Callable) -> Callable:
    """`step` between the hooks of the optimizer."""

    @functools.wraps(step)
    def wrapper(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if not (self._step_pre_hooks or self._step_post_hooks):
            return step(self, *args, **kwargs)
        for hook in list(self._step_pre_hooks.values()):
            replacement = hook(self, args, kwargs)
            if replacement is not None:
                if not isinstance(replacement, tuple) or len(replacement) != 2:
                    raise RuntimeError(
                        f"{step} must return None or a tuple of (new_args, new_kwargs), but got {replacement}."
                    )
                args, kwargs = replacement
        result = step(self, *args, **kwargs)
        for hook in list(self._step_post_hooks.values()):
            hook(self, args, kwargs)
        return result

    return wrapper


def grouped_step(update: Callable[[Any, dict[str, Any], Tensor], None]) -> Any:
    """A `step` that calls ``update(self, group, param)`` for each parameter that has a gradient."""

    def step(self: Optimizer, closure: Callable[[], Any] | None = None) -> Any:
        """Change each parameter once; `closure`, if given, computes the loss anew and returns it."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            with set_grad_enabled(bool(group.get("differentiable"))):
                for param in group["params"]:
                    if param.grad is not None:
                        update(self, group, param)
        return loss

    step.__qualname__ = update.__qualname__.replace(update.__name__, "step")
    step.__module__ = update.__module__
    return step


def check_setting(name: str, value: Any, valid: Any) -> None:
    """Refuse a setting that makes no sense."""
    if not valid:
        raise ValueError(f"Invalid {name}: {value}")
