"""Calls that torch refuses: dtypes without a kernel, sizes that do not fit together, arguments of no meaning."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, T, given, index, integers, mask, real

F = "nn.functional."
FLOAT = given([2.0], requires_grad=False)
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


def refused(name: str, *errors: Any) -> Op:
    """An operator with wrong calls only; its samples are in the file of its family."""
    return Op(f"{name}, refused", name, [], list(errors))


def without(kernel: str, *dtypes: str) -> str:
    """The phrase for dtypes that a kernel does not have."""
    return rf"\"{kernel}\" not implemented for '({'|'.join(dtypes)})'"


OPS = [
    refused(
        "kthvalue",
        E("bool", NotImplementedError, without("kthvalue_cpu", "Bool"), BOOL, 1),
        E("complex", NotImplementedError, without("kthvalue_cpu", "ComplexDouble"), COMPLEX, 1),
    ),
    refused("unique", E("complex", NotImplementedError, without("unique.*", "ComplexDouble"), COMPLEX)),
    refused(
        "bucketize",
        E("complex", NotImplementedError, without("searchsorted_out_cpu", "ComplexDouble"), COMPLEX, real(2)),
    ),
    refused("isin", E("bool", RuntimeError, "Unsupported input type encountered for isin", BOOL, real(2))),
    refused("mvlgamma", E("bool", RuntimeError, "may not be a boolean tensor", BOOL, 1)),
    refused("trapezoid", E("bool", RuntimeError, "bool is not supported", BOOL)),
    refused("stft", E("integers", RuntimeError, "floating point or complex", integers(20), 4, return_complex=True)),
    refused(
        "tensor_split",
        E("float indices", RuntimeError, "to have dtype of long", real(4), given([1.0], requires_grad=False)),
    ),
    refused("dist", E("number", TypeError, "must be Tensor, not float", real(2), 2.0)),
    refused("float_power", E("none", TypeError, "invalid combination", real(2), None)),
    refused(
        "cdist",
        E("mode", ValueError, "is not a valid value for compute_mode", real(2, 2), real(2, 2), 2.0, "abc"),
        E("dtypes", RuntimeError, "expected scalar type", real(2, 2), real(2, 2, dtype="float32")),
    ),
    refused(
        "histogram",
        E("no bins", RuntimeError, "bins must be > 0", real(3, requires_grad=False), 0),
        E("dtypes", RuntimeError, "should have the same dtype", real(3, requires_grad=False), real(2, dtype="float32")),
    ),
    refused(
        "index_reduce",
        E("float index", RuntimeError, "Expected dtype int32/int64 for index", real(2), 0, real(1), real(1), "prod"),
        E("too few", RuntimeError, r"Number of indices \(2\)", real(3), 0, index([0, 1]), real(1), "prod"),
        E("shapes", RuntimeError, "source tensor shape must match", real(2, 3), 0, index([0]), real(1, 2), "amax"),
    ),
    refused(
        "ormqr",
        E("tau", RuntimeError, "one dimension less than input", real(1, 2, 2), real(2), real(1, 2, 2)),
        E("other", RuntimeError, "same number of dimensions", real(2, 2), real(2), real(1, 2, 2)),
        E("size of tau", RuntimeError, "tau.shape.* must be equal to min", real(2, 2), real(1), real(2, 2)),
    ),
    refused(F + "glu", E("integers", NotImplementedError, without("glu_cpu", "Long"), integers(2))),
    refused(F + "hardshrink", E("integers", NotImplementedError, without("hardshrink_cpu", "Long"), integers(2))),
    refused(F + "prelu", E("dtypes", RuntimeError, "Type promoting not supported", real(2), real(1, dtype="float32"))),
    refused(
        F + "max_unpool2d",
        E("integers", NotImplementedError, without("max_unpool2d", "Long"), integers(1, 1, 1), index([[[0]]]), 2),
    ),
    refused(
        F + "batch_norm",
        E("one of two", ValueError, "both be None or neither", real(2, 2), None, index([1, 1]), training=True),
        E("eps", ValueError, "eps must be positive", real(2, 2), None, None, training=True, eps=-1.5),
    ),
    refused(
        F + "dropout",
        E("integers", RuntimeError, "can't be cast to the desired output type Long", integers(3)),
        E("complex", NotImplementedError, without("bernoulli_scalar_cpu_", "ComplexDouble"), COMPLEX),
    ),
    refused(
        F + "kl_div",
        E("integers", RuntimeError, "Integral inputs not supported", integers(2), real(2)),
        E("complex", RuntimeError, "Complex inputs not supported", COMPLEX, real(2)),
    ),
    refused(F + "mse_loss", E("complex", NotImplementedError, without("mse_cpu", "ComplexDouble"), COMPLEX, COMPLEX)),
    refused(
        F + "cosine_similarity",
        E("integers", RuntimeError, "expected common dtype to be floating point", integers(2, 2), integers(2, 2)),
    ),
    refused(
        F + "cosine_embedding_loss",
        E("ranks", RuntimeError, "1D target tensor expects 2D input", real(2, 2), real(1, 2, 2), index([1, 1])),
    ),
    refused(
        F + "ctc_loss",
        E("float lengths", RuntimeError, "must be integral", real(2, 1, 3), index([[1]]), FLOAT, index([1])),
    ),
    refused(
        F + "grid_sample",
        E("dtypes", RuntimeError, "expected scalar type", real(1, 1, 2, 2), real(1, 1, 1, 2, dtype="float32")),
        E("integers", NotImplementedError, without("grid_sampler.*", "Long"), integers(1, 1, 2, 2), real(1, 1, 1, 2)),
    ),
    refused(
        "lu_solve",
        E("pivots", RuntimeError, "pivots.shape to be the same", real(2, 1), real(1, 2, 2), given([1, 2], "int32")),
        E("too few", RuntimeError, "Number of pivots per batch", real(2, 1), real(2, 2), given([1], "int32")),
    ),
    refused("linalg.householder_product", E("tau", RuntimeError, "one dimension less", real(1, 2, 2), real(2))),
    refused("linalg.vecdot", E("dtypes", RuntimeError, "to have the same dtype", real(2), real(2, dtype="float32"))),
    refused("linalg.vander", E("bool", RuntimeError, "but got Bool", BOOL)),
    refused("nanquantile", E("dim", IndexError, "Dimension out of range", real(), 0.5, dim=2)),
    refused(
        "histogramdd",
        E("vector", RuntimeError, "at least 2 dimensions", real(3, requires_grad=False), [1]),
        E("integers", NotImplementedError, without("histogramdd", "Long"), integers(3, 1), [1]),
    ),
    refused(F + "dropout3d", E("0-d", RuntimeError, "at least 2 dimensions", real(), training=True)),
    refused(
        F + "rrelu",
        E("bounds", RuntimeError, "Lower bound should be less than or equal to the upper bound", real(2), 0.3, 0.1),
    ),
]
