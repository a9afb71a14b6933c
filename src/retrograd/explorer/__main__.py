"""``python -m retrograd.explorer script.py``: run a script, and explore its last backward pass."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from .. import as_torch
from .record import Recording


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m retrograd.explorer",
        description="Run a script, and explore its last backward pass in the browser.",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where the page goes (a temporary file, if not given)")
    parser.add_argument("--no-open", action="store_true", help="do not open the page")
    parser.add_argument("--as-torch", action="store_true", help="have `import torch` mean retrograd in the script")
    parser.add_argument("--all", action="store_true", help="record all backward passes, not the last alone")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module instead of a script")
    parser.add_argument("script", nargs=argparse.REMAINDER, help="the script, and its own arguments")
    options = parser.parse_args(arguments)
    if not options.script and options.module is None:
        parser.error("which script?")
    own = list(options.script)
    target = options.module or own.pop(0)
    if options.as_torch:
        as_torch.install()
    recording = Recording(title=f"{Path(target).name}", last=not options.all)
    argv, path = sys.argv, sys.path[:]
    status = 0
    try:
        sys.argv = [target, *own]
        if options.module is None:
            sys.path.insert(0, str(Path(target).resolve().parent))
        with recording:
            if options.module is not None:
                runpy.run_module(target, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(target, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        recording.error = None if status == 0 else f"the script ended with status {end.code}"
    except Exception:
        traceback.print_exc()
        status = 1
    finally:
        sys.argv, sys.path[:] = argv, path
    page = recording.page()
    if not page.runs[0]["nodes"]["op"]:
        print("explorer: the script ran no backward pass", file=sys.stderr)
        return status or 1
    page.save(options.output)
    print(f"explorer: {page.path}", file=sys.stderr)
    if not options.no_open:
        page.open()
    return status


if __name__ == "__main__":
    sys.exit(main())
