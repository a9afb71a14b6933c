"""What samples of several families call."""

from __future__ import annotations

from typing import Any

from samples.spec import Op, Sample

F = "nn.functional."


def _op(name: str, samples: list[Sample], **options: Any) -> Op:
    return Op(F + name, F + name, samples, **options)


def more(name: str, *samples: Sample, **options: Any) -> Op:
    """Further samples of an operator that has an entry elsewhere."""
    return Op(f"{name}, options", options.pop("fn", name), list(samples), **options)


def refused(name: str, *errors: Any) -> Op:
    """An operator with wrong calls only; its samples are in the file of its family."""
    return Op(f"{name}, refused", name, [], list(errors))


def without(kernel: str, *dtypes: str) -> str:
    """The phrase for dtypes that a kernel does not have."""
    return rf"\"{kernel}\" not implemented for '({'|'.join(dtypes)})'"
