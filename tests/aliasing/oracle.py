"""A second implementation of what programs say, without a graph: the functional replay that retrograd is held against.

A tensor is an array of positions in a `Memory`.  A `Family` is a memory together with the derivatives of what it holds
with respect to every entry of every leaf, carried along by forward mode: all views of one base are of one family, and
``detach()`` begins a new one on the same memory, without derivatives.  Writing to a tensor replaces values in
the memory and, with grad mode on, derivatives in the family.  There is nothing else: no nodes, no versions, no
saved tensors, no history to rewrite.

Whatever retrograd refuses to do is not done here either; whatever it does must give these values and gradients.
Operations whose derivative depends on the order of things (writing to one place twice) raise `NotInThisMachine`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .programs import NotInThisMachine

COLUMNS = 48  # entries of all leaves of a program


class Memory:
    """Values, in a row."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values


class Family:
    """A memory and the derivatives of what is in it."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.derivatives = np.zeros((len(memory.values), COLUMNS))
        self.views = 0


class Dual:
    """Values and derivatives: the latter have one more dimension, the last."""

    def __init__(self, values: Any, derivatives: Any) -> None:
        self.values = np.asarray(values)
        self.derivatives = np.asarray(derivatives)

    def expanded(self, shape: tuple[int, ...]) -> Dual:
        missing = len(shape) - self.values.ndim
        raised = self.derivatives.reshape((1,) * missing + self.derivatives.shape)
        return Dual(np.broadcast_to(self.values, shape), np.broadcast_to(raised, (*shape, COLUMNS)))

    def __getitem__(self, key: Any) -> Dual:
        return Dual(self.values[key], self.derivatives[key])


def dual(x: Any) -> Dual:
    """A tensor, a mask or a number as a Dual."""
    if isinstance(x, Dual):
        return x
    if isinstance(x, Tensor):
        values = np.empty(x.at.shape) if 0 in x.at.strides else np.empty_like(x.at, dtype=float)
        values[...] = x.family.memory.values[x.at]
        derivatives = x.family.derivatives[x.at]
        return Dual(values, derivatives * 0 if x.cut or not Oracle.grad_enabled else derivatives)
    values = np.asarray(x, dtype=float)
    return Dual(values, np.zeros((*values.shape, COLUMNS)))


def elementwise(f: Callable, slopes: Callable, *inputs: Any) -> Dual:
    """A function of broadcast inputs; `slopes` gives its partial derivatives."""
    duals = [dual(x) for x in inputs]
    values = np.asarray(f(*[d.values for d in duals]))
    duals = [d.expanded(values.shape) for d in duals]
    partial = slopes(*[d.values for d in duals])
    derivatives = sum(d.derivatives * np.asarray(p, float)[..., None] for d, p in zip(duals, partial, strict=True))
    return checked(Dual(values, np.broadcast_to(derivatives, (*values.shape, COLUMNS))))


def checked(result: Dual) -> Dual:
    """Nothing that is infinite: 0 times it is a matter of taste."""
    if not (np.isfinite(result.values).all() and np.isfinite(result.derivatives).all()):
        raise NotInThisMachine("not finite")
    return result


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, tuple[Callable, Callable]] = {
    "exp": (np.exp, lambda x: [np.exp(x)]),
    "sin": (np.sin, lambda x: [np.cos(x)]),
    "tanh": (np.tanh, lambda x: [1 - np.tanh(x) ** 2]),
    "sigmoid": (sigmoid, lambda x: [sigmoid(x) * (1 - sigmoid(x))]),
    "relu": (lambda x: np.maximum(x, 0), lambda x: [x > 0]),
    "abs": (np.abs, lambda x: [np.sign(x)]),
    "neg": (np.negative, lambda x: [np.full(x.shape, -1.0)]),
    "sqrt": (np.sqrt, lambda x: [0.5 / np.sqrt(x)]),
}
BINARY: dict[str, tuple[Callable, Callable]] = {
    "add": (np.add, lambda x, y: [np.ones(x.shape), np.ones(x.shape)]),
    "sub": (np.subtract, lambda x, y: [np.ones(x.shape), -np.ones(x.shape)]),
    "mul": (np.multiply, lambda x, y: [y, x]),
    "div": (np.divide, lambda x, y: [1 / y, -x / y**2]),
}


def clamped(x: Any, min: float = -np.inf, max: float = np.inf) -> Dual:
    return elementwise(lambda v: np.clip(v, min, max), lambda v: [(v >= min) & (v <= max)], x)


def power(x: Any, exponent: Any) -> Dual:
    return elementwise(lambda v: v**exponent, lambda v: [exponent * v ** (exponent - 1)], x)


def moved(x: Any, f: Callable) -> Dual:
    """What only moves or adds up elements: `f` works on arrays with any further last dimensions."""
    d = dual(x)
    return Dual(f(d.values), f(d.derivatives))


class Tensor:
    """Positions in the memory of a family."""

    def __init__(self, family: Family, at: np.ndarray, cut: bool = False, base: Tensor | None = None) -> None:
        self.family, self.at, self.cut, self.base = family, np.asarray(at), cut, base
        self.columns: slice | None = None  # of a leaf that requires grad, now or once
        self.active = self.recorded = False
        self.grad: np.ndarray | None = None

    # ------------------------------------------------------------------------------------------------------ what it is

    @property
    def shape(self) -> tuple[int, ...]:
        return self.at.shape

    @property
    def dtype(self) -> Any:
        return Oracle.float64

    @property
    def values(self) -> np.ndarray:
        return np.asarray(self.family.memory.values[self.at])

    def _is_view(self) -> bool:
        return self.base is not None

    # ----------------------------------------------------------------------------------------------------------- views

    def _view(self, at: np.ndarray) -> Tensor:
        self.family.views += 1
        return Tensor(self.family, at, self.cut or not Oracle.grad_enabled, self.base or self)

    def view(self, *shape: Any) -> Tensor:
        return self._view(self.at.reshape(_sizes(shape)))

    def reshape(self, *shape: Any) -> Tensor:
        at = self.at.reshape(_sizes(shape))
        if np.shares_memory(at, self.at) or not at.size:
            return self._view(at)
        return new(moved(self, lambda v: v.reshape(at.shape + v.shape[self.at.ndim :])))

    def flatten(self) -> Tensor:
        return self if self.at.ndim == 1 else self.reshape(-1)

    def view_as(self, other: Tensor) -> Tensor:
        return self.view(other.shape)

    def expand(self, *shape: Any) -> Tensor:
        return self._view(np.broadcast_to(self.at, _sizes(shape)))

    def expand_as(self, other: Tensor) -> Tensor:
        return self.expand(other.shape)

    def squeeze(self, dim: int | None = None) -> Tensor:
        if dim is None:
            return self._view(self.at.squeeze())
        return self._view(self.at.squeeze(dim) if self.at.ndim and self.at.shape[dim] == 1 else self.at)

    def unsqueeze(self, dim: int) -> Tensor:
        return self._view(np.expand_dims(self.at, dim))

    def transpose(self, one: int, other: int) -> Tensor:
        return self._view(self.at.swapaxes(one, other))

    @property
    def mT(self) -> Tensor:
        return self.transpose(-1, -2)

    def permute(self, dims: list[int]) -> Tensor:
        return self._view(self.at.transpose(dims))

    def movedim(self, source: int, target: int) -> Tensor:
        return self._view(np.moveaxis(self.at, source, target))

    def diagonal(self) -> Tensor:
        return self._view(self.at.diagonal())

    def select(self, dim: int, index: int) -> Tensor:
        return self._view(self.at[(slice(None),) * (dim % self.at.ndim) + (index,)])

    def narrow(self, dim: int, start: int, length: int) -> Tensor:
        return self._view(np.moveaxis(np.moveaxis(self.at, dim, 0)[start : start + length], 0, dim))

    def unfold(self, dim: int, size: int, step: int) -> Tensor:
        dim %= self.at.ndim
        windows = np.lib.stride_tricks.sliding_window_view(self.at, size, dim)
        return self._view(np.moveaxis(np.moveaxis(windows, dim, 0)[::step], 0, dim))

    def as_strided(self, size: tuple[int, ...], stride: tuple[int, ...], offset: int | None = None) -> Tensor:
        places = np.arange(len(self.family.memory.values))
        first = self.at.reshape(-1)[0] if offset is None else offset
        steps = [step * places.itemsize for step in stride]
        at = np.lib.stride_tricks.as_strided(places[first:], size, steps)
        if not np.isin(at, self.at).all() or not (self.base or self).at.flags.c_contiguous:
            raise NotInThisMachine("what lies beyond the tensor itself")
        return self._view(at)

    def unbind(self, dim: int) -> list[Tensor]:
        return [self.select(dim, i) for i in range(self.at.shape[dim])]

    def split(self, size: int, dim: int) -> list[Tensor]:
        return [self.narrow(dim, i, size) for i in range(0, max(self.at.shape[dim], 1), size)]

    def chunk(self, chunks: int, dim: int) -> list[Tensor]:
        return self.split(max(-(-self.at.shape[dim] // chunks), 1), dim)

    def tensor_split(self, parts: int, dim: int) -> list[Tensor]:
        return [self._view(at) for at in np.array_split(self.at, parts, dim)]

    def contiguous(self) -> Tensor:
        return self if self.at.flags.c_contiguous else self.clone()

    def detach(self) -> Tensor:
        return Tensor(Family(self.family.memory), self.at)

    def __getitem__(self, key: Any) -> Tensor:
        at = self.at[_key(key)]
        if _is_advanced(key):
            return new(moved(self, lambda v: v[_key(key)]))
        return self._view(np.asarray(at))

    # ------------------------------------------------------------------------------------------------------ computing

    def clone(self) -> Tensor:
        return new(dual(self))

    def sum(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        axes: Any = tuple(range(self.at.ndim)) if dim is None else dim % self.at.ndim if self.at.ndim else ()
        return new(moved(self, lambda v: v.sum(axes, keepdims=keepdim)))

    def cumsum(self, dim: int) -> Tensor:
        return new(moved(self, lambda v: np.ascontiguousarray(v.cumsum(dim))))

    def flip(self, dim: int) -> Tensor:
        return new(moved(self, lambda v: np.flip(v, dim).copy()))

    def clamp(self, *args: Any, **kwargs: Any) -> Tensor:
        return new(clamped(self, *args, **kwargs))

    def pow(self, exponent: Any) -> Tensor:
        return new(power(self, exponent))

    def __matmul__(self, other: Tensor) -> Tensor:
        x, y = dual(self), dual(other)
        left = np.einsum("ijk,jl->ilk", x.derivatives, y.values)
        return new(Dual(x.values @ y.values, left + np.einsum("ij,jlk->ilk", x.values, y.derivatives)))

    def __gt__(self, bound: float) -> np.ndarray:
        return self.values > bound

    # -------------------------------------------------------------------------------------------------------- writing

    def _write(self, value: Any, at: Any = None) -> Tensor:
        """Put values (and, in grad mode, derivatives) at this tensor's places."""
        at = self.at if at is None else np.asarray(at)
        if len(np.unique(at)) < at.size or len(np.unique(self.at)) < self.at.size:
            raise NotInThisMachine("written twice")
        d = dual(value)
        while d.values.ndim > at.ndim and d.values.shape[0] == 1:
            d = d[0]
        d = d.expanded(at.shape)
        self.family.memory.values[at] = d.values
        if Oracle.grad_enabled:
            self.family.derivatives[at] = d.derivatives
        return self

    def copy_(self, other: Any) -> Tensor:
        return self._write(other)

    fill_ = copy_

    def zero_(self) -> Tensor:
        return self._write(0.0)

    def clamp_(self, *args: Any, **kwargs: Any) -> Tensor:
        return self._write(clamped(self, *args, **kwargs))

    def pow_(self, exponent: Any) -> Tensor:
        return self._write(power(self, exponent))

    def cumsum_(self, dim: int) -> Tensor:
        return self._write(moved(self, lambda v: v.cumsum(dim)))

    def tril_(self) -> Tensor:
        rows, columns = (np.arange(n) for n in self.at.shape[-2:])
        return self._write(elementwise(np.multiply, lambda x, y: [y, x], self, rows[:, None] >= columns))

    def sub_(self, other: Any, alpha: float = 1) -> Tensor:
        slopes = lambda x, y: [x * 0 + 1, x * 0 - alpha]
        return self._write(elementwise(lambda x, y: x - alpha * y, slopes, self, other))

    def addcmul_(self, one: Any, other: Any) -> Tensor:
        return self._write(elementwise(lambda x, y, z: x + y * z, lambda x, y, z: [x * 0 + 1, z, y], self, one, other))

    def lerp_(self, end: Any, weight: float) -> Tensor:
        slopes = lambda x, y: [x * 0 + 1 - weight, x * 0 + weight]
        return self._write(elementwise(lambda x, y: x + weight * (y - x), slopes, self, end))

    def masked_scatter_(self, mask: np.ndarray, source: Any) -> Tensor:
        at, d = self.at[mask], dual(source)
        columns = d.derivatives.reshape(-1, COLUMNS)
        return self._write(Dual(d.values.reshape(-1)[: at.size], columns[: at.size]), at)

    def masked_fill_(self, mask: np.ndarray, value: Any) -> Tensor:
        return self._write(value, self.at[mask])

    def index_fill_(self, dim: int, index: np.ndarray, value: Any) -> Tensor:
        return self._write(value, self.at[index.astype(int)])

    def index_put_(self, indices: tuple, value: Any) -> Tensor:
        return self._write(value, self.at[tuple(i.astype(int) for i in indices)])

    def index_add_(self, dim: int, index: np.ndarray, source: Any) -> Tensor:
        part = Tensor(self.family, self.at[index.astype(int)], self.cut)
        return self._write(elementwise(*BINARY["add"], part, source), part.at)

    def scatter_(self, dim: int, index: np.ndarray, source: Any) -> Tensor:
        return self._write(source, np.take_along_axis(self.at, index.astype(int), dim))

    def scatter_add_(self, dim: int, index: np.ndarray, source: Any) -> Tensor:
        at = np.take_along_axis(self.at, index.astype(int), dim)
        self._write(elementwise(*BINARY["add"], Tensor(self.family, at, self.cut), source), at)
        return self

    def _restride(self, at: np.ndarray) -> Tensor:
        if not Oracle.grad_enabled:
            raise NotInThisMachine("a history of another shape")
        if self.base is None:
            self.family.views += 1  # its leaf's columns have another shape from now on
        self.at = at
        return self

    def transpose_(self, one: int, other: int) -> Tensor:
        return self._restride(self.at.swapaxes(one, other))

    def squeeze_(self) -> Tensor:
        return self._restride(self.at.squeeze())

    def unsqueeze_(self, dim: int) -> Tensor:
        return self._restride(np.expand_dims(self.at, dim))

    def __setitem__(self, key: Any, value: Any) -> None:
        self._write(value, np.asarray(self.at[_key(key)]))

    # ------------------------------------------------------------------------------------------------------- gradients

    def requires_grad_(self, value: bool = True) -> Tensor:
        if value == self.active:
            return self
        if value and self.recorded:
            raise NotInThisMachine("a result, which may require grad already")
        if self.family.views or self.base is not None:
            raise NotInThisMachine("which of the views would know?")
        if value and self.columns is None:
            self.columns = Oracle.take(self.at.size)
        self.active = value
        assert self.columns is not None
        self.family.derivatives[self.at.reshape(-1)] = np.eye(COLUMNS)[self.columns] if value else 0.0
        if value:
            Oracle.leaves.append(self)
        return self

    def backward(self, retain_graph: bool = False, inputs: Any = None) -> None:
        if any(i.columns is None for i in inputs or ()):
            raise NotInThisMachine("the gradient of a result")
        derivatives = dual(self).derivatives.reshape(-1, COLUMNS).sum(0)
        for leaf in {id(leaf): leaf for leaf in Oracle.leaves}.values():
            if leaf.active and (inputs is None or any(leaf is i for i in inputs)):
                part = derivatives[leaf.columns].reshape(leaf.at.shape)
                leaf.grad = part if leaf.grad is None else np.asarray(leaf.grad + part)


