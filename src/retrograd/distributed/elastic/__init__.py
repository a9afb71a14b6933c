"""``torch.distributed.elastic``: processes that come and go. Here is one."""
