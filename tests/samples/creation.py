"""Samples of new tensors."""

from __future__ import annotations

from samples.shared import more
from samples.spec import Attr, Op, V, integers, real

WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


OPS = [
    *[
        Op(
            name,
            name,
            [
                V("float64", real(2, 3)),
                V("float32", real(2, dtype="float32")),
                V("dtype", real(2), dtype=Attr("int64")),
            ],
            differentiable=False,
            supports_float32=False,
        )
        for name in ("zeros_like", "ones_like")
    ],
    Op(
        "full_like",
        "full_like",
        [V("float64", real(2, 3), 1.5), V("int64", integers(2), 3)],
        differentiable=False,
        supports_float32=False,
    ),
    *(
        Op(
            name,
            name,
            [V("periodic", 5), V("symmetric", 6, False), V("one", 1), V("none", 0)],
            differentiable=False,
        )
        for name in WINDOWS
    ),
    Op(
        "tril_indices",
        lambda torch, *args, **kwargs: [torch.tril_indices(*args, **kwargs), torch.triu_indices(*args, **kwargs)],
        [V("square", 3, 3), V("offset", 3, 2, 1), V("by name", row=2, col=3, offset=-1, dtype=Attr("int32"))],
        differentiable=False,
    ),
    more(
        "new tensors",
        V("all", real(2, requires_grad=False)),
        differentiable=False,
        fn=lambda torch, x: [
            x.new_full((2,), 3.0),
            x.new_ones(2, dtype=torch.float32),
            x.new_zeros((1, 2), dtype=torch.int64),
            x.new_tensor([1, 2]),
            x.new_empty((0, 2)),
            x.type(torch.float32),
            x.cpu() + 1,
            x.bfloat16().float(),
        ],
    ),
    more("windows", V("hamming", 6, True, 0.4, 0.6), fn="hamming_window", differentiable=False),
    more(
        "kaiser_window",
        V("beta", 6, True, 3.0),
        fn=lambda torch, *args, **kwargs: torch.kaiser_window(*args, **kwargs),
        differentiable=False,
    ),
]
