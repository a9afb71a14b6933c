"""Programs that say ``import torch`` and mean retrograd."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import retrograd

PROGRAM = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.data
from torch.optim.lr_scheduler import StepLR
from torch.autograd.functional import jacobian

torch.manual_seed(int(sys.argv[1]))
net = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
assert isinstance(net[0].weight, torch.Tensor) and torch.nn is nn and torch.nn.functional is F
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
scheduler = StepLR(optimizer, 1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(6, 2)), batch_size=3)
for (x,) in data:
    loss = net(x).square().mean()
    loss.backward()
    optimizer.step()
    scheduler.step()
print(torch.__name__, f"{loss.item():.6f}", nn.__spec__.name, __name__)
"""


def run(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(retrograd.__file__).parents[1])}
    return subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-m", "retrograd", *arguments],
        capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=120,
    )  # fmt: skip


def test_a_program_runs_as_it_is(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    for way in (("program.py", "3"), ("-m", "program", "3")):
        done = run(tmp_path, *way)
        assert done.returncode == 0, done.stderr
        name, loss, spec, main = done.stdout.split()
        assert (name, spec, main) == ("retrograd", "retrograd.nn", "__main__") and float(loss) > 0


def test_the_errors_are_the_programs(tmp_path):
    (tmp_path / "program.py").write_text("import torch.nosuch")
    done = run(tmp_path, "program.py")
    assert done.returncode == 1 and "No module named 'torch.nosuch'" in done.stderr
    assert run(tmp_path).returncode == 2 and "usage" in run(tmp_path, "--help").stdout


def test_from_within():
    code = (
        "import retrograd.as_torch as a; a.install(); a.install(); import torch, retrograd, torch.optim\n"
        "assert torch is retrograd and torch.optim is retrograd.optim and a.installed()\n"
        "a.uninstall(); import sys; assert 'torch' not in sys.modules and not a.installed()\n"
        "sys.modules['torch'] = sys\n"
        "try:\n    a.install()\nexcept RuntimeError as error:\n    assert 'imported already' in str(error)\n"
        "else:\n    raise AssertionError\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
