"""Programs on nested tensors, which take the module (ours or torch) first and then a nested tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

#: The sizes of components of shape (n, 3), and of (n, 4, 6).
LENGTHS = (2, 4, 1, 3)


def components(*inner: int, lengths: tuple[int, ...] = LENGTHS, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.3, 2.0, (n, *inner)) for n in lengths]


def plain(torch: Any, *shape: int, seed: int = 1) -> Any:
    """A plain tensor, the same in both modules."""
    return torch.from_numpy(np.random.default_rng(seed).uniform(0.5, 1.5, shape))


Case = Callable[..., Any]

#: Of a jagged tensor (4, j, 3).
JAGGED: dict[str, Case] = {
    "exp": lambda t, x: x.exp(),
    "log": lambda t, x: t.log(x),
    "sin, cos, silu": lambda t, x: t.nn.functional.silu(x.sin().cos()),
    "relu": lambda t, x: t.relu(x - 1),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "sigmoid": lambda t, x: x.sigmoid(),
    "tanh": lambda t, x: x.tanh(),
    "sqrt": lambda t, x: x.sqrt(),
    "neg, abs": lambda t, x: (-x).abs(),
    "number": lambda t, x: 2 * x + 1 - x / 3,
    "power": lambda t, x: x**3,
    "clamp": lambda t, x: x.clamp(0.7, 1.4),
    "with itself": lambda t, x: x * x + x,
    "0-d": lambda t, x: x * plain(t),
    "vector": lambda t, x: x + plain(t, 3),
    "row": lambda t, x: x * plain(t, 1, 3),
    "of one row each": lambda t, x: x * plain(t, 4, 1, 3),
    "of one column each": lambda t, x: x * plain(t, 4, 1, 1),
    "padded": lambda t, x: x * plain(t, 4, 4, 3),
    "plain first": lambda t, x: plain(t, 3) / x,
    "where": lambda t, x: t.where(x > 1, x, 2 * x),
    "masked_fill": lambda t, x: x.masked_fill(x > 1, 0.5),
    "maximum": lambda t, x: t.maximum(x, 2 - x),
    "linear": lambda t, x: t.nn.functional.linear(x, plain(t, 5, 3), plain(t, 5)),
    "matmul with a matrix": lambda t, x: x @ plain(t, 3, 2),
    "matmul with a batch": lambda t, x: t.matmul(x, plain(t, 4, 3, 2)),
    "bmm": lambda t, x: t.bmm(x, plain(t, 4, 3, 2)),
    "contraction": lambda t, x: t.matmul(x.transpose(1, 2), x),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,), plain(t, 3), plain(t, 3, seed=2)),
    "layer_norm of components": lambda t, x: t.nn.functional.layer_norm(x, x.shape[1:]),
    "softmax of rows": lambda t, x: x.softmax(-1),
    "softmax over the ragged dimension": lambda t, x: x.softmax(1),
    "log_softmax": lambda t, x: t.nn.functional.log_softmax(x, 2),
    "sum": lambda t, x: x.sum(),
    "sum of rows": lambda t, x: x.sum(2),
    "sum of rows, kept": lambda t, x: x.sum(-1, keepdim=True),
    "sum over the ragged dimension": lambda t, x: x.sum(1),
    "sum over the ragged dimension, kept": lambda t, x: x.sum(1, keepdim=True),
    "sum over batch and ragged": lambda t, x: x.sum((0, 1)),
    "mean": lambda t, x: x.mean(),
    "mean over the ragged dimension": lambda t, x: x.mean(1),
    "mean of rows": lambda t, x: x.mean(2, keepdim=True),
    "amax over the ragged dimension": lambda t, x: x.amax(1),
    "amin of rows": lambda t, x: x.amin(2),
    "max over the ragged dimension": lambda t, x: x.max(1).values,
    "min": lambda t, x: x.min(),
    "prod over the ragged dimension": lambda t, x: x.prod(1),
    "transpose": lambda t, x: x.transpose(1, 2),
    "transposed, sum": lambda t, x: x.transpose(1, 2).sum(2),
    "transposed, softmax": lambda t, x: x.transpose(1, 2).softmax(1),
    "permute": lambda t, x: x.unsqueeze(-1).permute(0, 3, 1, 2),
    "unsqueeze, squeeze": lambda t, x: x.unsqueeze(1).squeeze(1),
    "unsqueeze": lambda t, x: x.unsqueeze(-1),
    "view": lambda t, x: x.view(4, -1, 3, 1),
    "reshape": lambda t, x: x.transpose(1, 2).transpose(1, 2).reshape(4, -1, 1, 3),
    "flatten": lambda t, x: x.unsqueeze(-1).flatten(-2),
    "unflatten": lambda t, x: x.unflatten(-1, (3, 1)),
    "expand": lambda t, x: x.unsqueeze(-1).expand(-1, -1, -1, 2),
    "narrow": lambda t, x: x.narrow(2, 1, 2).contiguous(),
    "select": lambda t, x: x.select(2, 1),
    "a component": lambda t, x: x[1],
    "unbind": lambda t, x: x.unbind()[2],
    "values": lambda t, x: x.values(),
    "split": lambda t, x: t.split(x, [1, 2], -1)[1],
    "chunk": lambda t, x: x.chunk(2, -1)[0],
    "chunk of the batch": lambda t, x: x.chunk(2)[1],
    "cat": lambda t, x: t.cat([x, 2 * x], -1),
    "stack": lambda t, x: t.stack([x, 2 * x], 2),
    "clone": lambda t, x: x.clone(),
    "to another dtype and back": lambda t, x: x.to(t.float32).to(t.float64),
    "to_padded_tensor": lambda t, x: t.nested.to_padded_tensor(x, 7.0),
    "to_padded_tensor of a size": lambda t, x: x.to_padded_tensor(0.0, (4, 6, 3)),
    "dropout of nothing": lambda t, x: t.nn.functional.dropout(x, 0.0),
    "where with zeros": lambda t, x: t.where(x > 1, x, t.zeros_like(x)),
    "embedding": lambda t, x: t.nn.functional.embedding((x * 2).detach().to(t.int64), plain(t, 5, 2)) * x.unsqueeze(-1),
}

#: Of a jagged tensor (4, j, 4, 6): attention with four heads.
HEADS: dict[str, Case] = {
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(*[x.transpose(1, 2)] * 3),
    "attention, causal": lambda t, x: t.nn.functional.scaled_dot_product_attention(
        *[x.transpose(1, 2)] * 3, is_causal=True
    ),
    "flatten": lambda t, x: x.flatten(-2),
    "sum of two dimensions": lambda t, x: x.sum((2, 3)),
    "sum over batch, ragged and another": lambda t, x: x.sum((0, 1, 3)),
    "linear": lambda t, x: t.nn.functional.linear(x, plain(t, 2, 6)),
    "batch of matrices": lambda t, x: x.transpose(1, 2) @ plain(t, 6, 2),
}

#: Of a strided tensor with components (n, 3).
STRIDED: dict[str, Case] = {
    "tanh": lambda t, x: t.tanh(x),
    "gelu": lambda t, x: t.nn.functional.gelu(x),
    "relu": lambda t, x: t.relu(x * 3),
    "number": lambda t, x: x * 2,
    "quotient": lambda t, x: x / 4.0,
    "with itself": lambda t, x: x * x + x.clone(),
    "difference of transposes": lambda t, x: x.transpose(1, 2) - (x * 2).transpose(1, 2),
    "linear": lambda t, x: t.nn.functional.linear(x, plain(t, 5, 3), plain(t, 5)),
    "layer_norm": lambda t, x: t.nn.functional.layer_norm(x, (3,), plain(t, 3), plain(t, 3, seed=2)),
    "softmax": lambda t, x: t.nn.functional.softmax(x, 1),
    "bmm": lambda t, x: x.bmm(x.transpose(1, 2)),
    "matmul": lambda t, x: t.matmul(x.transpose(1, 2), x),
    "sum": lambda t, x: x.sum(-1, keepdim=True),
    "transpose": lambda t, x: x.transpose(1, 2),
    "unsqueeze, squeeze": lambda t, x: x.unsqueeze(1).squeeze(1),
    "view": lambda t, x: x.view(4, -1, 3, 1),
    "reshape": lambda t, x: x.transpose(1, 2).reshape(4, 3, -1),
    "a component": lambda t, x: x[1],
    "of a component": lambda t, x: x[3, 1, :2],
    "unbind": lambda t, x: x.unbind()[2],
    "select": lambda t, x: x.select(2, 1),
    "cat": lambda t, x: t.cat([x, x * 2], -1),
    "clone": lambda t, x: x.clone(),
    "contiguous": lambda t, x: x.transpose(1, 2).contiguous(),
    "to_padded_tensor": lambda t, x: t.nested.to_padded_tensor(x, 7.0),
    "masked_fill": lambda t, x: x.masked_fill(t.nested.nested_tensor([c > 1 for c in x.detach().unbind()]), 0.0),
    "attention": lambda t, x: t.nn.functional.scaled_dot_product_attention(x, x, x),
    "dropout of nothing": lambda t, x: t.nn.functional.dropout(x, 0.0),
}
