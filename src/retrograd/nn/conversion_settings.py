"""How modules convert their parameters: ``torch.__future__``.

By default a Parameter stays what it is and gets other data.  With `set_overwrite_module_params_on_conversion(True)` it
is replaced by a new one; with `set_swap_module_params_on_conversion(True)` a new one is made and its content swapped
into the old one (`utils.swap_tensors`), also by `load_state_dict`.
"""

from __future__ import annotations

_settings = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Let conversions of modules replace parameters by new ones, or not."""
    _settings["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Do conversions of modules replace parameters by new ones?"""
    return _settings["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Let conversions of modules, and `load_state_dict`, swap the content of parameters, or not."""
    _settings["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """Do conversions of modules, and `load_state_dict`, swap the content of parameters?"""
    return _settings["swap"]
