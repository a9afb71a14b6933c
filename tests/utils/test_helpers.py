"""Helpers of torch's own code that programs have come to use, beside torch where it is installed."""

from __future__ import annotations

import os
import sys
import traceback
from importlib import import_module

import pytest


def part(torch, name):
    return import_module(f"{torch.__name__}.{name}")


def test_functions_that_make_their_tensors_on_a_device(torch):
    set_device = part(torch, "utils._device").set_device

    @set_device("meta")
    def f():
        return torch.empty(2)

    @set_device("meta")
    def g():
        yield torch.empty(2)
        yield torch.empty(2)

    assert f().is_meta and all([x.is_meta for x in g()]) and not torch.empty(2).is_meta


def test_modules_that_may_be_absent(torch):
    try_import = part(torch, "_utils").try_import
    assert try_import("os") is os and try_import("there_is_no_such_module") is None
    assert try_import("imaplib").IMAP4


def test_calls_as_they_are_written(torch):
    shown = torch._utils.render_call(torch.sum, [torch.ones(100), 3], {"dim": 0})
    assert shown == "torch.sum(tensor([...], size=(100,)), 3, dim=0)"


def test_where_a_program_is(torch):
    module = part(torch, "utils._traceback")
    here = module.CapturedTraceback.extract()
    assert "test_where_a_program_is" in "".join(here.format())
    found = module.CapturedTraceback.format_all([here, module.CapturedTraceback.extract()])
    assert len(found) == 2 and "test_where_a_program_is" in "".join(found[1])
    try:
        raise RuntimeError
    except RuntimeError as error:
        short = module.format_traceback_short(error.__traceback__)
    assert "test_helpers.py:" in short and short.endswith(" in test_where_a_program_is")


def test_tracebacks_of_code_that_was_made(torch):
    report = part(torch, "utils._traceback").report_compile_source_on_error
    source = "def f(x):\n    raise RuntimeError  # this line\n"
    names = {}
    exec(source, {"__compile_source__": source}, names)
    with pytest.raises(RuntimeError) as caught, report():
        names["f"](1)
    assert "this line" in "".join(traceback.format_tb(caught.value.__traceback__))


def test_of_retrograd_what_the_machine_is(capsys):
    from retrograd.utils import collect_env

    collect_env.main()
    said = capsys.readouterr().out
    assert said.count("\n") >= 17 and sys.version.split()[0] in said and "numpy==" in said
