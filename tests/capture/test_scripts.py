"""Scripts that a newcomer would write, captured and eager: what they return and leave behind is the same."""

from __future__ import annotations

import copy
import functools
import itertools

import numpy as np
import pytest

import retrograd as torch
import retrograd.autograd.forward_ad as fw
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.capture.compiling import compiler
from retrograd.utils.checkpoint import checkpoint
from retrograd.utils.data import DataLoader, TensorDataset

SCRIPTS = []


def script(function):
    SCRIPTS.append(function)
    return function


def mlp(drop=0.0):
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(drop), nn.Linear(8, 3))


def data(n, b=4):
    g = torch.Generator().manual_seed(3)
    return [(torch.randn(b, 6, generator=g), torch.randint(0, 3, (b,), generator=g)) for _ in range(n)]


@script
def dropout(cap):
    m = mlp(0.5)
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(m.parameters()), torch.rand(2)


@script
def scheduler_inside(cap):
    m = mlp()
    o = torch.optim.Adam(m.parameters(), lr=0.1)
    s = torch.optim.lr_scheduler.StepLR(o, 2, 0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        s.step()
        return l

    return [step(*d) for d in data(7)], list(m.parameters()), o.param_groups[0]["lr"]


@script
def scheduler_outside(cap):
    m = mlp()
    o = torch.optim.AdamW(m.parameters(), lr=0.1)
    s = torch.optim.lr_scheduler.CosineAnnealingLR(o, 5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    for d in data(7):
        r.append(step(*d))
        s.step()
    return r, list(m.parameters())


@script
def clip_norm(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        n = nn.utils.clip_grad_norm_(m.parameters(), 0.3)
        nn.utils.clip_grad_value_(m.parameters(), 0.1)
        o.step()
        return l, n

    return [step(*d) for d in data(6)], list(m.parameters())


def accumulated(cap, set_to_none):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def micro(x, y):
        l = F.cross_entropy(m(x), y) / 2
        l.backward()
        return l

    r = []
    for i, d in enumerate(data(10)):
        r.append(micro(*d))
        if i % 2:
            o.step()
            o.zero_grad(set_to_none=set_to_none)
    return r, list(m.parameters()), [p.grad for p in m.parameters()]


@script
def accumulation(cap):
    return accumulated(cap, True)


@script
def accumulation_zeroed(cap):
    return accumulated(cap, False)


@script
def ema(cap):
    m = mlp()
    e = copy.deepcopy(m)
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        with torch.no_grad():
            for a, b in zip(e.parameters(), m.parameters()):
                a.mul_(0.9).add_(b, alpha=0.1)
        return l

    return [step(*d) for d in data(6)], list(m.parameters()), list(e.parameters())


@script
def ema_averaged_model(cap):
    m = mlp()
    e = torch.optim.swa_utils.AveragedModel(m, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    for d in data(6):
        r.append(step(*d))
        e.update_parameters(m)
    return r, list(m.parameters()), list(e.parameters())


@script
def batchnorm_train_eval(cap):
    m = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    @cap
    def evaluate(x):
        with torch.no_grad():
            return m(x)

    r = []
    for d in data(8):
        m.train()
        r.append(step(*d))
        m.eval()
        r.append(evaluate(d[0]))
    return r, list(m.parameters()), list(m.buffers())


@script
def autocast(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            l = F.cross_entropy(m(x).float(), y)
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(m.parameters())


@script
def autocast_half(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            l = F.mse_loss(m(x), F.one_hot(y, 3).half())
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(m.parameters())


@script
def checkpointed(cap):
    a, b = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5)), nn.Linear(8, 3)
    o = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(b(checkpoint(a, x, use_reentrant=False)), y)
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(a.parameters()), list(b.parameters()), torch.rand(2)


@script
def lbfgs_closure(cap):
    m = mlp()
    o = torch.optim.LBFGS(m.parameters(), lr=0.5, max_iter=4)

    @cap
    def loss_and_grads(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        return l

    r = []
    for x, y in data(3):
        r.append(o.step(functools.partial(loss_and_grads, x, y)))
    return r, list(m.parameters())


@script
def create_graph_penalty(cap):
    m = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 1))
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    @cap
    def step(x):
        o.zero_grad()
        x = x.detach().requires_grad_()
        y = m(x).sum()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
        l = y + ((g.norm(dim=1) - 1) ** 2).mean()
        l.backward()
        o.step()
        return l

    return [step(d[0]) for d in data(6)], list(m.parameters())


@script
def forward_mode(cap):
    m = mlp()

    @cap
    def f(x, v):
        with fw.dual_level():
            return fw.unpack_dual(m(fw.make_dual(x, v))).tangent

    d = data(5)
    return [f(a[0], b[0]) for a, b in itertools.pairwise(d)]


@script
def func_vmap_grad(cap):
    m = mlp()
    p = dict(m.named_parameters())

    def loss(p, x, y):
        return F.cross_entropy(torch.func.functional_call(m, p, (x[None],)), y[None])

    @cap
    def per_sample(x, y):
        return torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))({k: v.detach() for k, v in p.items()}, x, y)

    return [per_sample(*d) for d in data(5)]


@script
def func_hessian(cap):
    w = torch.randn(4, 4)

    @cap
    def h(x):
        return torch.func.hessian(lambda x: (torch.tanh(w @ x) ** 3).sum())(x), torch.func.jacrev(
            lambda x: torch.sin(w @ x)
        )(x)

    return [h(torch.randn(4)) for _ in range(5)]


@script
def loader(cap):
    x = torch.randn(10, 6)
    y = torch.randint(0, 3, (10,))
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    return [step(a, b) for _ in range(4) for a, b in DataLoader(TensorDataset(x, y), batch_size=4, shuffle=True)], list(
        m.parameters()
    )


@script
def state_dict(cap):
    m = mlp()
    o = torch.optim.Adam(m.parameters(), lr=0.1)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    ds = data(12)
    for i, d in enumerate(ds):
        if i == 4:
            s = copy.deepcopy((m.state_dict(), o.state_dict()))
        if i == 8:
            m.load_state_dict(s[0])
            o.load_state_dict(s[1])
        r.append(step(*d))
    return r, list(m.parameters()), o.state_dict()["state"]


@script
def to_dtype(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = [step(*d) for d in data(4)]
    m.to(torch.float64)
    r += [step(x.double(), y) for x, y in data(4)]
    return r, list(m.parameters())


@script
def shared_model(cap):
    m = mlp()
    a = torch.optim.SGD(m.parameters(), lr=0.1)
    b = torch.optim.Adam(m.parameters(), lr=0.1)

    def make(o):
        @cap
        def step(x, y):
            o.zero_grad()
            l = F.cross_entropy(m(x), y)
            l.backward()
            o.step()
            return l

        return step

    f, g = make(a), make(b)
    r = []
    for i, d in enumerate(data(14)):
        r.append((f if i % 3 else g)(*d))
    return r, list(m.parameters())


@script
def exception(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    for i, (x, y) in enumerate(data(8)):
        if i in (1, 5):
            try:
                step(x, torch.full_like(y, 7))
                r.append(0)
            except IndexError:
                r.append(1)
            o.zero_grad()
        else:
            r.append(step(x, y))
    return r, list(m.parameters())


@script
def module_forward(cap):
    m = nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8))
    h = nn.Linear(8, 3)
    c = cap(m)
    o = torch.optim.SGD([*m.parameters(), *h.parameters()], lr=0.1)
    r = []
    for x, y in data(6):
        o.zero_grad()
        l = F.cross_entropy(h(c(x)), y)
        l.backward()
        o.step()
        r.append(l)
    with torch.no_grad():
        r.append(c(x))
    return r, list(m.parameters())


@script
def gan(cap):
    g, d = nn.Sequential(nn.Linear(3, 6), nn.Tanh()), nn.Linear(6, 1)
    a = torch.optim.Adam(g.parameters(), lr=0.1)
    b = torch.optim.Adam(d.parameters(), lr=0.1)

    @cap
    def step(x):
        z = torch.randn(4, 3)
        fake = g(z)
        b.zero_grad()
        ld = F.softplus(-d(x)).mean() + F.softplus(d(fake.detach())).mean()
        ld.backward()
        b.step()
        a.zero_grad()
        lg = F.softplus(-d(fake)).mean()
        lg.backward()
        a.step()
        return ld, lg

    return [step(x) for x, _ in data(6)], list(g.parameters()), list(d.parameters()), [p.grad for p in d.parameters()]


@script
def lstm(cap):
    m = nn.LSTM(6, 5, batch_first=True)
    h = nn.Linear(5, 3)
    o = torch.optim.RMSprop([*m.parameters(), *h.parameters()], lr=0.01)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(h(m(x)[0][:, -1]), y)
        l.backward()
        o.step()
        return l

    return [step(torch.stack([x, x.cos(), x.sin()], 1), y) for x, y in data(6)], list(m.parameters())


@script
def embedding_attention(cap):
    e = nn.Embedding(10, 8)
    t = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.1)
    o = torch.optim.AdamW([*e.parameters(), *t.parameters()], lr=0.01)

    @cap
    def step(i):
        o.zero_grad()
        l = t(e(i)).square().mean()
        l.backward()
        o.step()
        return l

    return [step(torch.randint(0, 10, (2, 5))) for _ in range(6)], list(e.parameters()), list(t.parameters())


