"""One program, in this process, on torch or on retrograd: what it gives to ``backward`` is written down.

    python child.py LIBRARY RESULT LOSSES program.py [arguments]

The program is run as ``python -m retrograd program.py`` runs it (or ``python program.py``, with torch), after the
generators are seeded and a recorder is put around the functions that begin a backward pass. Each call leaves one
number, the sum of what is differentiated: the loss, as a rule. After LOSSES of them, or when the program ends, they go
to RESULT with the processor's time since the program's first line, and this process ends.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import random
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def main() -> None:
    library, result, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    sys.argv = sys.argv[4:]
    here = str(Path(__file__).parent)
    sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
    for folder in os.environ.get("PROGRAM_PATH", "").split(os.pathsep):
        if folder:
            sys.path.insert(1, folder)
    sys.path.insert(1, os.path.join(here, "stand_ins"))
    if library == "retrograd":
        importlib.import_module("retrograd.as_torch").install()
    torch = importlib.import_module("torch")
    assert torch.__name__ == library

    losses: list[float] = []
    began = time.process_time()

    def finish(error: str | None = None) -> None:
        took = time.process_time() - began
        sys.stdout.flush()
        sys.stderr.flush()
        result.write_text(json.dumps({"losses": losses, "seconds": took, "error": error}))
        os._exit(0)

    parent = os.getpid()

    def record(outputs: Any) -> None:
        tensors = [outputs] if isinstance(outputs, torch.Tensor) else list(outputs)
        if os.getpid() != parent:
            return
        losses.append(sum(float(tensor.detach().sum().real) for tensor in tensors))
        if len(losses) >= limit:
            finish()

    depth = 0

    def recorded(function: Any) -> Any:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            if depth == 0:
                record(args[0] if args else kwargs["tensors" if "tensors" in kwargs else "outputs"])
            depth += 1
            try:
                return function(*args, **kwargs)
            finally:
                depth -= 1

        return call

    torch.Tensor.backward = recorded(torch.Tensor.backward)
    torch.autograd.backward = recorded(torch.autograd.backward)
    torch.autograd.grad = recorded(torch.autograd.grad)
    torch.set_num_threads(1)
    torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)  # torch loads its compiler with the first one

    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    began = time.process_time()
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
    except SystemExit as leaving:
        if leaving.code not in (None, 0):
            finish(f"SystemExit: {leaving.code}")
    except BaseException as error:
        import traceback

        traceback.print_exc()
        finish(f"{type(error).__name__}: {error}")
    finish()


if __name__ == "__main__":
    main()
