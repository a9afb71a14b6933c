"""Every operator of the sample database under vmap, beside a loop over the examples; and, marked `parity`, torch's
vmap.

The examples of a sample are drawn from different seeds.  Ordinarily one sample of each operator is mapped with all
tensors batched; the slow tests take all samples, batch the first tensor alone along its last dimension and the others
alone along their first, and differentiate.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import retrograd
from operator_runs import flat, is_tensor, needs_torch
from samples import OPS, Op, Sample
from samples.spec import Attr, Same, T, laid_out, lookup, map_tree

COUNT = 3

#: Samples that are about other kinds of tensors than vmap is.
OTHER_TENSORS = ("sparse", "nested", "masked.", "smm", "hspmm", "spmm", "saddmm", "sspaddmm")

#: What vmap refuses: operator -> the words.  Results whose shape depends on values, and values that are asked for.
REFUSED: dict[str, str] = {
    **dict.fromkeys(
        ("unique_consecutive", "unique", "unique, options", "_unique", "_unique, options", "__getitem__.copy",
         "index_put", "masked_select", "nonzero", "argwhere"), "data-dependent output shape",
    ),
    "narrow, options": "calling .item()",
    "nn.functional.rrelu": "do not yet support",
    "nn.functional.one_hot": "num_classes has to be given",
    **dict.fromkeys(("batch_norm, running statistics", "instance_norm, running statistics"), "were not batched"),
    "view_as_complex_copy": "last dimension with stride 1",  # as each example by itself, of a batch that lies last
}  # fmt: skip

#: Values that depend on how an example lies in memory, which is another in a batch whose last dimension counts.
BY_MEMORY = ("as_strided_scatter", "as_strided_copy")

#: Operators that run in a loop. All others have a rule, or are made of operators that have.
LOOPED = {
    "bincount", "ctc_loss", "embedding", "embedding_bag", "histc", "histogram", "histogramdd", "isin",
    "multi_margin_loss", "nonzero_static", "repeat_interleave", "segment_reduce",
}  # fmt: skip


def mapped_ops() -> list[Op]:
    return [
        op for op in OPS
        if not op.missing_from(retrograd) and not op.name.startswith(OTHER_TENSORS) and any(s.specs for s in op.samples)
    ]  # fmt: skip


def patterns(sample: Sample) -> list[tuple[int | None, ...]]:
    """The dimensions along which tensors are batched; the first of all: the first of each."""
    rest = len(sample.specs) - 1
    if not rest:
        return [(0,), (-1,)]
    return [(0,) * (rest + 1), (-1,) + (None,) * rest, (None,) + (0,) * rest]


def in_place(op: Op) -> str | None:
    """The name of the Tensor method that does the same in place."""
    name = op.inplace or f"{op.fn}_"
    return name if hasattr(retrograd.Tensor, name) else None


def function(module: Any, op: Op, sample: Sample, method: str | None = None) -> Callable[..., Any]:
    """The sample's call as a function of its tensors; gives the tensors among its results.

    `method`: one of Tensor's that is called in its place, and writes to the first of them, which is the result.
    """

    def call(*tensors: Any) -> tuple[Any, ...]:
        taken = iter(tensors)

        def resolve(leaf: Any) -> Any:
            if isinstance(leaf, T):
                return next(taken)
            if isinstance(leaf, Same):
                return tensors[leaf.index]
            return lookup(module, leaf.name) if isinstance(leaf, Attr) else leaf

        args, kwargs = map_tree(resolve, (sample.args, sample.kwargs))
        if method is not None:
            getattr(module.Tensor, method)(*args, **kwargs)
            return (args[0],)
        return tuple(out for out in flat(op.call(module, args, kwargs)) if is_tensor(out))

    return call


def arrays(sample: Sample) -> list[list[np.ndarray]]:
    """For each example, the arrays of the sample's tensors."""
    found = []
    for number in range(COUNT):
        rng = np.random.default_rng(sample.seed + number)
        found.append([laid_out(spec.draw(rng), spec.layout) for spec in sample.specs])
    return found


