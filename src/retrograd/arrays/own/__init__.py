"""Kernels of our own for CUDA devices, in the language of CUDA: compiled when first used, launched with little ado.

Note [Kernels of our own]
A kernel of CuPy's costs three times what the device asks for a launch, and one step of a formula is one launch.  So
what programs spend their time with has kernels here: `launching.py` compiles and launches them, `elementwise.py` makes
them of expressions, `rows.py` and `sums.py` go over rows and columns, `channels.py` over channels, `attention.py` and
`images.py` over tiles and windows, `tables.py` finds rows, `blas.py` calls cuBLAS, `updates.py` makes one kernel of an
optimizer's rule, `pending.py` adds gradients where they are computed.  They stand behind the names of NumPy
(numpy_like.py asks for them) and of our kernels (`overlay.py`), and take what they are made for: arrays of one floating
dtype.  Whatever else comes returns None, and goes the way that it would go without them: they are never the only way.

A library that compiles nothing (the simulated one of the tests) has none of them.
"""
