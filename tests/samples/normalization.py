"""Samples of batch, group and layer normalization."""

from __future__ import annotations

from samples.shared import more, refused
from samples.spec import E, Op, S, V, given, index, nonzero, positive, real

F = "nn.functional."
MEAN = given([0.5, -0.5], requires_grad=False)
VAR = given([1.5, 0.5], requires_grad=False)


def _trained(torch, input, *args, **kwargs):  # type: ignore[no-untyped-def]
    """batch_norm that also returns the running statistics, which it moves."""
    mean, var = torch.zeros(2, dtype=input.dtype), torch.ones(2, dtype=input.dtype)
    result = torch.nn.functional.batch_norm(input, mean, var, *args, training=True, **kwargs)
    return result, mean, var


def _instances(torch, input, *args, **kwargs):  # type: ignore[no-untyped-def]
    """instance_norm that also returns the running statistics, which it moves."""
    mean, var = torch.zeros(2, dtype=input.dtype), torch.ones(2, dtype=input.dtype)
    result = torch.nn.functional.instance_norm(input, mean, var, *args, **kwargs)
    return result, mean, var


WEIGHTS = positive(3, requires_grad=False)


_RUNNING = (real(2, requires_grad=False), positive(2, requires_grad=False))

OPS = [
    Op(
        F + "layer_norm",
        F + "layer_norm",
        [
            S("plain", real(2, 3), (3,)),
            S("weight", real(2, 3), (3,), real(3)),
            S("weight and bias", real(2, 3), (3,), real(3), real(3)),
            S("bias only", real(2, 3), (3,), None, real(3), torch_second=False),
            S("two dimensions", real(2, 2, 3), (2, 3), real(2, 3), real(2, 3)),
            S("leading dimensions", real(2, 2, 3), (3,), real(3), real(3)),
            S("all dimensions", real(2, 3), (2, 3)),
            S("list", real(2, 3), [3]),
            S("eps", real(2, 3), (3,), real(3), real(3), 0.1),
            S("keywords", real(2, 3), normalized_shape=(3,), weight=real(3), bias=real(3), eps=1e-3),
            S("input without grad", real(2, 3, requires_grad=False), (3,), real(3), real(3)),
            S("weight without grad", real(2, 3), (3,), real(3, requires_grad=False), real(3, requires_grad=False)),
            S("transposed", real(2, 3, layout="transposed"), (3,), real(3), real(3, layout="strided")),
            S("expanded", real(2, 3, layout="expanded"), (3,)),
            S("empty", real(0, 3), (3,), real(3), real(3)),
            V("constant rows", given([[1.0, 1.0], [2.0, 2.0]]), (2,)),
            V("float32", real(2, 3, dtype="float32"), (3,), real(3, dtype="float32")),
        ],
        errors=[
            E(
                "shape",
                RuntimeError,
                r"Given normalized_shape=\[2\], expected input with shape \[\*, 2\]",
                real(2, 3),
                (2,),
            ),
            E(
                "weight",
                RuntimeError,
                r"Expected weight to be of same shape as normalized_shape",
                real(2, 3),
                (3,),
                real(2),
            ),
        ],
    ),
    Op(
        F + "batch_norm",
        F + "batch_norm",
        [
            S("training", real(3, 2), None, None, training=True),
            S("training, weight", real(3, 2), None, None, real(2), training=True),
            S("training, weight and bias", real(2, 2, 2), None, None, real(2), real(2), True),
            S("training, image", real(2, 1, 2, 2), None, None, real(1), real(1), True, 0.1, 1e-3),
            S("training, input only", real(2, 2, 2), None, None, given([1.0, 2.0], requires_grad=False), training=True),
            S("evaluation", real(3, 2), MEAN, VAR),
            S("evaluation, weight and bias", real(2, 2, 2), MEAN, VAR, real(2), real(2)),
            S("evaluation, eps", real(2, 2), MEAN, VAR, eps=0.1),
            S("transposed", real(2, 2, 3, layout="transposed"), None, None, real(2), real(2), True),
            V("empty batch", real(0, 2), MEAN, VAR, real(2), real(2)),
            V("float32", real(3, 2, 4, dtype="float32"), None, None, real(2, dtype="float32"), training=True),
        ],
        errors=[
            E("one value", ValueError, r"more than 1 value per channel", real(1, 3), None, None, training=True),
            E("no statistics", RuntimeError, r"running_mean must be defined in evaluation", real(2, 3), None, None),
            E("mean", RuntimeError, r"running_mean should contain 3 elements not 2", real(2, 3), MEAN, VAR),
            E("weight", RuntimeError, r"weight should contain 2 elements not 3", real(2, 2), MEAN, VAR, real(3)),
            E("rank", IndexError, r"Dimension out of range", real(3), None, None, training=True),
        ],
    ),
    Op(
        "batch_norm, running statistics",
        _trained,
        [V("vector", real(3, 2), momentum=0.3), V("image", real(2, 2, 3))],
    ),
    Op(
        F + "instance_norm",
        F + "instance_norm",
        [
            S("plain", real(2, 1, 3)),
            S("weight and bias", real(2, 2, 3), weight=real(2), bias=real(2)),
            S("evaluation", real(2, 2, 3), MEAN, VAR, use_input_stats=False),
        ],
        errors=[E("one element", ValueError, r"Expected more than 1 spatial element", real(2, 3, 1))],
    ),
    Op("instance_norm, running statistics", _instances, [V("plain", real(2, 2, 3))]),
    Op(
        F + "group_norm",
        F + "group_norm",
        [
            S("one group", real(2, 2, 2), 1),
            S("a group a channel", real(1, 2, 3), 2),
            S("weight", real(2, 4), 2, real(4)),
            S("weight and bias", real(2, 2, 2), 1, real(2), real(2), 0.1),
            S("image", real(1, 4, 2, 2), 2, real(4), real(4)),
            S("transposed", real(1, 2, 3, layout="transposed"), 1, real(2), real(2)),
            V("float32", real(2, 4, 3, dtype="float32"), 2, real(4, dtype="float32")),
        ],
        errors=[
            E("divisible", RuntimeError, r"to be divisible by num_groups", real(2, 3), 2),
            E("weight", RuntimeError, r"Expected weight to be a vector of size equal", real(2, 4), 2, real(2)),
            E("rank", RuntimeError, r"Expected at least 2 dimensions", real(3), 1),
        ],
    ),
    Op(
        F + "rms_norm",
        F + "rms_norm",
        [
            S("plain", real(2, 3), (3,)),
            S("weight", real(2, 3), (3,), real(3)),
            S("eps", real(2, 2, 2), (2, 2), positive(2, 2), 0.1),
        ],
    ),
    Op(
        F + "local_response_norm",
        F + "local_response_norm",
        [
            S("plain", real(1, 3, 2), 2),
            S("options", real(1, 4, 2), 3, 0.5, 0.6, 2.0),
            S("image", real(1, 2, 2, 2), 2, alpha=1.0),
        ],
    ),
    Op(
        "torch.batch_norm",
        "batch_norm",
        [
            S("training", real(3, 2), real(2), real(2), None, None, True, 0.1, 1e-5, True),
            S(
                "running",
                real(3, 2),
                None,
                None,
                real(2, requires_grad=False),
                positive(2, requires_grad=False),
                False,
                0.1,
                1e-5,
                False,
            ),
        ],
    ),
    Op(
        "torch.instance_norm",
        "instance_norm",
        [S("plain", real(2, 2, 3), real(2), real(2), None, None, True, 0.1, 1e-5, True)],
    ),
    Op(
        F + "normalize",
        F + "normalize",
        [
            S("rows", nonzero(2, 3)),
            S("columns", nonzero(2, 3), dim=0),
            S("p", nonzero(2, 3), p=3.0),
            S("one", nonzero(2, 3), p=1.0),
            S("eps", nonzero(2, 2), eps=5.0),
            V("zeros", given([[0.0, 0.0], [1.0, 2.0]])),
        ],
        supports_complex=True,
    ),
    Op(
        "batch_norm, running",
        F + "batch_norm",
        [S("running", real(2, 3), given([0.1, 0.2, 0.3], requires_grad=False), WEIGHTS)],
        [
            E(
                "mean",
                RuntimeError,
                "not differentiable with respect to argument 'running_mean'",
                real(2, 3),
                real(3),
                WEIGHTS,
            )
        ],
    ),
    more(
        F + "rms_norm",
        V("float16", given([[300.0, -100.0], [2.0, 1.0]], "float16"), (2,)),
        errors=[
            E("no shape", RuntimeError, "at least 1-dimensional", real(2), ()),
            E("weight", RuntimeError, "Expected weight to be of same shape", real(2, 3), (3,), real(2)),
        ],
    ),
    more(
        F + "batch_norm",
        V("nothing", real(0, 2), None, None, real(2), real(2), True),
        V("nothing, running", real(0, 2), real(2, requires_grad=False), positive(2, requires_grad=False)),
    ),
    more(F + "group_norm", V("nothing", real(0, 2), 1, real(2), real(2))),
    more(
        F + "instance_norm",
        S("eps", real(1, 2, 3), eps=0.5),
        S("momentum", real(1, 2, 3), momentum=0.5),
        V(
            "running",
            real(2, 2, 3),
            given([0.1, 0.2], requires_grad=False),
            given([1.0, 2.0], requires_grad=False),
            use_input_stats=False,
        ),
    ),
    refused(
        F + "batch_norm",
        E("one of two", ValueError, "both be None or neither", real(2, 2), None, index([1, 1]), training=True),
        E("eps", ValueError, "eps must be positive", real(2, 2), None, None, training=True, eps=-1.5),
    ),
    Op(
        "_native_batch_norm_legit",
        "_native_batch_norm_legit",
        [
            S("plain", real(3, 2, 2), real(2), real(2), True, 0.1, 1e-5),
            S("by the running ones", real(3, 2), real(2), None, *_RUNNING, False, 0.1, 1e-5),
        ],
    ),
]
