"""``python -m retrograd program.py ...``: run a program of torch's as it is, with retrograd in the place of torch."""

from __future__ import annotations

import os
import runpy
import sys

from . import as_torch


def main() -> None:
    arguments = sys.argv[1:]
    as_module = arguments[:1] == ["-m"]
    arguments = arguments[as_module:]
    if not arguments or arguments[0] in ("-h", "--help"):
        print("usage: python -m retrograd program.py [arguments]\n       python -m retrograd -m module [arguments]")
        raise SystemExit(0 if arguments else 2)
    as_torch.install()
    sys.argv = arguments
    if as_module:
        sys.path[0] = os.getcwd()
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
        runpy.run_path(arguments[0], run_name="__main__")


if __name__ == "__main__":
    main()
