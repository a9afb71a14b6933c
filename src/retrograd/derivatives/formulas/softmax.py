"""Formula helpers of softmax and its logarithm."""

from __future__ import annotations

from typing import Any


def softmax_backward_output(ops: Any, grad: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """The gradient of ``output * (grad_output - sum(grad_output * output))`` for `output`."""
    inner = ops.sum(ops.mul(grad_output, output), dim, True)
    return grad * (grad_output - inner) - grad_output * ops.sum(ops.mul(grad, output), dim, True)


def softmax_backward_jvp(ops: Any, output_t: Any, grad_output: Any, output: Any, dim: int) -> Any:
    """The tangent of the same by `output`."""
    inner = ops.sum(ops.mul(grad_output, output), dim, True)
    return output_t * (grad_output - inner) - output * ops.sum(ops.mul(grad_output, output_t), dim, True)
