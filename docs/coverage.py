"""Write docs/COVERAGE.md: torch's public functions against ours.  Needs torch; run by `make coverage`.

A function is *there* if the same name is in the same namespace.  How it is made is read from the derivative table and
the registry of composites: an entry of the table has formulas of its own, a composite is differentiated through the
operators it calls.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import retrograd
from retrograd.ops.registry import DECLARED

HERE = Path(__file__).parent
DERIVATIVES = Path(retrograd.__file__).parent / "derivatives"

NAMESPACES = {
    "torch": (torch, retrograd),
    "Tensor": (torch.Tensor, retrograd.Tensor),
    "torch.special": (torch.special, getattr(retrograd, "special", None)),
    "torch.fft": (torch.fft, getattr(retrograd, "fft", None)),
    "torch.linalg": (torch.linalg, getattr(retrograd, "linalg", None)),
    "torch.nn.functional": (torch.nn.functional, retrograd.nn.functional),
}

#: What is not meant to be here: a pattern of names, and why.
OUT_OF_SCOPE = [
    (r"(to_)?mkldnn.*", "MKL-DNN's tensors"),
    (r"q(uant.*|_.*|scheme)|.*quant.*|dequantize|int_repr|fbgemm.*|choose_qparams.*", "quantised tensors"),
    (r"align_(to|as)|.*_?names_?|rename_?|refine_names", "named tensors"),
    (r".*_ir|import_ir.*|parse_.*|unify_type.*|merge_type.*|fork|wait|compile|cond|while_loop|script.*|sym_.*"
     r"|thread_safe_generator|classproperty|boolean_dispatch|assert_int_or_pair|Optional|has_torch_function.*"
     r"|handle_torch_function|slice_inverse|hash_tensor|get_file_path|typename|compiled_with.*|prepare_multi.*"
     r"|init_num_threads|module_load|const_data_ptr|from_file|reinforce|index",
     "the compiler, or torch's own workings"),
    (r"chalf|complex32", "complex numbers of half precision, which NumPy has no type for"),
    (r"vmap", "function transforms, which are to come"),
    (r"cudnn.*|miopen.*|.*cuda.*|.*xpu.*|.*ipu.*|.*mtia.*|.*hpu.*|.*vulkan.*|.*(autocast|xla).*|batch_norm_(backward|"
     r"elemt|gather|stats|update).*|get_device_module|record_stream|(is_)?pin(_memory|ned)|native_norm"
     r"|scaled_(grouped_)?mm|grouped_mm|profiler.*", "one kind of accelerator, or mixed precision"),
    (r"is_distributed|(is_)?shared?(_memory_)?", "several processes"),
    (r"eig|symeig|lstsq|solve|matrix_rank|resize(_as)?|set_default_tensor_type|storage_type",
     "removed from torch, or deprecated there"),
]  # fmt: skip


def public(namespace: Any) -> list[str]:
    """The functions of a namespace."""
    names = []
    for name in dir(namespace):
        if name.startswith("_"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = getattr(namespace, name)
        if callable(value) and not isinstance(value, (type, ModuleType)):
            names.append(name)
    return names


def reason(name: str) -> str | None:
    """Why a name is out of scope, if it is."""
    return next((why for pattern, why in OUT_OF_SCOPE if re.fullmatch(pattern, name)), None)


def table() -> dict[str, str]:
    """Base name of each entry of the table, in-place variants and aliases too: its forward formula, or ""."""
    import yaml

    found: dict[str, str] = {}
    for path in sorted(DERIVATIVES.glob("*.yaml")):
        for entry in yaml.safe_load(path.read_text(encoding="utf-8")) or []:
            base = re.split(r"[.(]", entry["name"])[0]
            forward = "-" if entry.get("differentiable") is False else str(entry.get("result", ""))
            for name in (base, *entry.get("aliases", [])):
                for variant in (name, name + "_"):
                    found[variant] = found.get(variant) or forward
    return found


def describe(namespace: str, name: str, entries: dict[str, str]) -> tuple[str, str]:
    """(how it is made, whether it has a forward formula)."""
    prefix = namespace.rpartition(".")[2]
    for key in (name, f"{prefix}_{name}"):
        if key in entries:
            forward = entries[key]
            made = {"-": "-", "not_implemented": "no", "": "no"}.get(forward, "yes")
            return "table", made
    if namespace not in ("torch", "Tensor") or any(name in DECLARED[space] for space in ("torch", "Tensor")):
        return "composite", "through its parts"
    return "plain Python", "-"


def main() -> None:
    """Compare, write the page, print the figures."""
    entries = table()
    lines = [
        "# Coverage",
        "",
        "Torch's public functions against retrograd's, made by `make coverage` with torch "
        f"{torch.__version__.split('+')[0]}. A function of the *table* has its own derivative formulas; a *composite*",
        "is differentiated through the operators that it calls; a dash means that there is nothing to differentiate.",
        "",
        "| namespace | there | missing | out of scope |",
        "| --- | ---: | ---: | ---: |",
    ]
    details: list[str] = []
    excluded: dict[str, list[str]] = {}
    totals = [0, 0, 0]
    for title, (theirs, ours) in NAMESPACES.items():
        there, missing, outside = [], [], 0
        for name in public(theirs):
            why = None if ours is not None and hasattr(ours, name) else reason(name)
            if why is not None:
                excluded.setdefault(why, []).append(f"{title}.{name}")
                outside += 1
            elif ours is not None and hasattr(ours, name):
                there.append(name)
            else:
                missing.append(name)
        counts = (len(there), len(missing), outside)
        totals = [t + c for t, c in zip(totals, counts, strict=True)]
        lines.append(f"| {title} | {counts[0]} | {counts[1]} | {counts[2]} |")
        details += ["", f"## {title}", ""]
        if missing:
            details += ["Missing: " + ", ".join(f"`{name}`" for name in missing) + ".", ""]
        details += ["| function | made as | forward formula |", "| --- | --- | --- |"]
        details += ["| `{}` | {} | {} |".format(name, *describe(title, name, entries)) for name in there]
    lines.append(f"| **all** | **{totals[0]}** | **{totals[1]}** | **{totals[2]}** |")
    details += ["", "## Out of scope", ""]
    details += [f"- {why}: " + ", ".join(f"`{name}`" for name in names) for why, names in excluded.items()]
    (HERE / "COVERAGE.md").write_text("\n".join([*lines, *details]) + "\n", encoding="utf-8")
    print("\n".join(lines[6:]))


if __name__ == "__main__":
    main()
