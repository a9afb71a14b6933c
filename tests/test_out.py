"""``out=``: every function that takes it writes there what it would have returned, and refuses what torch refuses."""

from __future__ import annotations

import inspect
import re
import types
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from samples import OPS, Op, Sample, lookup

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def _takes_out(op: Op) -> bool:
    if not isinstance(op.fn, str) or op.missing_from(retrograd):
        return False
    function = lookup(retrograd, op.fn)
    if not isinstance(function, types.FunctionType):
        return False
    return getattr(function, "takes_out", False) or "out" in inspect.signature(function).parameters


CASES = [
    (op, sample)
    for op in OPS if _takes_out(op) for sample in op.samples[:3]
    if not sample.kwargs.get("as_tuple")  # which nonzero refuses beside out=
]  # fmt: skip
MORE = ("sort", "topk", "kthvalue", "cummax", "aminmax", "where", "softmax", "take_along_dim", "scatter")


@pytest.mark.parametrize(("op", "sample"), [pytest.param(o, s, id=f"{o.name}[{s.name}]") for o, s in CASES])
def test_out_gets_the_result(op: Op, sample: Sample) -> None:
    built = sample.build(retrograd, requires_grad=False)
    expected = op.call(retrograd, built.args, built.kwargs)
    results = expected if isinstance(expected, tuple) else (expected,)
    targets = [retrograd.zeros(tuple(r.shape), dtype=r.dtype) for r in results]
    out: Any = tuple(targets) if isinstance(expected, tuple) else targets[0]
    returned = op.call(retrograd, built.args, {**built.kwargs, "out": out})
    for target, result, same in zip(
        targets, results, returned if isinstance(returned, tuple) else (returned,), strict=True
    ):
        assert same is target
        assert target._version == 1
        np.testing.assert_array_equal(target.resolve_conj().numpy(), result.resolve_conj().numpy())


def test_the_functions_that_matter_take_it() -> None:
    names = {op.name for op, _ in CASES}
    assert sorted(set(MORE) - names) == []


def test_out_takes_the_shape_of_the_result(torch) -> None:
    values, indices = torch.empty(0), torch.empty(0, dtype=torch.int64)
    found = torch.sort(torch.tensor([2.0, 1.0]), out=(values, indices))
    assert found.values is values
    assert (values.tolist(), indices.tolist()) == ([1.0, 2.0], [1, 0])


REFUSED = [
    ("torch.sort(x, out=(torch.empty(2, dtype=torch.float64), i))", RuntimeError, "Expected out tensor to have dtype"),
    (
        "torch.topk(x, 1, out=(torch.empty(1), torch.empty(1)))",
        RuntimeError,
        "Expected out tensor to have dtype",
    ),
    (
        "torch.exp(x, out=torch.empty(2, dtype=torch.int64))",
        RuntimeError,
        "to the desired output type Long",
    ),
    ("torch.exp(g, out=torch.empty(2))", RuntimeError, "don't support automatic differentiation"),
    ("torch.exp(x, out=torch.empty(1).expand(2))", RuntimeError, "more than one element of the written-to tensor"),
    ("torch.gather(x, 0, i, out=x)", RuntimeError, "some elements of the input tensor and the written-to tensor"),
    (
        "torch.cat([x, x], out=m.view(-1)[:4])",
        RuntimeError,
        "some elements of the input tensor and the written-to tensor",
    ),
    ("torch.sort(x, out=1)", TypeError, "out"),
    ("x.quantile(0.5, out=x)", TypeError, "out"),
    ("m[:3].cross(m[3:], out=m[3:])", TypeError, "out"),
]
#: Which arguments may be the tensor that is written to: not those that are read in another order.
MAY_BE_WRITTEN_TO = {
    "torch.index_add(x, 0, i, y, out={})": "x",
    "torch.index_copy(x, 0, i, y, out={})": "x",
    "torch.scatter(x, 0, i, y, out={})": "x",
    "torch.scatter(x, 0, i, 2, out={})": "x",
    "torch.scatter_add(x, 0, i, y, out={})": "x",
    "torch.scatter_reduce(x, 0, i, y, 'sum', out={})": "x",
    "torch.index_select(x, 0, i, out={})": "",
    "torch.gather(i, 0, j, out={})": "j",
    "torch.take_along_dim(i, j, 0, out={})": "j",
    "torch.take(i, j, out={})": "",
    "torch.masked_select(x, x > -1, out={})": "",
    "torch.kthvalue(m[:1], 1, keepdim=True, out=({}[:1], torch.tensor([0])))": "",
    "torch.cross(m, n, dim=0, out={})": "",
    "torch.linalg.cross(m, n, dim=0, out={})": "",
    "torch.cat([x], out={})": "",
    "torch.add(x, y, out={})": "x y",
    "torch.cumsum(x, 0, out={})": "x",
}


@pytest.mark.parametrize(("call", "error", "match"), REFUSED)
def test_out_is_refused(torch, call, error, match) -> None:
    m = torch.arange(6.0)
    x = m[:2]
    names = {"torch": torch, "m": m, "x": x, "i": torch.tensor([0, 1]), "g": torch.ones(2, requires_grad=True)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error, match=match):
            eval(call, names)
    assert m.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("call", MAY_BE_WRITTEN_TO)
