"""The vocabulary of the sample database: `Op`, `Sample`, `ErrorSample` and the tensor spec `T`.

A sample says what its tensors are (shape, dtype, domain, layout), not what library they belong to; `Sample.build`
makes them for any module that speaks torch's names, and `Sample.arrays` gives the same numbers as plain NumPy.
The numbers follow from a seed derived from the names of the operator and the sample, so that every test of a
sample, in every module and in every run, sees the same ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Any

import numpy as np

DIFFERENTIABLE = ("float16", "float32", "float64", "complex64", "complex128")
LAYOUTS = ("contiguous", "transposed", "strided", "expanded")


# ---------------------------------------------------------------------------------------------- tensors


@dataclass(frozen=True, eq=False)
class T:
    """A tensor to be: drawn uniformly from [low, high], or given by `values`.

    `avoid` keeps numbers `margin` away from points where the operator has a kink; `distinct` makes all numbers
    of the tensor differ by much more than a finite-difference step (so that no maximum is tied).
    """

    shape: tuple[int, ...] = ()
    dtype: str = "float64"
    low: float = -2.0
    high: float = 2.0
    avoid: tuple[float, ...] = ()
    margin: float = 0.1
    distinct: bool = False
    values: Any = None
    requires_grad: bool | None = None
    layout: str = "contiguous"

    @property
    def differentiable(self) -> bool:
        """Whether the tensor asks for a gradient; floating and complex ones do unless told otherwise."""
        return self.dtype in DIFFERENTIABLE if self.requires_grad is None else self.requires_grad

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """The numbers, dense and in C order."""
        if self.values is not None:
            return np.array(self.values, dtype=self.dtype)
        dtype = np.dtype(self.dtype)
        # Along an expanded dimension all numbers are the same, as they will share one cell of memory.
        shape = (1, *self.shape[1:]) if self.layout == "expanded" and self.shape and self.shape[0] else self.shape
        if dtype.kind == "b":
            drawn = rng.random(shape) < 0.5
        elif dtype.kind in "iu":
            drawn = rng.integers(int(self.low), int(self.high), shape, endpoint=True)
        elif dtype.kind == "c":
            drawn = self._draw_real(rng, shape) + 1j * self._draw_real(rng, shape)
        else:
            drawn = self._draw_real(rng, shape)
        return np.broadcast_to(np.asarray(drawn).astype(dtype), self.shape).copy()

    def _draw_real(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        if self.distinct:
            count = int(np.prod(shape))
            drawn = np.linspace(self.low, self.high, count + 2)[1:-1]
            drawn = rng.permutation(drawn).reshape(shape)
        else:
            drawn = np.asarray(rng.uniform(self.low, self.high, shape))
        for point in self.avoid:
            offset = drawn - point
            drawn = np.where(np.abs(offset) < self.margin, point + np.where(offset < 0, -1, 1) * self.margin, drawn)
        return drawn

    def __repr__(self) -> str:
        return f"T({self.shape}, {self.dtype}{'' if self.layout == 'contiguous' else ', ' + self.layout})"


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """A fresh copy of `array` with the strides that `layout` names."""
    if layout == "transposed" and array.ndim >= 2:
        return np.ascontiguousarray(array.swapaxes(-1, -2)).swapaxes(-1, -2)
    if layout in ("strided", "transposed") and array.ndim >= 1:
        # Every other cell of a wider buffer, and not from its beginning: strides and a storage offset.
        wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
        view = wide[..., 1::2]
        view[...] = array
        return view
    if layout == "expanded" and array.ndim >= 1 and array.size:
        row = array[:1].copy()
        return np.lib.stride_tricks.as_strided(row, array.shape, (0, *row.strides[1:]))
    return array.copy()


@dataclass(frozen=True)
class Same:
    """In a sample's arguments: the very tensor that the sample's `index`-th spec became (`mul(x, x)`)."""

    index: int


@dataclass(frozen=True)
class Attr:
    """In a sample's arguments: something looked up on the module, such as `Attr("float32")`."""

    name: str


def real(*shape: int, **spec: Any) -> T:
    """A float64 tensor in [-2, 2]."""
    return T(shape, **spec)


def nonzero(*shape: int, **spec: Any) -> T:
    """A float64 tensor in [-2, 2], not near zero."""
    return T(shape, avoid=(0.0,), margin=0.3, **spec)


def positive(*shape: int, **spec: Any) -> T:
    """A float64 tensor in [0.3, 2.5]."""
    return T(shape, **({"low": 0.3, "high": 2.5} | spec))