@script
def inference(cap):
    m = mlp(0.5).eval()

    @cap
    def f(x):
        with torch.inference_mode():
            return m(x).softmax(-1).argmax(-1), m(x)

    return [f(x) for x, _ in data(5)]


@script
def inplace_buffers(cap):
    b = torch.zeros(3)
    n = torch.zeros((), dtype=torch.int64)

    @cap
    def f(x):
        b.lerp_(x.mean(0)[:3], 0.1)
        n.add_(1)
        return b / n

    return [f(x) for x, _ in data(6)], b, n


@script
def hooks(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    m[0].weight.register_hook(lambda g: g * 2)
    m[3].register_forward_hook(lambda mod, i, out: out * 0.5)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(m.parameters())


@script
def kept_grads(cap):
    m = mlp()

    @cap
    def step(x, y):
        m.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        return l

    kept = []
    for d in data(6):
        step(*d)
        kept.append([p.grad for p in m.parameters()])
    return kept


@script
def grad_scaler(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    s = torch.amp.GradScaler("cpu", init_scale=8.0)

    @cap
    def loss(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        s.scale(l).backward()
        return l

    r = []
    for d in data(6):
        r.append(loss(*d))
        s.step(o)
        s.update()
    return r, list(m.parameters())


@script
def custom_function(cap):
    class Clip(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clamp(-1, 1)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x.abs() < 1) * 0.5

    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(Clip.apply(m(x)), y)
        l.backward()
        o.step()
        return l

    return [step(*d) for d in data(6)], list(m.parameters())


@script
def numbers_as_arguments(cap):
    w = torch.ones(3, requires_grad=True)

    @cap
    def f(x, beta):
        return torch.autograd.grad(((w * x) ** 2 * beta).sum(), w)[0]

    return [f(torch.randn(3), b) for b in (0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.1)]


@script
def complex_fft(cap):
    w = torch.randn(8, requires_grad=True)

    @cap
    def f(x):
        y = torch.fft.rfft(x * w)
        return torch.autograd.grad(y.abs().square().sum(), w)[0], y

    return [f(torch.randn(8)) for _ in range(5)]


@script
def freeze(cap):
    m = mlp()
    o = torch.optim.SGD(m.parameters(), lr=0.1)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    for i, d in enumerate(data(9)):
        if i == 4:
            m[0].requires_grad_(False)
        if i == 7:
            m[0].requires_grad_(True)
        r.append(step(*d))
    return r, list(m.parameters()), [p.grad for p in m.parameters()]


@script
def add_param_group(cap):
    m = mlp()
    o = torch.optim.SGD(m[0].parameters(), lr=0.1)

    @cap
    def step(x, y):
        o.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        o.step()
        return l

    r = []
    for i, d in enumerate(data(9)):
        if i == 4:
            o.add_param_group({"params": m[3].parameters(), "lr": 0.5})
        r.append(step(*d))
    return r, list(m.parameters()), [p.grad for p in m.parameters()]


@script
def views_returned(cap):
    b = torch.zeros(4, 6)

    @cap
    def f(x):
        b.copy_(x * 2)
        y = x + 1
        return y[1], y.t(), b[0].clone(), {"a": (y.sum(), 3)}

    return [f(x) for x, _ in data(5)], b


@script
def tuple_args(cap):
    @cap
    def f(batch, *, scale=1.0):
        return batch["x"][0] * scale + batch["y"].float().sum()

    return [f({"x": [x], "y": y}, scale=2.0) for x, y in data(5)]


@script
def multi_optim(cap):
    m = mlp()
    os_ = [
        c(m.parameters(), lr=0.01)
        for c in (
            torch.optim.Adagrad,
            torch.optim.NAdam,
            torch.optim.RAdam,
            torch.optim.Adadelta,
            torch.optim.Adamax,
            torch.optim.ASGD,
            torch.optim.Rprop,
        )
    ]

    @cap
    def step(x, y):
        m.zero_grad()
        l = F.cross_entropy(m(x), y)
        l.backward()
        for o in os_:
            o.step()
        return l

    return [step(*d) for d in data(9)], list(m.parameters())


def flat(tree):
    if isinstance(tree, torch.Tensor):
        return [tree.detach().numpy().copy()]
    if isinstance(tree, (list, tuple)):
        return [one for part in tree for one in flat(part)]
    if isinstance(tree, dict):
        return [one for part in tree.values() for one in flat(part)]
    return [None if tree is None else np.array(tree)]


def run(function, capture):
    torch.manual_seed(0)
    return flat(function(capture))


def is_same(one, two, to_the_bit):
    if one is None or two is None:
        return one is two
    if one.shape != two.shape or one.dtype != two.dtype:
        return False
    return one.tobytes() == two.tobytes() if to_the_bit else np.allclose(one, two, rtol=1e-4, atol=1e-6)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("backend", ["plain", "native"])
@pytest.mark.parametrize("check", [False, True], ids=["", "checked"])
@pytest.mark.parametrize("function", SCRIPTS, ids=lambda function: function.__name__)
def test_a_script_does_the_same_captured(function, check, backend, tmp_path, monkeypatch):
    if backend == "native":
        if compiler() is None:
            pytest.skip("there is no C compiler")
        monkeypatch.setenv("RETROGRAD_CAPTURE_CACHE", str(tmp_path))
    made = []

    def capture(step):
        made.append(torch.capture(step, backend=backend, check=check))
        return made[-1]

    expected, found = run(function, lambda step: step), run(function, capture)
    assert len(expected) == len(found)
    to_the_bit = backend == "plain" and function is not lstm  # whose eager kernel has a quicker way
    for position, (one, two) in enumerate(zip(expected, found)):
        assert is_same(one, two, to_the_bit), f"number {position}: {one} and {two}"
    assert all(one.source for one in made)  # there was a program
