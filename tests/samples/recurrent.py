"""Samples of recurrent."""

from __future__ import annotations

from typing import Any

from samples.spec import E, Op, S, V, given, real


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


OPS = [
    *RECURRENT,
]