def _operators() -> None:
    for name, rule in UNARY.items():
        setattr(Tensor, name, lambda self, rule=rule: new(elementwise(*rule, self)))
        setattr(Tensor, name + "_", lambda self, rule=rule: self._write(elementwise(*rule, self)))
    for name, rule in BINARY.items():
        setattr(Tensor, name, lambda self, other, rule=rule: new(elementwise(*rule, self, other)))
        if name != "sub":
            setattr(
                Tensor, name + "_", lambda self, other, rule=rule: self._write(elementwise(*rule, self, other))
            )
        for operator in (f"__{name}__", "__truediv__" if name == "div" else f"__{name}__"):
            setattr(Tensor, operator, getattr(Tensor, name))
        setattr(Tensor, f"__i{name}__", getattr(Tensor, name + "_"))
    Tensor.__neg__ = Tensor.neg  # type: ignore[attr-defined]


_operators()


def new(d: Dual) -> Tensor:
    """A tensor in memory of its own, laid out as the values are."""
    order = np.argsort([-abs(s) for s in d.values.strides], kind="stable")
    size = d.values.size
    at = np.arange(size).reshape([d.values.shape[i] for i in order]).transpose(np.argsort(order)) if size else None
    at = np.zeros(d.values.shape, int) if at is None else at
    result = Tensor(Family(Memory(np.zeros(size))), at)
    result.recorded = Oracle.grad_enabled
    if size:
        result.family.memory.values[at] = d.values
        if Oracle.grad_enabled:
            result.family.derivatives[at] = d.derivatives
    return result


