"""Stands in for tensorboardX: what is written is thrown away."""


class SummaryWriter:
    def __init__(self, *args, **options):
        pass

    def __getattr__(self, name):
        return lambda *args, **options: None
