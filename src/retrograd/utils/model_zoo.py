"""``torch.utils.model_zoo``: the older name of two functions of ``torch.hub``."""

from ..hub import load_state_dict_from_url as load_url

__all__ = ["load_url"]
