"""The generator: ``derivatives/*.yaml`` -> ``_generated/``.

It runs when the package is built or installed and imports nothing of it: names of kernels, helpers and composite
operators are read from their source with `ast`.

    table.py      reads and checks the table
    schema.py     parses an operator's signature
    formula.py    parses a formula: what it reads, and its two namespaces
    nodes.py      writes the node classes
    functions.py  writes the operator wrappers; their parts are in calls.py, recording.py and inplace_functions.py
    records.py    writes what each operator is, for those who ask
    jvps.py       writes the forward-mode formulas
    stubs.py      writes the type stubs
    main.py       the entry point
"""
