"""A program whose gradient is NaN: the distance of a point to itself, masked out too late. A leaf is cut off, too."""

import retrograd as torch

points = torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]], requires_grad=True)
scale = torch.tensor(2.0, requires_grad=True)
weights = torch.softmax(scale * torch.ones(3), dim=0).detach()

difference = points[:, None] - points[None, :]
distance = difference.square().sum(-1).sqrt()
near = torch.where(torch.eye(3, dtype=torch.bool), torch.zeros(()), 1 / (1 + distance))
energy = (weights * near.sum(1)).sum()
energy.backward()
