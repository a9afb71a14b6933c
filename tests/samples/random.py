"""Samples of random numbers."""

from __future__ import annotations

from samples.shared import _op, refused, without
from samples.spec import E, Op, S, T, integers, mask, nonzero, real

F = "nn.functional."


def _dropouts() -> list[Op]:
    made = []
    for name, size in (
        ("dropout1d", (1, 2, 2)),
        ("dropout2d", (1, 2, 2, 1)),
        ("dropout3d", (1, 2, 1, 2, 1)),
        ("alpha_dropout", (2, 3)),
        ("feature_alpha_dropout", (1, 2, 2)),
    ):
        samples = [
            S("evaluation", real(*size), 0.5, False),
            S("p 0", real(*size), 0.0, True),
            S("p 1", real(*size), 1.0, True),
        ]
        errors = [E("p", ValueError, r"dropout probability has to be between 0 and 1", real(*size), 1.5)]
        made.append(_op(name, samples, errors=errors, view=None))
    return made


RANDOM = [*_dropouts(), _op("rrelu", [S("evaluation", nonzero(2, 3)), S("bounds", nonzero(3), 0.1, 0.2)])]
BOOL, COMPLEX = mask([True, False]), T((2,), "complex128")


OPS = [
    Op(
        F + "dropout",
        F + "dropout",
        [
            S("evaluation", real(2, 3), 0.5, False),
            S("keywords", real(2, 3), p=0.5, training=False),
            S("p 0", real(2, 3), 0.0, True),
            S("p 1", real(2, 3), 1.0, True),
            S("0-d, p 1", real(), 1.0),
            S("empty", real(0, 3), 0.5),
        ],
        errors=[E("p", ValueError, r"dropout probability has to be between 0 and 1, but got 1.5", real(2), 1.5)],
        view=None,
    ),
    *RANDOM,
    refused(
        F + "dropout",
        E("integers", RuntimeError, "can't be cast to the desired output type Long", integers(3)),
        E("complex", NotImplementedError, without("bernoulli_scalar_cpu_", "ComplexDouble"), COMPLEX),
    ),
    refused(F + "dropout3d", E("0-d", RuntimeError, "at least 2 dimensions", real(), training=True)),
    refused(
        F + "rrelu",
        E("bounds", RuntimeError, "Lower bound should be less than or equal to the upper bound", real(2), 0.3, 0.1),
    ),
]