def distinct(*shape: int, **spec: Any) -> T:
    """A float64 tensor whose numbers are far apart."""
    return T(shape, distinct=True, **spec)


def integers(*shape: int, **spec: Any) -> T:
    """An int64 tensor in [-4, 4]."""
    return T(shape, **({"dtype": "int64", "low": -4, "high": 4} | spec))


def given(values: Any, dtype: str = "float64", **spec: Any) -> T:
    """A tensor of exactly these numbers."""
    return T(np.shape(values), dtype, values=values, **spec)


def index(values: Any, **spec: Any) -> T:
    """An int64 tensor of exactly these numbers."""
    return given(values, "int64", **spec)


def mask(values: Any, **spec: Any) -> T:
    """A bool tensor of exactly these numbers."""
    return given(values, "bool", **spec)


# ---------------------------------------------------------------------------------------------- samples


def map_tree(function: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `function` applied to what is not a list, tuple, dict or slice."""
    if isinstance(tree, tuple):
        return tuple(map_tree(function, item) for item in tree)
    if isinstance(tree, list):
        return [map_tree(function, item) for item in tree]
    if isinstance(tree, dict):
        return {key: map_tree(function, item) for key, item in tree.items()}
    return function(tree)


@dataclass
class Sample:
    """One call of an operator.

    smooth: finite differences hold here (no kink, tie, infinity or NaN within a step).
    second: second derivatives are checked as well.
    as_complex: a complex128 twin of the sample is derived where the operator supports complex numbers.
    method: the method form of the operator takes these arguments too.
    torch_first: torch's own first derivatives are right, and precise, here.
    torch_second: torch itself has second derivatives here.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)
    smooth: bool = True
    second: bool = True
    as_complex: bool = True
    method: bool = True
    torch_first: bool = True
    torch_second: bool = True
    seed: int = 0

    @property
    def specs(self) -> list[T]:
        """The tensors of the sample, in the order of its arguments."""
        found: list[T] = []
        map_tree(lambda leaf: found.append(leaf) if isinstance(leaf, T) else None, (self.args, self.kwargs))
        return found

    @property
    def in_double(self) -> bool:
        """Whether every differentiable tensor is precise enough for finite differences."""
        return all(spec.dtype in ("float64", "complex128") for spec in self.specs if spec.differentiable)

    def arrays(self) -> list[np.ndarray]:
        """The numbers of the sample's tensors, dense, in the order of `specs`."""
        rng = np.random.default_rng(self.seed)
        return [spec.draw(rng) for spec in self.specs]

    def build(self, torch: ModuleType, arrays: list[np.ndarray] | None = None, requires_grad: bool = True) -> Built:
        """The sample's arguments as tensors of the module `torch`, with the given numbers or its own."""
        moved = arrays is not None
        arrays = self.arrays() if arrays is None else arrays
        tensors: list[Any] = []
        for spec, array in zip(self.specs, arrays, strict=True):
            # Numbers from elsewhere may differ along an expanded dimension, which has but one cell for them.
            layout = "contiguous" if moved and spec.layout == "expanded" else spec.layout
            tensor = torch.from_numpy(laid_out(array, layout))
            if requires_grad and spec.differentiable:
                tensor.requires_grad_()
            tensors.append(tensor)
        taken = iter(tensors)

        def resolve(leaf: Any) -> Any:
            if isinstance(leaf, T):
                return next(taken)
            if isinstance(leaf, Same):
                return tensors[leaf.index]
            return lookup(torch, leaf.name) if isinstance(leaf, Attr) else leaf

        args, kwargs = map_tree(resolve, (self.args, self.kwargs))
        return Built(args, kwargs, tensors, [t for t, s in zip(tensors, self.specs, strict=True) if s.differentiable])

    def numpy(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The sample's arguments with plain arrays in place of tensors."""
        arrays = self.arrays()
        taken = iter(arrays)

        def resolve(leaf: Any) -> Any:
            if isinstance(leaf, T):
                return next(taken)
            if isinstance(leaf, Same):
                return arrays[leaf.index]
            return np.dtype(leaf.name) if isinstance(leaf, Attr) else leaf

        return map_tree(resolve, (self.args, self.kwargs))

    def twin(self, suffix: str, dtypes: dict[str, str]) -> Sample:
        """The same call with other dtypes."""

        def recast(leaf: Any) -> Any:
            if not isinstance(leaf, T) or leaf.dtype not in dtypes:
                return leaf
            return replace(leaf, dtype=dtypes[leaf.dtype])

        args, kwargs = map_tree(recast, (self.args, self.kwargs))
        return replace(self, name=f"{self.name}, {suffix}", args=args, kwargs=kwargs)

    def complex_twin(self) -> Sample:
        """The same call on complex128 tensors."""
        return self.twin("complex", {"float64": "complex128"})

    def float32_twin(self) -> Sample:
        """The same call in single precision."""
        return self.twin("float32", {"float64": "float32", "complex128": "complex64"})


@dataclass
class Built:
    """A sample's arguments in one module: `leaves` are those of `tensors` that require grad."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    tensors: list[Any]
    leaves: list[Any]


def S(
    name: str,
    *args: Any,
    smooth: bool = True,
    second: bool = True,
    as_complex: bool = True,
    method: bool = True,
    torch_first: bool = True,
    torch_second: bool = True,
    **kwargs: Any,
) -> Sample:
    """A sample at a point where the operator is smooth."""
    return Sample(name, args, kwargs, smooth, second, as_complex, method, torch_first, torch_first and torch_second)


def V(
    name: str, *args: Any, as_complex: bool = False, method: bool = True, torch_first: bool = True, **kwargs: Any
) -> Sample:
    """A sample that is compared with torch and NumPy only: ties, kinks, infinities, NaNs, low precision."""
    return Sample(name, args, kwargs, False, False, as_complex, method, torch_first)


@dataclass
class ErrorSample:
    """A wrong call: the exception that torch raises, and a regular expression found in its message."""

    name: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    exception: type[Exception] | tuple[type[Exception], ...]
    match: str
    fn: str | Callable[..., Any] | None = None

    def sample(self) -> Sample:
        """The call as a `Sample`, to be built."""
        return Sample(self.name, self.args, self.kwargs)


def E(name: str, exception: Any, match: str, *args: Any, fn: Any = None, **kwargs: Any) -> ErrorSample:
    """An `ErrorSample`, with the arguments of the call last."""
    return ErrorSample(name, args, kwargs, exception, match, fn)


# ---------------------------------------------------------------------------------------------- operators


def lookup(module: Any, dotted: str) -> Any:
    """`module.a.b` for "a.b"."""
    for part in dotted.split("."):
        module = getattr(module, part)
    return module


@dataclass
class Op:
    """An operator and its samples.

    fn: a dotted name looked up on the module, or a callable that takes the module first.
    method: the name of the Tensor method that does the same with the first tensor as self.
    inplace: the name of the Tensor method that does the same in place.
    view: whether the result shares memory with the first argument; None where it depends on the strides.
    reference: the same function of plain NumPy arguments, for values without torch.
    torch_gradient: torch itself has a derivative.
    extra: the operator is not among those that the foundation promises; it is skipped where the module lacks
        what `needs` names (by default `fn`).
    """

    name: str
    fn: str | Callable[..., Any]
    samples: list[Sample]
    errors: list[ErrorSample] = field(default_factory=list)
    differentiable: bool = True
    supports_complex: bool = False
    supports_float32: bool = True
    method: str | None = None
    inplace: str | None = None
    view: bool | None = False
    reference: Callable[..., Any] | None = None
    torch_gradient: bool = True
    extra: bool = False
    needs: str | None = None

    def __post_init__(self) -> None:
        if self.supports_complex:
            self.samples += [
                sample.complex_twin()
                for sample in self.samples
                if sample.as_complex and any(spec.dtype == "float64" for spec in sample.specs)
            ]
        names = [sample.name for sample in self.samples]
        assert len(set(names)) == len(names), f"{self.name}: two samples of one name in {names}"
        for sample in self.samples:
            sample.seed = zlib.crc32(f"{self.name}[{sample.name}]".encode())

    def call(self, torch: ModuleType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The operator of the module `torch`, called."""
        if isinstance(self.fn, str):
            return lookup(torch, self.fn)(*args, **kwargs)
        return self.fn(torch, *args, **kwargs)

    def missing_from(self, torch: ModuleType) -> bool:
        """Whether this is an extra that the module does not have."""
        needed = self.needs or (self.fn if isinstance(self.fn, str) else None)
        if not self.extra or needed is None:
            return False
        try:
            lookup(torch, needed)
        except AttributeError:
            return True
        return False


def cases(ops: list[Op]) -> Iterator[tuple[Op, Sample]]:
    """All (operator, sample) pairs."""
    for op in ops:
        for sample in op.samples:
            yield op, sample
