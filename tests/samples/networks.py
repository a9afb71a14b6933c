"""Samples of what torch has at its top level for networks: recurrent ones, and functions with numbers for modes."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, V, distinct, given, index, nonzero, positive, real

PLAIN = given([1.0, -1.0], requires_grad=False)


# ---------------------------------------------------------------------------------------------- recurrent


def _cell(name: str, gates: int) -> Op:
    def call(torch: Any, x: Any, *args: Any) -> Any:
        state = args[0] if name != "lstm" else args[:2]
        return getattr(torch, f"{name}_cell")(x, state, *args[2 if name == "lstm" else 1 :])

    states = [real(1, 1)] * (2 if name == "lstm" else 1)
    wide = [real(2, 2)] * len(states)
    return Op(
        f"{name}_cell",
        call,
        [
            S("small", real(1, 1), *states, real(gates, 1), real(gates, 1)),
            S("biases", real(2, 3), *wide, real(2 * gates, 3), real(2 * gates, 2), real(2 * gates), real(2 * gates)),
        ],
        errors=[
            E(
                "size",
                RuntimeError,
                "inconsistent input_size",
                real(2, 9),
                *wide,
                real(gates * 2, 3),
                real(gates * 2, 2),
            )
        ],
    )


def _network(name: str, gates: int) -> Op:
    """The network; the parameters come after input and states, `packed` gives the sizes of the steps."""

    def call(
        torch: Any,
        x: Any,
        *tensors: Any,
        layers: int = 1,
        both: bool = False,
        bias: bool = True,
        first: bool = False,
        packed: Any = None,
    ) -> Any:
        states = 2 if name == "lstm" else 1
        hx = list(tensors[:2]) if name == "lstm" else tensors[0]
        params, run = list(tensors[states:]), getattr(torch, name)
        if packed is not None:
            return run(x, torch.tensor(packed), hx, params, bias, layers, 0.0, False, both)
        return run(x, hx, params, bias, layers, 0.0, False, both, first)

    def tensors(layers: int, batch: int, bias: bool, features: int = 2, hidden: int = 2, sides: int = 1) -> list[Any]:
        states = [real(layers * sides, batch, hidden)] * (2 if name == "lstm" else 1)
        weights: list[Any] = []
        for layer in range(layers):
            for _ in range(sides):
                given_features = features if layer == 0 else hidden * sides
                weights += [real(gates * hidden, given_features), real(gates * hidden, hidden)]
                weights += [real(gates * hidden)] * 2 if bias else []
        return [*states, *weights]

    return Op(
        name,
        call,
        [
            S("small", real(2, 1, 1), *tensors(1, 1, False, 1, 1), bias=False),
            S("biases", real(3, 2, 2), *tensors(1, 2, True)),
            S("batch first", real(2, 3, 2), *tensors(1, 2, True), first=True),
            S("both directions", real(3, 1, 2), *tensors(1, 1, False, sides=2), bias=False, both=True),
            S("two layers", real(2, 1, 2), *tensors(2, 1, False), bias=False, layers=2),
            S("packed", real(4, 2), *tensors(1, 2, False), bias=False, packed=[2, 1, 1]),
            S(
                "packed, both directions",
                real(4, 2),
                *tensors(1, 2, False, sides=2),
                bias=False,
                both=True,
                packed=[2, 1, 1],
            ),
        ],
        errors=[
            E("parameters", RuntimeError, "incorrect number of RNN parameters", real(2, 1, 2), *tensors(1, 1, False)),
            E(
                "states",
                RuntimeError,
                "Expected more hidden states",
                real(2, 1, 2),
                *tensors(1, 1, False)[: 2 if name == "lstm" else 1],
                *tensors(2, 1, False)[2 if name == "lstm" else 1 :],
                layers=2,
                bias=False,
            ),
        ],
        supports_float32=False,  # 3 steps of products: float64 is what is compared
    )


RECURRENT = [
    make(name, gates) for name, gates in (("rnn_tanh", 1), ("gru", 3), ("lstm", 4)) for make in (_cell, _network)
]
RECURRENT += [
    Op(
        "rnn_relu_cell",
        "rnn_relu_cell",
        [
            S("small", given([[0.7]]), given([[0.3]]), given([[1.1]]), given([[-0.4]])),
            V("matrix", real(2, 3), real(2, 2), real(2, 3), real(2, 2), real(2), real(2)),
        ],
    ),
    Op(
        "rnn_relu",
        lambda torch, x, h, *p: torch.rnn_relu(x, h, list(p), False, 1, 0.0, False, False, False),
        [S("small", given([[[0.7]], [[0.9]]]), given([[[0.3]]]), given([[1.1]]), given([[0.4]]))],
    ),
]


# ---------------------------------------------------------------------------------------------- numbers for modes


LOSSES = [
    Op(
        "torch.kl_div",
        "kl_div",
        [
            S("elements", real(2, 2), positive(2, 2)),
            S("mean", real(2, 2), positive(2, 2), 1),
            S("sum, logarithms", real(2, 2), real(2, 2), 2, log_target=True),
            S("none", real(2, 2), positive(2, 2), 0),
        ],
    ),
    Op(
        "torch.hinge_embedding_loss",
        "hinge_embedding_loss",
        [S("mean", given([0.3, 0.7]), PLAIN), S("sum", given([0.3, 0.7]), PLAIN, 2.0, 2)],
    ),
    Op(
        "torch.margin_ranking_loss",
        "margin_ranking_loss",
        [
            S("mean", given([0.3, 0.7]), given([1.1, 0.2]), PLAIN),
            S("none", given([0.3, 0.7]), given([1.1, 0.2]), PLAIN, 0.5, 0),
        ],
    ),
    Op(
        "torch.cosine_embedding_loss",
        "cosine_embedding_loss",
        [S("mean", nonzero(2, 2), nonzero(2, 2), PLAIN), S("sum", nonzero(2, 2), nonzero(2, 2), PLAIN, 0.1, 2)],
    ),
    Op(
        "torch.poisson_nll_loss",
        "poisson_nll_loss",
        [
            S("mean", real(2, 2), positive(2, 2, requires_grad=False), True, False, 1e-8, 1),
            S("full", positive(2, 2), positive(2, 2, requires_grad=False), False, True, 1e-8, 0),
        ],
    ),
    Op(
        "torch.triplet_margin_loss",
        "triplet_margin_loss",
        [
            S("mean", real(2, 2), real(2, 2), real(2, 2), 5.0),
            S("sum, swap", real(2, 2), real(2, 2), real(2, 2), 9.0, 2.0, 1e-6, True, 2),
        ],
    ),
    Op(
        "torch.ctc_loss",
        lambda torch, x, *args: torch.ctc_loss(x.log_softmax(-1), *args),
        [
            S(
                "mean",
                given([[[-1.1, -0.9, -1.3]], [[-0.8, -1.5, -1.2]]]),
                index([[1]]),
                index([2]),
                index([1]),
                torch_second=False,
            ),
            S(
                "sum",
                given([[[-1.1, -0.9, -1.3]], [[-0.8, -1.5, -1.2]]]),
                index([[2]]),
                [2],
                [1],
                0,
                2,
                torch_second=False,
            ),
        ],
    ),
]

IMAGE, GRID = real(1, 1, 2, 2), given([[[[-0.3, 0.4], [0.6, -0.7]]]])
OTHERS = [
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
        "grid_sampler",
        "grid_sampler",
        [
            S("bilinear", IMAGE, GRID, 0, 0, True),
            S("nearest", IMAGE, given([[[[-0.3, 0.4]]]], requires_grad=False), 1, 1, False),
        ],
    ),
    Op(
        "grid_sampler_2d",
        "grid_sampler_2d",
        [S("bicubic", real(1, 1, 4, 4), GRID, 2, 1, True, second=False, torch_second=False)],
    ),
    Op(
        "grid_sampler_3d",
        "grid_sampler_3d",
        [S("bilinear", real(1, 1, 2, 2, 2), given([[[[[-0.3, 0.4, 0.2]]]]]), 0, 2, True)],
        errors=[E("rank", RuntimeError, "grid_sampler|expected", IMAGE, GRID, 0, 0, True)],
    ),
    Op("affine_grid_generator", "affine_grid_generator", [S("corners", real(1, 2, 3), (1, 1, 2, 2), True)]),
    Op(
        "torch.embedding_bag",
        lambda torch, *a, **k: torch.embedding_bag(*a, **k)[0],
        [
            S("sum", real(3, 2), index([0, 1, 1, 2]), index([0, 2]), torch_second=False),
            S("mean", real(3, 2), index([0, 1, 1, 2]), index([0, 2]), False, 1, torch_second=False),
            S("max", distinct(3, 2), index([0, 1, 1, 2]), index([0, 2]), False, 2, torch_second=False),
        ],
    ),
    Op(
        "torch.embedding_bag, all results",
        "embedding_bag",
        [
            V("mean", real(3, 2, requires_grad=False), index([0, 1, 1, 2]), index([0, 2]), False, 1),
            V("max", distinct(3, 2, requires_grad=False), index([0, 1, 1, 2]), index([0, 2]), False, 2),
            V(
                "padding",
                real(3, 2, requires_grad=False),
                index([0, 1, 1, 2]),
                index([0, 2]),
                False,
                1,
                False,
                None,
                False,
                1,
            ),
        ],
        differentiable=False,
    ),
    Op(
        "conv_tbc",
        "conv_tbc",
        [S("plain", real(3, 1, 2), real(2, 2, 1), real(1)), S("padding", real(3, 2, 2), real(3, 2, 2), real(2), 1)],
        errors=[E("rank", RuntimeError, "must have 3 dims", real(3, 2), real(2, 2, 1), real(1))],
    ),
    Op("torch.adaptive_max_pool1d", "adaptive_max_pool1d", [S("two", distinct(1, 2, 5), 2)]),
    Op("native_channel_shuffle", "native_channel_shuffle", [S("groups", real(1, 4, 2), 2)], torch_gradient=False),
    Op(
        "nn.functional.linear_cross_entropy",
        "nn.functional.linear_cross_entropy",
        [
            S("small", real(2, 1), real(3, 1), index([0, 2])),
            S(
                "bias and weight",
                real(2, 3),
                real(4, 3),
                index([0, 2]),
                linear_bias=real(4),
                weight=positive(4, requires_grad=False),
                reduction="sum",
            ),
            S("places", real(2, 2), real(3, 2, 2), index([[0, 2], [1, 1]]), reduction="none"),
            S("probabilities", real(2, 2), real(3, 2), positive(2, 3), label_smoothing=0.1),
        ],
        errors=[
            E(
                "features",
                RuntimeError,
                "expected equal input and linear_weight last dimensions",
                real(2, 1),
                real(3, 2),
                index([0, 2]),
            )
        ],
    ),
]

OPS = [*RECURRENT, *LOSSES, *OTHERS]