def batch(module: Any, examples: list[list[np.ndarray]], dims: tuple[int | None, ...]) -> list[Any]:
    made = []
    for position, dim in enumerate(dims):
        rows = [example[position] for example in examples]
        array = rows[0].copy() if dim is None else np.ascontiguousarray(np.moveaxis(np.stack(rows), 0, dim))
        made.append(module.from_numpy(array))
    return made


def values(tensor: Any) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg()
    return tensor.float().numpy() if "bfloat16" in str(tensor.dtype) else tensor.numpy()


def loop(call: Callable[..., Any], examples: list[list[np.ndarray]], dims: tuple[int | None, ...]) -> Any:
    """The results of the examples one by one, stacked; None where a loop has none that could be."""
    rows = []
    for number in range(COUNT):
        chosen = [examples[0 if dim is None else number][i].copy() for i, dim in enumerate(dims)]
        try:
            rows.append([values(out) for out in call(*[retrograd.from_numpy(a) for a in chosen])])
        except Exception:
            return None  # such numbers do not go with this operator: there is nothing to compare
    if not rows[0] or any(len({row[i].shape for row in rows}) > 1 for i in range(len(rows[0]))):
        return None
    return [np.stack(column) for column in zip(*rows, strict=True)]


def close(got: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert got.shape == expected.shape and got.dtype == expected.dtype, f"{what}: {got.shape} {got.dtype}"
    fine = {1: 1e-4, 2: 1e-2, 4: 1e-4}.get(expected.real.dtype.itemsize, 1e-9)
    np.testing.assert_allclose(got, expected, rtol=fine, atol=fine, err_msg=what)


def check(op: Op, chosen: Iterator[tuple[Sample, tuple[int | None, ...]]]) -> tuple[set[str], set[str], int]:
    """Compare; gives the words in which something was refused, what ran in a loop, and how much was compared."""
    refused, looped, compared = set(), set(), 0
    for sample, dims in chosen:
        call, examples = function(retrograd, op, sample), arrays(sample)
        expected = loop(call, examples, dims)
        if expected is None or (op.name in BY_MEMORY and -1 in dims):
            continue
        what = f"{sample.name}, batched along {dims}"
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            try:
                got = retrograd.vmap(call, dims, randomness="different")(*batch(retrograd, examples, dims))
            except RuntimeError as error:
                if "is not possible inplace" in str(error) and dims[0] is None:
                    continue  # torch's error for a write of many to one
                if op.name not in REFUSED or REFUSED[op.name] not in str(error):
                    raise AssertionError(f"{what}: {error}") from error
                refused.add(op.name)
                continue
        drops = [str(w.message) for w in said if "performance drop" in str(w.message)]
        looped |= {message.partition("aten::")[2].partition(":")[0] for message in drops}
        for position, (mine, right) in enumerate(zip(got, expected, strict=True)):
            close(values(mine), right, f"{what}: output {position}")
        compared += 1
    return refused, looped, compared


@pytest.mark.parametrize("op", mapped_ops(), ids=lambda op: op.name)
def test_operator_under_vmap_is_a_loop(op: Op) -> None:
    for sample in op.samples:  # the first that has examples
        if sample.specs and check(op, iter([(sample, patterns(sample)[0])]))[2]:
            return


@pytest.mark.parametrize("op", [op for op in mapped_ops() if in_place(op)], ids=lambda op: op.name)
def test_writes_under_vmap_are_those_of_a_loop(op: Op) -> None:
    """`x.name_(...)` writes to each example what it would by itself: the tensor that it was called on has changed."""
    for sample in op.samples:  # the first that has examples
        if not sample.args or not isinstance(sample.args[0], T):
            continue
        call, examples, dims = function(retrograd, op, sample, in_place(op)), arrays(sample), patterns(sample)[0]
        expected = loop(call, examples, dims)
        if expected is not None:
            got = retrograd.vmap(call, dims, randomness="different")(*batch(retrograd, examples, dims))
            close(values(got[0]), expected[0], sample.name)
            return


@pytest.mark.slow
def test_all_samples_under_vmap_and_nine_in_ten_operators_have_rules() -> None:
    refused, looped, compared, with_loops, operators = set(), set(), 0, 0, 0
    for op in mapped_ops():
        chosen = [(sample, dims) for sample in op.samples if sample.specs for dims in patterns(sample)]
        here_refused, here_looped, count = check(op, iter(chosen))
        refused |= here_refused
        looped |= here_looped
        compared += count
        operators += count > 0
        with_loops += bool(here_looped)
    assert compared > 13_000
    assert refused == set(REFUSED), "an exception is stale, or missing"
    assert looped == LOOPED, "what runs in a loop has changed: rules are to be added, not lost"
    assert with_loops <= operators / 10


def differentiable(op: Op) -> list[Sample]:
    if not op.differentiable or op.name in REFUSED or op.name in BY_MEMORY or "sparse gradient" in op.name:
        return []
    return [s for s in op.samples if s.smooth and s.in_double and any(spec.differentiable for spec in s.specs)]


@pytest.mark.slow
@pytest.mark.parametrize("op", [op for op in mapped_ops() if differentiable(op)], ids=lambda op: op.name)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_gradients_under_vmap_are_those_of_a_loop(op: Op) -> None:
    for sample in differentiable(op):
        call, examples, dims = function(retrograd, op, sample), arrays(sample), patterns(sample)[0]
        if loop(call, examples, dims) is None:
            continue
        wanted = tuple(i for i, spec in enumerate(sample.specs) if spec.differentiable)

        def total(*tensors: Any, call: Any = call) -> Any:
            outs = [out for out in call(*tensors) if out.is_floating_point() or out.is_complex()]
            return sum(((out * out.conj()).real if out.is_complex() else out * out).sum() for out in outs)

        gradient = retrograd.func.grad(total, argnums=wanted)
        try:
            rows = [gradient(*[retrograd.from_numpy(a.copy()) for a in example]) for example in examples]
        except Exception:
            continue  # not differentiable in these numbers
        try:
            got = retrograd.vmap(gradient, randomness="different")(*batch(retrograd, examples, dims))
        except RuntimeError as error:
            if "inplace" in str(error):
                continue
            raise
        for mine, *apart in zip(got, *rows, strict=True):
            np.testing.assert_allclose(
                values(mine), np.stack([values(one) for one in apart]), rtol=1e-6, atol=1e-6, err_msg=sample.name
            )


#: Where torch's vmap gives something else than its own operator in a loop: the reason.
NOT_TORCHS: dict[str, str] = {
    "lu_unpack, options": "parts that are not asked for are empty, and not batched",
}


@needs_torch
@pytest.mark.slow
@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
def test_torch_maps_alike() -> None:
    import torch

    compared, others = 0, {}
    for op in mapped_ops():
        if op.name in REFUSED or any(word in op.name for word in ("random", "dropout", "empty", "rand", "normal")):
            continue
        for sample in [s for s in op.samples if s.specs][:3]:
            examples, dims = arrays(sample), patterns(sample)[0]
            try:
                theirs = torch.func.vmap(function(torch, op, sample), dims, randomness="different")(
                    *batch(torch, examples, dims)
                )
            except Exception:
                continue  # torch's vmap has no such operator, or refuses it
            mine = retrograd.vmap(function(retrograd, op, sample), dims, randomness="different")(
                *batch(retrograd, examples, dims)
            )
            for one, other in zip(mine, theirs, strict=True):
                got, expected = values(one), values(other)
                fine = {2: 2e-2, 4: 1e-4}.get(expected.real.dtype.itemsize, 1e-7)
                if (
                    got.shape != expected.shape
                    or got.dtype != expected.dtype
                    or not np.allclose(got, expected, fine, fine, equal_nan=True)
                ):
                    others[op.name] = sample.name
            compared += bool(theirs)
    assert compared > 1000
    assert set(others) == set(NOT_TORCHS), others
