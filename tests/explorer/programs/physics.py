"""A chain of masses and springs, thrown so that its end hits a target: the gradient goes through all steps of time.

``python physics.py 2500`` takes more steps: twelve nodes each.
"""

import sys

import retrograd as torch

steps = int(sys.argv[1]) if len(sys.argv) > 1 else 1250
stiffness = torch.tensor(4.0, requires_grad=True)
position = torch.linspace(0.0, 1.0, 8)
speed = torch.full((8,), 0.3, requires_grad=True)
moving = speed
dt = 0.01
for _ in range(steps):
    stretch = torch.diff(position)
    force = stiffness * (stretch - 0.1)
    pull = torch.nn.functional.pad(force, (0, 1)) - torch.nn.functional.pad(force, (1, 0))
    moving = moving + dt * pull
    position = position + dt * moving
loss = (position[-1] - 2.0) ** 2
loss.backward()