def test_which_arguments_may_be_written_to(torch, call) -> None:
    may = MAY_BE_WRITTEN_TO[call].split()
    for name in "xyijmn":
        if name not in re.findall(r"\b[a-z]\b", call):
            continue
        names: Any = {"m": torch.arange(3.0), "n": torch.ones(3), "x": torch.arange(3.0), "y": torch.ones(3)}
        names |= {"torch": torch, "i": torch.tensor([2, 0, 1]), "j": torch.tensor([1, 2, 0])}
        expected = eval(call.replace("out={}", "out=None").replace("{}[:1]", "torch.empty(1)"), dict(names))
        if name in may:
            assert eval(call.format(name), names).tolist() == expected.tolist()
        elif names[name].dtype == (expected[0] if isinstance(expected, tuple) else expected).dtype:
            with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
                eval(call.format(name), names)


# ------------------------------------------------------------------------------------------------- of another dtype

#: What becomes of an ``out=`` of another dtype differs from torch, and why.
OF_OTHER_DTYPES = {
    "ldexp": "torch ends in an internal assertion",
    "nansum": "computed here in the dtype of the result, and cast",
    "nanmean": "computed here in the dtype of the result, and cast",
    "var": "computed here in the dtype of the result, and cast",
    "std": "computed here in the dtype of the result, and cast",
    "sum": "torch computes in the dtype of out=, also where the result does not fit",
    "prod": "torch computes in the dtype of out=, also where the result does not fit",
    "cumsum": "torch computes in the dtype of out=, also where the result does not fit",
    "cumprod": "torch computes in the dtype of out=, also where the result does not fit",
    "split_copy": "torch casts where it refuses it of every other copy",
    "median": "torch has no out= here",
    "nanmedian": "torch has no out= here",
    "argsort": "torch has no out= here unless stable is given",
    "inner": "torch casts where one is a number",
    "lerp": "torch casts a number's result and not a tensor's",
    "clamp_min": "torch casts a tensor's result and not a number's",
    "clamp_max": "torch casts a tensor's result and not a number's",
    "chain_matmul": "torch casts one matrix by itself, and refuses for the product of several",
    "diag": "torch refuses it for a matrix and casts for a vector",
    "diff": "torch casts unless there is nothing to subtract",
    **{f"fft.{name}": "torch refuses complex out=" for name in ("irfft", "hfft", "irfft2", "hfft2", "irfftn", "hfftn")},
}


def _into(module: Any, op: Op, sample: Sample, dtype: str) -> Any:
    """What ``out=`` of a dtype holds afterwards, or the error; None where there is nothing to compare."""
    built = sample.build(module, requires_grad=False)
    try:
        result = op.call(module, built.args, built.kwargs)
    except Exception:
        return None
    results = result if isinstance(result, tuple) else (result,)
    outs = [module.zeros(tuple(r.shape), dtype=getattr(module, dtype)) for r in results]
    built = sample.build(module, requires_grad=False)
    try:
        op.call(module, built.args, {**built.kwargs, "out": tuple(outs) if isinstance(result, tuple) else outs[0]})
    except Exception as error:
        assert module is not retrograd or all(not out.any() for out in outs), "a refused call has written"
        return error
    return [out.resolve_conj().numpy() for out in outs]


def _differ(theirs: Any, samples: int, dtypes: tuple[str, ...]) -> tuple[set[str], int]:
    differ, compared = set(), 0
    for op in OPS:
        if not _takes_out(op) or op.missing_from(theirs):
            continue
        for sample in op.samples[:samples]:
            for dtype in dtypes:
                ours, expected = _into(retrograd, op, sample, dtype), _into(theirs, op, sample, dtype)
                if ours is None or expected is None or (isinstance(expected, TypeError) and "out" in str(expected)):
                    continue
                compared += 1
                if isinstance(ours, Exception) or isinstance(expected, Exception):
                    same = type(ours) is type(expected)
                else:
                    pairs = zip(ours, expected, strict=True)
                    same = all(np.allclose(a, b, 2e-3, 2e-3, equal_nan=True) for a, b in pairs)
                if not same:
                    differ.add(re.split(r", |\.unbiased", op.name)[0])
    return differ, compared


@pytest.mark.parity
def test_out_of_another_dtype() -> None:
    """It is refused or cast as torch does it, and what is refused is not written to."""
    differ, compared = _differ(pytest.importorskip("torch"), 1, ("float32", "int64"))
    assert compared > 400
    assert differ - set(OF_OTHER_DTYPES) == set()


@pytest.mark.parity
@pytest.mark.slow
def test_out_of_every_other_dtype() -> None:
    dtypes = ("float64", "float32", "float16", "complex128", "int64", "bool")
    differ, compared = _differ(pytest.importorskip("torch"), 3, dtypes)
    assert compared > 3000
    assert differ - set(OF_OTHER_DTYPES) == set()
    assert set(OF_OTHER_DTYPES) - differ == set(), "these agree now: take them off the list"


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "cumsum", "cumprod", "nansum"])
def test_out_has_the_dtype_that_was_asked_for(torch, name):
    x, function = torch.ones(3, 4), getattr(torch, name)
    for wrong in (torch.float32, torch.int64):
        with pytest.raises(RuntimeError, match="dtype"):
            function(x, 0, dtype=torch.float64, out=torch.empty(0, dtype=wrong))
    out = torch.empty(0, dtype=torch.float64)
    assert function(x, 0, dtype=torch.float64, out=out) is out and out.flatten()[0] in (1, 3)


def test_other_names_of_arguments_are_looked_at_beside_out(torch):
    x = torch.zeros(2, 3)
    assert torch.logcumsumexp(x, axis=0, out=torch.empty(0))[0].tolist() == [0, 0, 0]
    with pytest.raises(TypeError):
        torch.logcumsumexp(x, 0, dtype=torch.float32, out=torch.empty(0))
