"""Figures on the GPU beside torch's, each library in a process of its own: ``python -m gpu.benchmark`` in tests/."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time


def chain(torch):
    x = torch.ones(64, 64, device="cuda", requires_grad=True)
    weights = [torch.full((64, 64), 1.001, device="cuda") for _ in range(100)]

    def run():
        y = x
        for w in weights:
            y = y * w
        y.sum().backward()
        x.grad = None

    return run


def network(torch):
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    ).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.ones(64, 784, device="cuda"), torch.zeros(64, dtype=torch.int64, device="cuda")

    def run():
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return run


def matmul(torch):
    a = torch.ones(2048, 2048, device="cuda", requires_grad=True)
    b = torch.ones(2048, 2048, device="cuda", requires_grad=True)

    def run():
        (a @ b).sum().backward()
        a.grad = b.grad = None

    return run


def block(torch, dtype="float32"):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, dropout=0.0, batch_first=True).to("cuda")
    layer = layer.to(getattr(torch, dtype))
    x = torch.ones(8, 256, 512, device="cuda", dtype=getattr(torch, dtype), requires_grad=True)

    def run():
        layer(x).sum().backward()

    return run


def convnet(torch):
    """Two convolutions (32 and 64 channels, 3x3, pooled) on 64 images of 28x28, as in the benchmarks of the CPU."""
    torch.manual_seed(0)
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 10),
    ).to("cuda")  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = torch.ones(64, 1, 28, 28, device="cuda"), torch.zeros(64, dtype=torch.int64, device="cuda")

    def run():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return run


def attention(torch, dtype="float32"):
    """Attention of 16 heads over 2048 places, each of which sees those before it."""
    shape = (2, 8, 2048, 64)
    torch.manual_seed(0)
    parts = [torch.randn(shape, device="cuda").to(getattr(torch, dtype)).requires_grad_() for _ in range(3)]

    def run():
        torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True).sum().backward()
        for one in parts:
            one.grad = None

    return run


def batch_norm(torch):
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(64).to("cuda")
    x = torch.randn(64, 64, 56, 56, device="cuda").requires_grad_()

    def run():
        norm(x).sum().backward()
        x.grad = None

    return run


def embedding(torch):
    torch.manual_seed(0)
    table = torch.nn.Embedding(30000, 512).to("cuda")
    at = torch.randint(0, 30000, (8, 512)).to("cuda")

    def run():
        table(at).sum().backward()
        table.weight.grad = None

    return run


def captured(make):
    """A step as a graph, by one line; torch's beside it runs without one."""

    def made(torch):
        run = make(torch)
        return torch.capture(run) if torch.__name__ == "retrograd" else run

    return made


def saved(torch, keep):
    """Peak memory and time of a long chain of large tensors, with what is saved kept or in pinned host memory."""
    x = torch.ones(4 << 20, device="cuda", requires_grad=True)
    w = torch.full((1024, 1024), 0.001, device="cuda")

    def forward():
        y = x.reshape(4096, 1024)
        for _ in range(12):
            y = (y @ w).sin()
        return y

    def run():
        if keep:
            y = forward()
        else:
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                y = forward()
        y.sum().backward()
        x.grad = None

    return run


CASES = {
    "100 products of 64x64": (chain, 20), "100 products, captured": (captured(chain), 20),
    "MLP step, batch 64": (network, 30), "MLP step, captured": (captured(network), 100),
    "2048x2048 product": (matmul, 20),
    "transformer block": (block, 20), "transformer, captured": (captured(block), 30),
    "transformer in bfloat16": (lambda torch: block(torch, "bfloat16"), 20),
    "bfloat16, captured": (captured(lambda torch: block(torch, "bfloat16")), 30),
    "convnet, batch 64": (convnet, 20), "convnet, captured": (captured(convnet), 50),
    "causal attention, 2048": (attention, 5), "batch norm": (batch_norm, 20), "embedding": (embedding, 20),
    "the same in bfloat16": (lambda torch: attention(torch, "bfloat16"), 5),
    "saved, kept": (lambda torch: saved(torch, True), 5),
    "saved, in host memory": (lambda torch: saved(torch, False), 5),
}  # fmt: skip


#: How often each case is timed in each library, in turns: the host is not as fast in one second as in the next.
ROUNDS = 15


def serve(name: str) -> None:
    """One library in this process: it reads what to do, a case to make or to time, and writes what it took."""
    torch = __import__(name)
    run, times = None, 0
    for line in sys.stdin:
        title = json.loads(line)
        try:
            if title is not None:
                run = None  # with its memory
                make, times = CASES[title]
                run = make(torch)
                for _ in range(3):
                    run()
                torch.cuda.synchronize()
                torch.cuda.reset_peak_memory_stats()
                before = torch.cuda.memory_allocated()
                run()
                torch.cuda.synchronize()
                answer = torch.cuda.max_memory_allocated() - before
            else:
                began = time.perf_counter()
                for _ in range(times):
                    run()
                torch.cuda.synchronize()
                answer = (time.perf_counter() - began) / times
        except Exception as error:
            answer = f"{type(error).__name__}: {str(error)[:150]}"
        print(json.dumps(answer), flush=True)


def main(folder: str | None = None) -> None:
    """Both, and the ratios."""
    names = ("torch", "retrograd")
    servers = {
        name: subprocess.Popen(
            [sys.executable, "-m", "gpu.benchmark", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for name in names
    }

    def ask(name: str, what: str | None) -> object:
        server = servers[name]
        server.stdin.write(json.dumps(what) + "\n")
        server.stdin.flush()
        return json.loads(server.stdout.readline() or '"it has ended"')

    found: dict[str, dict] = {name: {} for name in names}
    for title in CASES:
        peaks = {name: ask(name, title) for name in names}
        taken: dict[str, list] = {name: [] for name in names}
        for _ in range(ROUNDS):
            for name in names:
                taken[name].append(ask(name, None))
        wrong = [one for name in names for one in (peaks[name], *taken[name]) if isinstance(one, str)]
        if wrong:
            print(f"{title:25} {wrong[0]}")
            continue
        for name in names:
            found[name][title] = [min(taken[name]), peaks[name], taken[name]]
        theirs, ours = found["torch"][title], found["retrograd"][title]
        print(f"{title:25} {ours[0] * 1e3:9.3f} ms, torch {theirs[0] * 1e3:9.3f} ms: {ours[0] / theirs[0]:6.2f}; "
              f"peak {ours[1] / 2**20:8.1f} MiB, torch {theirs[1] / 2**20:8.1f}", flush=True)  # fmt: skip
    for server in servers.values():
        server.stdin.close()
        server.wait(timeout=30)
    if folder:
        with open(os.path.join(folder, "benchmark.json"), "w") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        serve(sys.argv[1])
    else:
        main(os.environ.get("OUT"))
