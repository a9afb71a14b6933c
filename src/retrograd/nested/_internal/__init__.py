"""How nested tensors work; users find what they need in ``torch.nested``."""
