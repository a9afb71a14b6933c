"""Formula helpers by the parts of complex numbers."""

from __future__ import annotations

from typing import Any

from .shared import _is_complex, real_part


def imag_part(ops: Any, grad: Any) -> Any:
    """The imaginary part of what may be real."""
    return ops.imag(grad) if _is_complex(grad) else ops.zeros_like(grad)



def angle_backward(ops: Any, grad: Any, self: Any) -> Any:
    """d/dself of the argument: ``i self / |self|^2``; a real number's angle is constant."""
    if not _is_complex(self):
        return ops.zeros_like(grad)
    size = ops.abs(self)
    zero = size == 0
    direction = self * 1j / ops.where(zero, ops.ones_like(size), size * size)
    return ops.where(zero, ops.zeros_like(direction), grad * direction)


def angle_forward(ops: Any, tangent: Any, self: Any) -> Any:
    """The tangent of the argument: Im(conj(self) * tangent) / |self|^2."""
    if not _is_complex(self):
        return ops.zeros_like(tangent)
    size = ops.abs(self)
    zero = size == 0
    turned = imag_part(ops, tangent * self.conjugate()) / ops.where(zero, ops.ones_like(size), size * size)
    return ops.where(zero, ops.zeros_like(turned), turned)


def polar_backward_abs(ops: Any, grad: Any, result: Any, angle: Any) -> Any:
    """d/dabs of ``abs * exp(i angle)``."""
    return real_part(ops, grad * ops.complex(ops.cos(angle), ops.sin(angle)).conjugate())


def polar_forward(ops: Any, abs_p: Any, abs_t: Any, angle_p: Any, angle_t: Any, result: Any) -> Any:
    """The tangent of ``abs * exp(i angle)``."""
    return ops.complex(ops.cos(angle_p), ops.sin(angle_p)) * abs_t + result * 1j * angle_t
