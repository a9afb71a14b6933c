"""Libraries that come without a program: each is trained for some steps, on numbers that are drawn here.

    python library.py NAME

What stands here is what a user of the library would write; the library itself is in its checkout, unmodified.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn


def fit(net: nn.Module, loss: Any, steps: int = 10, lr: float = 1e-3, optimizer: Any = None) -> None:
    optimizer = optimizer or torch.optim.Adam(net.parameters(), lr=lr)
    for _ in range(steps):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()


def vit() -> None:
    from vit_pytorch import ViT

    net = ViT(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=64, dropout=0.1)
    images, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))
    fit(net, lambda: F.cross_entropy(net(images), labels))


def distill() -> None:
    from vit_pytorch.distill import DistillableViT, DistillWrapper

    teacher = nn.Sequential(nn.Flatten(), nn.Linear(3 * 16 * 16, 5))
    student = DistillableViT(image_size=16, patch_size=4, num_classes=5, dim=32, depth=2, heads=4, mlp_dim=64)
    net = DistillWrapper(student=student, teacher=teacher, temperature=3, alpha=0.5, hard=False)
    images, labels = torch.randn(8, 3, 16, 16), torch.randint(0, 5, (8,))
    fit(net, lambda: net(images, labels))


def mamba() -> None:
    from model import Mamba, ModelArgs

    net = Mamba(ModelArgs(d_model=32, n_layer=2, vocab_size=40))
    tokens = torch.randint(0, 40, (4, 17))
    fit(net, lambda: F.cross_entropy(net(tokens[:, :-1]).transpose(1, 2), tokens[:, 1:]))


def llama() -> None:
    from model import ModelArgs, Transformer

    net = Transformer(ModelArgs(dim=32, n_layers=2, n_heads=4, n_kv_heads=2, vocab_size=40, max_seq_len=16))
    tokens = torch.randint(0, 40, (4, 17))

    def loss() -> Any:
        net(tokens[:, :-1], tokens[:, 1:].contiguous())
        return net.last_loss

    fit(net, loss, optimizer=net.configure_optimizers(0.1, 1e-3, (0.9, 0.95), "cpu"))


def convlstm() -> None:
    from convlstm import ConvLSTM

    net = ConvLSTM(3, [8, 4], (3, 3), 2, batch_first=True, bias=True, return_all_layers=False)
    video, target = torch.randn(2, 5, 3, 8, 8), torch.randn(2, 4, 8, 8)
    fit(net, lambda: F.mse_loss(net(video)[0][0][:, -1], target))


def unet() -> None:
    from unet.unet_model import UNet

    net = UNet(n_channels=3, n_classes=2, bilinear=True)
    images, masks = torch.randn(2, 3, 32, 32), torch.randint(0, 2, (2, 32, 32))
    fit(net, lambda: F.cross_entropy(net(images), masks), steps=3, lr=1e-4)


def pointnet() -> None:
    from pointnet.model import PointNetCls, feature_transform_regularizer

    net = PointNetCls(k=4, feature_transform=True)
    points, labels = torch.randn(8, 3, 30), torch.randint(0, 4, (8,))

    def loss() -> Any:
        scores, _, transform = net(points)
        return F.nll_loss(scores, labels) + 0.001 * feature_transform_regularizer(transform)

    fit(net, loss, steps=5, lr=1e-4)


def siren() -> None:
    from siren_pytorch import SirenNet

    net = SirenNet(dim_in=2, dim_hidden=32, dim_out=3, num_layers=3, w0_initial=30.0)
    places = torch.rand(64, 2) * 2 - 1
    places.requires_grad_()
    target = torch.sin(3 * places.detach()).sum(1)

    def loss() -> Any:  # with the slope of the picture, as in fits of signed distances
        picture = net(places)
        (slope,) = torch.autograd.grad(picture.sum(), places, create_graph=True)
        return F.mse_loss(picture[:, 0], target) + 0.01 * (slope.norm(dim=1) - 1).square().mean()

    fit(net, loss)


def ema() -> None:
    from torch_ema import ExponentialMovingAverage

    net = nn.Linear(10, 2)
    mean = ExponentialMovingAverage(net.parameters(), decay=0.9)
    x, labels = torch.randn(16, 10), torch.randint(0, 2, (16,))
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for _ in range(10):
        loss = F.cross_entropy(net(x), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean.update()
        with mean.average_parameters():  # its loss is recorded as well
            F.cross_entropy(net(x), labels).backward()


def maml() -> None:
    from meta import Meta

    args = argparse.Namespace(
        update_lr=0.1, meta_lr=1e-3, n_way=3, k_spt=2, k_qry=3, task_num=2, update_step=3, update_step_test=3, imgc=1,
        imgsz=14,
    )  # fmt: skip
    config = [
        ("conv2d", [8, 1, 3, 3, 2, 0]), ("relu", [True]), ("bn", [8]), ("conv2d", [8, 8, 3, 3, 2, 0]), ("relu", [True]),
        ("bn", [8]), ("flatten", []), ("linear", [3, 8 * 2 * 2]),
    ]  # fmt: skip
    learner = Meta(args, config)
    labels = torch.arange(3).repeat_interleave(2).repeat(2, 1), torch.arange(3).repeat_interleave(3).repeat(2, 1)
    for _ in range(5):
        learner(torch.randn(2, 6, 1, 14, 14), labels[0], torch.randn(2, 9, 1, 14, 14), labels[1])


def higher_maml() -> None:
    import higher

    net = nn.Sequential(nn.Linear(1, 20), nn.Tanh(), nn.Linear(20, 1))
    outer = torch.optim.Adam(net.parameters(), lr=1e-3)
    inner = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(8):
        x = torch.rand(10, 1) * 6 - 3
        shift = torch.rand(1) * 3
        outer.zero_grad()
        with higher.innerloop_ctx(net, inner, copy_initial_weights=False) as (learner, optimizer):
            for _ in range(3):
                optimizer.step(F.mse_loss(learner(x), torch.sin(x + shift)))
            F.mse_loss(learner(x), torch.sin(x + shift)).backward()
        outer.step()


def hessian() -> None:
    from pyhessian import hessian as Hessian

    net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    data = torch.randn(20, 6), torch.randint(0, 3, (20,))
    found = Hessian(net, nn.CrossEntropyLoss(), data=data, cuda=False)
    values, _ = found.eigenvalues(top_n=2, maxIter=10)
    trace = found.trace(maxIter=5)
    for value in [*values, *trace]:  # so that they are compared
        torch.tensor(float(value), requires_grad=True).backward()


def optimizers() -> None:
    import torch_optimizer

    x, labels = torch.randn(16, 6), torch.randint(0, 3, (16,))
    names = "AdaBound AdaMod DiffGrad Lamb NovoGrad QHAdam RAdam SGDW Shampoo Yogi Adahessian"
    for name in names.split():
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
        optimizer = getattr(torch_optimizer, name)(net.parameters(), lr=1e-2)
        for _ in range(5):
            loss = F.cross_entropy(net(x), labels)
            optimizer.zero_grad()
            loss.backward(create_graph=name == "Adahessian")
            optimizer.step()


def captum() -> None:
    from captum.attr import DeepLift, GradientShap, IntegratedGradients, LayerConductance, NoiseTunnel, Saliency

    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    x = torch.randn(4, 6)
    found = [
        IntegratedGradients(net).attribute(x, target=1, n_steps=20),
        Saliency(net).attribute(x, target=1),
        DeepLift(net).attribute(x, target=2),
        GradientShap(net).attribute(x, baselines=torch.zeros(2, 6), target=0, n_samples=4),
        LayerConductance(net, net[1]).attribute(x, target=1, n_steps=10),
        NoiseTunnel(Saliency(net)).attribute(x, target=1, nt_samples=3),
    ]
    for attribution in found:
        (attribution.detach() * torch.arange(attribution.shape[1])).sum().requires_grad_().backward()


def flows() -> None:
    import normflows as nf

    layers: list[Any] = []
    for _ in range(3):
        network = nf.nets.MLP([1, 16, 16, 2], init_zeros=True)
        layers += [nf.flows.AffineCouplingBlock(network), nf.flows.Permute(2, mode="swap")]
    net = nf.NormalizingFlow(nf.distributions.base.DiagGaussian(2), layers)
    x = torch.randn(64, 2) * torch.tensor([1.0, 0.3])
    fit(net, lambda: net.forward_kld(x))


def sde() -> None:
    import torchsde

    class Equation(nn.Module):
        noise_type, sde_type = "diagonal", "ito"

        def __init__(self) -> None:
            super().__init__()
            self.drift, self.spread = nn.Linear(2, 2), nn.Linear(2, 2)

        def f(self, t: Any, y: Any) -> Any:
            return self.drift(y).tanh()

        def g(self, t: Any, y: Any) -> Any:
            return self.spread(y).sigmoid() * 0.3

    net = Equation()
    start, times = torch.zeros(16, 2), torch.linspace(0, 1, 5)

    def loss() -> Any:
        noise = torchsde.BrownianInterval(t0=0.0, t1=1.0, size=(16, 2), entropy=7)
        return (torchsde.sdeint(net, start, times, bm=noise, method="euler", dt=0.1)[-1] - 1).square().mean()

    fit(net, loss, steps=5, lr=1e-2)


def unfold() -> None:
    """Derivatives of each example by hooks (autograd-hacks)."""
    import autograd_hacks

    net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2))
    autograd_hacks.add_hooks(net)
    for _ in range(5):
        net(torch.randn(8, 4)).square().sum().backward()
        autograd_hacks.compute_grad1(net)
        total = sum((p.grad1.square().sum() for p in net.parameters()), torch.zeros(()))
        total.requires_grad_().backward()
        autograd_hacks.clear_backprops(net)
        net.zero_grad()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