def _sizes(shape: tuple) -> tuple[int, ...]:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def _is_advanced(key: Any) -> bool:
    if isinstance(key, tuple):
        return any(_is_advanced(k) for k in key)
    return isinstance(key, (list, np.ndarray))


def _key(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_key(k) for k in key)
    if isinstance(key, np.ndarray) and key.dtype != bool:
        return key.astype(int)
    return key


class Oracle:
    """What ``torch`` stands for when a program is run here."""

    __name__ = "oracle"
    float64 = "float64"
    grad_enabled = True
    leaves: list[Tensor] = []
    taken = 0

    def __init__(self) -> None:
        Oracle.grad_enabled, Oracle.leaves, Oracle.taken = True, [], 0
        self.autograd = self
        self.graph = self

    @staticmethod
    def take(number: int) -> slice:
        Oracle.taken += number
        if Oracle.taken > COLUMNS:
            raise NotInThisMachine("too many leaves")
        return slice(Oracle.taken - number, Oracle.taken)

    def tensor(self, values: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
        if dtype is None:
            return np.array(values)  # of indices
        result = new(dual(np.array(values, float)))
        result.recorded = False
        return result.requires_grad_() if requires_grad else result

    def zeros(self, shape: tuple, dtype: Any = None, requires_grad: bool = False) -> Tensor:
        return self.tensor(np.zeros(shape), self.float64, requires_grad)

    def grad(self, root: Tensor, wanted: Tensor, **options: Any) -> list[Tensor]:
        if wanted.columns is None:
            raise NotInThisMachine("the gradient of a result")
        derivatives = dual(root).derivatives.reshape(-1, COLUMNS).sum(0)
        with self.no_grad():
            return [new(dual(derivatives[wanted.columns].reshape(wanted.shape)))]

    @contextlib.contextmanager
    def _mode(self, enabled: bool) -> Any:
        before, Oracle.grad_enabled = Oracle.grad_enabled, enabled
        try:
            yield
        finally:
            Oracle.grad_enabled = before

    def no_grad(self) -> Any:
        return self._mode(False)

    def enable_grad(self) -> Any:
        return self._mode(True)

    def saved_tensors_hooks(self, pack: Any, unpack: Any) -> Any:
        return contextlib.nullcontext()

    def allow_mutation_on_saved_tensors(self) -> Any:
        return contextlib.nullcontext()

    def where(self, mask: np.ndarray, one: Any, other: Any) -> Tensor:
        mask = np.asarray(mask, float)
        return new(elementwise(lambda m, x, y: np.where(m, x, y), lambda m, x, y: [m * 0, m, 1 - m], mask, one, other))

    def cat(self, tensors: list[Tensor]) -> Tensor:
        duals = [dual(t) for t in tensors]
        return new(
            Dual(np.concatenate([d.values for d in duals]), np.concatenate([d.derivatives for d in duals]))
        )

    def stack(self, tensors: list[Tensor]) -> Tensor:
        duals = [dual(t) for t in tensors]
        return new(Dual(np.stack([d.values for d in duals]), np.stack([d.derivatives for d in duals])))

    def relu_(self, tensor: Any) -> Tensor:
        return tensor.relu_()

    def __getattr__(self, name: str) -> Any:
        raise NotInThisMachine(name)


