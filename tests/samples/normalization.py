"""Samples of batch, instance, group and other normalisations."""

from __future__ import annotations

from samples.spec import E, Op, S, V, given, positive, real

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


OPS = [
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
]
