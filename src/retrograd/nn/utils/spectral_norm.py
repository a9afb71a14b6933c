"""The older spectral norm, by a hook before `forward`; `parametrizations.spectral_norm` is the newer one."""

from __future__ import annotations

from typing import Any, TypeVar

from ... import linalg
from ...autograd.grad_mode import no_grad
from ...ops import namespace as ops
from ...tensor import Tensor
from .. import functional as F
from ..modules.module import Module
from ..modules.module_hooks import _WrappedHook
from ..parameter import Parameter, is_lazy

__all__ = [
    "SpectralNorm",
    "SpectralNormLoadStateDictPreHook",
    "SpectralNormStateDictHook",
    "remove_spectral_norm",
    "spectral_norm",
]

M = TypeVar("M", bound=Module)


class SpectralNorm:
    """The hook: computes the weight `name` from ``name_orig``, with the vectors ``name_u`` and ``name_v``."""

    _version = 1

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name = name
        self.dim = dim
        self.n_power_iterations = n_power_iterations
        self.eps = eps

    def reshape_weight_to_matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix of `dim` by all other dimensions."""
        weight = weight.movedim(self.dim, 0) if self.dim else weight
        return weight.reshape(weight.shape[0], -1)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight as it is now, after some more steps of the power method if so wished."""
        weight, u, v = (getattr(module, self.name + suffix) for suffix in ("_orig", "_u", "_v"))
        matrix = self.reshape_weight_to_matrix(weight)
        if do_power_iteration:
            with no_grad():
                # In place: replicas share the buffers.
                for _ in range(self.n_power_iterations):
                    v.copy_(F.normalize(ops.mv(matrix.t(), u), dim=0, eps=self.eps))
                    u.copy_(F.normalize(ops.mv(matrix, v), dim=0, eps=self.eps))
                # Copies: the next call writes over the buffers, and the backward pass may come after it.
                u, v = u.clone(), v.clone()
        return weight / ops.dot(u, ops.mv(matrix, v))

    def remove(self, module: Module) -> None:
        """Make the weight a parameter again."""
        with no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        for suffix in ("", "_u", "_v", "_orig"):
            delattr(module, self.name + suffix)
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))

    def _solve_v_and_rescale(self, weight_mat: Tensor, u: Tensor, target_sigma: Tensor) -> Tensor:
        """The `v` with which `u` and the matrix give `target_sigma`."""
        transposed = weight_mat.t()
        v = linalg.pinv(transposed.mm(weight_mat)).mm(transposed).mv(u)
        return v.mul_(target_sigma / ops.dot(u, ops.mv(weight_mat, v)))

    @staticmethod
    def apply(module: Module, name: str, n_power_iterations: int, dim: int, eps: float) -> SpectralNorm:
        """Move the weight and register the hooks."""
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        made = SpectralNorm(name, n_power_iterations, dim, eps)
        weight: Any = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        if is_lazy(weight):
            raise ValueError(
                "The module passed to `SpectralNorm` can't have uninitialized parameters. Make sure to run the dummy "
                "forward before applying spectral normalization"
            )
        with no_grad():
            sizes = made.reshape_weight_to_matrix(weight).shape
            u, v = (F.normalize(weight.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in sizes)
        delattr(module, name)
        module.register_parameter(name + "_orig", weight)
        # An attribute until the first call; not a parameter.
        setattr(module, name, weight.detach())
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(made)
        module._register_state_dict_hook(SpectralNormStateDictHook(made))
        module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(made))
        return made


class SpectralNormStateDictHook:
    """Writes the version of the hook into a state dict."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: dict[str, Any]) -> None:
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.fn.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.fn._version


class SpectralNormLoadStateDictPreHook:
    """Computes what state dicts of before version 1 lack: they had the weight instead of ``name_v``."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        *rest: Any,
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(self.fn.name + ".version")
        if version is not None and version >= 1:
            return
        key = prefix + self.fn.name
        has = {suffix: key + suffix in state_dict for suffix in ("_orig", "", "_u", "_v")}
        if version is None and has["_orig"] and has["_u"] and has["_v"] and not has[""]:
            return  # a newer one without its metadata
        missing = [key + suffix for suffix in ("_orig", "", "_u") if not has[suffix]]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with no_grad():
            original, weight = state_dict[key + "_orig"], state_dict.pop(key)
            matrix = self.fn.reshape_weight_to_matrix(original)
            sigma = (original / weight).mean()
            state_dict[key + "_v"] = self.fn._solve_v_and_rescale(matrix, state_dict[key + "_u"], sigma)


def spectral_norm(
    module: M, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> M:
    """Divide a weight, as a matrix with `dim` by all other dimensions, by its largest singular value."""
    if dim is None:
        from ..modules.conv import _ConvTransposeNd  # modules are loaded by who uses them

        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module: M, name: str = "weight") -> M:
    """The opposite of `spectral_norm`."""
    for key, hook in list(module._forward_pre_hooks.items()):
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            break
    else:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for key, hook in list(hooks.items()):
            inner = hook.hook if isinstance(hook, _WrappedHook) else hook
            if (
                isinstance(inner, (SpectralNormStateDictHook, SpectralNormLoadStateDictPreHook))
                and inner.fn.name == name
            ):
                del hooks[key]
    return module
