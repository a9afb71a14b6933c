"""One sample database of operators; it drives every operator test (`tests/test_operators.py`).

One file per family; `OPS` is all of them.  To add an operator, add an `Op` to the list of its family: values,
gradients of both orders, dtypes, layouts, variants and errors are then tested.  `spec.py` has the vocabulary.
"""

from __future__ import annotations

from samples import (
    activation,
    arithmetic,
    attention,
    bitwise,
    comparison,
    complex_parts,
    conv,
    creation,
    decompositions,
    distance,
    dtypes,
    embedding,
    fft,
    gather,
    index,
    losses,
    mask,
    matrix_functions,
    memory,
    normalization,
    number_parts,
    pool,
    powers,
    products,
    random,
    rearrange,
    recurrent,
    reduce,
    resample,
    scan,
    shape,
    softmax,
    solve,
    sort,
    special,
    statistics,
    trigonometry,
)
from samples.spec import ErrorSample, Op, Sample, cases, lookup

OPS: list[Op] = [
    *arithmetic.OPS,
    *powers.OPS,
    *trigonometry.OPS,
    *number_parts.OPS,
    *complex_parts.OPS,
    *comparison.OPS,
    *bitwise.OPS,
    *special.OPS,
    *activation.OPS,
    *reduce.OPS,
    *scan.OPS,
    *statistics.OPS,
    *distance.OPS,
    *sort.OPS,
    *shape.OPS,
    *rearrange.OPS,
    *memory.OPS,
    *creation.OPS,
    *random.OPS,
    *index.OPS,
    *gather.OPS,
    *mask.OPS,
    *products.OPS,
    *decompositions.OPS,
    *solve.OPS,
    *matrix_functions.OPS,
    *softmax.OPS,
    *losses.OPS,
    *normalization.OPS,
    *embedding.OPS,
    *conv.OPS,
    *pool.OPS,
    *resample.OPS,
    *fft.OPS,
    *attention.OPS,
    *recurrent.OPS,
    *dtypes.OPS,
]

_names = [op.name for op in OPS]
assert len(set(_names)) == len(_names), f"operators entered twice: {sorted({n for n in _names if _names.count(n) > 1})}"

__all__ = ["OPS", "ErrorSample", "Op", "Sample", "cases", "lookup"]
