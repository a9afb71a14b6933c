"""``torch.distributed.algorithms``: see `join`."""
