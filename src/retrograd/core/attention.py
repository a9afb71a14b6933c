"""Which of torch's implementations of attention a program allows: `nn.attention.sdpa_kernel` and the switches of
`backends.cuda` set it, for the process, as in torch.  Here all that are allowed give the same."""

from __future__ import annotations

allowed: dict[str, bool] = {"flash": True, "mem_efficient": True, "math": True, "cudnn": True}
