"""Training steps of small networks, for either library: a perceptron, a convolutional network, a transformer block, an
LSTM, a residual block. Each returns its loss, to be compared."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import ModuleType

import numpy


def mlp_step(lib: ModuleType) -> Callable[[], object]:
    """A step of SGD on a 784-256-256-10 ReLU network with batches of 64."""
    rng = numpy.random.default_rng(0)
    sizes = [784, 256, 256, 10]
    parameters = []
    for fan_in, fan_out in itertools.pairwise(sizes):
        weight = rng.standard_normal((fan_out, fan_in)) * (2 / fan_in) ** 0.5
        parameters.append(lib.tensor(weight, dtype=lib.float32, requires_grad=True))
        parameters.append(lib.zeros(fan_out, requires_grad=True))
    w1, b1, w2, b2, w3, b3 = parameters
    x = lib.tensor(rng.standard_normal((64, 784)), dtype=lib.float32)
    y = lib.tensor(rng.integers(0, 10, 64))
    F = lib.nn.functional

    def run() -> object:
        hidden = F.relu(F.linear(x, w1, b1))
        hidden = F.relu(F.linear(hidden, w2, b2))
        loss = F.cross_entropy(F.linear(hidden, w3, b3), y)
        loss.backward()
        with lib.no_grad():
            for p in parameters:
                p -= 0.001 * p.grad
                p.grad = None
        return loss

    return run


def convnet_step(lib: ModuleType) -> Callable[[], object]:
    """A step of SGD on a network of two convolutions (32 and 64 channels, 3×3, pooled) on 64 images of 28×28."""
    rng = numpy.random.default_rng(0)
    F = lib.nn.functional

    def weight(*shape: int):
        scale = (2 / numpy.prod(shape[1:])) ** 0.5
        return lib.tensor(rng.standard_normal(shape) * scale, dtype=lib.float32, requires_grad=True)

    w1, w2, w3 = weight(32, 1, 3, 3), weight(64, 32, 3, 3), weight(10, 64 * 49)
    b1, b2, b3 = (lib.zeros(n, requires_grad=True) for n in (32, 64, 10))
    x = lib.tensor(rng.standard_normal((64, 1, 28, 28)), dtype=lib.float32)
    y = lib.tensor(rng.integers(0, 10, 64))
    optimizer = lib.optim.SGD([w1, b1, w2, b2, w3, b3], lr=0.01)

    def run() -> object:
        optimizer.zero_grad()
        hidden = F.max_pool2d(F.relu(F.conv2d(x, w1, b1, padding=1)), 2)
        hidden = F.max_pool2d(F.relu(F.conv2d(hidden, w2, b2, padding=1)), 2)
        loss = F.cross_entropy(F.linear(hidden.flatten(1), w3, b3), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


def transformer_step(lib: ModuleType) -> Callable[[], object]:
    """A step of SGD on a block of attention (4 heads) and a gelu network, batch 8, sequence 128, width 256."""
    rng = numpy.random.default_rng(0)
    nn, F = lib.nn, lib.nn.functional
    batch, sequence, width, heads = 8, 128, 256, 4
    first, second = nn.LayerNorm(width), nn.LayerNorm(width)
    qkv, out = nn.Linear(width, 3 * width), nn.Linear(width, width)
    up, down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    parameters = [p for module in (first, second, qkv, out, up, down) for p in module.parameters()]
    optimizer = lib.optim.SGD(parameters, lr=0.01)
    x = lib.tensor(rng.standard_normal((batch, sequence, width)), dtype=lib.float32)

    def run() -> object:
        optimizer.zero_grad()
        parts = qkv(first(x)).view(batch, sequence, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        y = x + out(mixed.transpose(1, 2).reshape(batch, sequence, width))
        y = y + down(F.gelu(up(second(y))))
        loss = (y * y).mean()
        loss.backward()
        optimizer.step()
        return loss

    return run


def lstm_step(lib: ModuleType) -> Callable[[], object]:
    """A step of SGD on an LSTM of width 128 that reads 64 sequences of 32 steps."""
    rng = numpy.random.default_rng(0)
    F = lib.nn.functional
    recurrent, head = lib.nn.LSTM(64, 128, batch_first=True), lib.nn.Linear(128, 10)
    optimizer = lib.optim.SGD([*recurrent.parameters(), *head.parameters()], lr=0.01)
    x = lib.tensor(rng.standard_normal((64, 32, 64)), dtype=lib.float32)
    y = lib.tensor(rng.integers(0, 10, 64))

    def run() -> object:
        optimizer.zero_grad()
        loss = F.cross_entropy(head(recurrent(x)[0][:, -1]), y)
        loss.backward()
        optimizer.step()
        return loss

    return run


def resnet_step(lib: ModuleType) -> Callable[[], object]:
    """A step of SGD on a residual block of two 3×3 convolutions with batch norm, 16 images of 64×32×32."""
    rng = numpy.random.default_rng(0)
    nn, F = lib.nn, lib.nn.functional
    layers = [nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)]
    layers += [nn.Conv2d(64, 64, 3, padding=1, bias=False), nn.BatchNorm2d(64)]
    optimizer = lib.optim.SGD([p for layer in layers for p in layer.parameters()], lr=0.01)
    x = lib.tensor(rng.standard_normal((16, 64, 32, 32)), dtype=lib.float32)

    def run() -> object:
        optimizer.zero_grad()
        hidden = F.relu(layers[1](layers[0](x)))
        y = F.relu(x + layers[3](layers[2](hidden)))
        loss = (y * y).mean()
        loss.backward()
        optimizer.step()
        return loss

    return run
