"""One sample database of operators; it drives every operator test (`tests/test_operators.py`).

One file per family; `OPS` is all of them.  To add an operator, add an `Op` to the list of its family: values,
gradients of both orders, dtypes, layouts, variants and errors are then tested.  `spec.py` has the vocabulary.
"""

from __future__ import annotations

from samples import (
    activations,
    assembly,
    bits,
    conv,
    decompositions,
    fft,
    indexing,
    linalg,
    losses,
    matrix_functions,
    networks,
    nn,
    normalization,
    options,
    pieces,
    pointwise,
    pool,
    reductions,
    refusals,
    segments,
    selection,
    shape,
    signal,
    sorting,
    special,
    statistics,
)
from samples.spec import ErrorSample, Op, Sample, cases, lookup

OPS: list[Op] = [
    *pointwise.OPS,
    *selection.OPS,
    *reductions.OPS,
    *shape.OPS,
    *indexing.OPS,
    *linalg.OPS,
    *nn.OPS,
    *conv.OPS,
    *losses.OPS,
    *normalization.OPS,
    *pool.OPS,
    *special.OPS,
    *fft.OPS,
    *statistics.OPS,
    *assembly.OPS,
    *signal.OPS,
    *decompositions.OPS,
    *matrix_functions.OPS,
    *networks.OPS,
    *segments.OPS,
    *activations.OPS,
    *bits.OPS,
    *sorting.OPS,
    *pieces.OPS,
    *options.OPS,
    *refusals.OPS,
]

_names = [op.name for op in OPS]
assert len(set(_names)) == len(_names), f"operators entered twice: {sorted({n for n in _names if _names.count(n) > 1})}"

__all__ = ["OPS", "ErrorSample", "Op", "Sample", "cases", "lookup"]
