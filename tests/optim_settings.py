"""Every optimizer over its options: what the tests that stand beside torch go through."""

from __future__ import annotations

from typing import Any

_DECAYS = [{}, {"weight_decay": 0.1}, {"maximize": True}, {"maximize": True, "weight_decay": 0.1}]

#: (class, settings): plain ones, and each option by itself and together with those that it meets in the rule.
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    *[("SGD", {"lr": 0.1, **more}) for more in _DECAYS],
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.01, "maximize": True, "momentum": 0.5}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "foreach": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "fused": True}),
    ("Adam", {}),
    ("Adam", {"lr": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.1, "betas": (0.3, 0.0)}),
    *[("Adam", {"lr": 0.1, **more}) for more in _DECAYS],
    ("Adam", {"lr": 0.1, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    ("Adam", {"lr": 0.1, "amsgrad": True, "foreach": True}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "fused": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.3, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.1, "fused": True}),
    *[("Adamax", {"lr": 0.1, **more}) for more in _DECAYS],
    ("Adamax", {"betas": (0.5, 0.7), "eps": 1e-2, "foreach": True}),
    *[("NAdam", {"lr": 0.1, **more}) for more in _DECAYS],
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.2, "betas": (0.7, 0.8), "foreach": True}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    *[("RAdam", {"lr": 0.1, **more}) for more in _DECAYS],
    ("RAdam", {"lr": 0.1, "betas": (0.7, 0.8), "eps": 1e-3, "foreach": True}),
    ("RAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
    *[("RMSprop", {"lr": 0.1, **more}) for more in _DECAYS],
    ("RMSprop", {"lr": 0.1, "centered": True, "alpha": 0.8}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.5, "centered": True, "eps": 1e-3, "foreach": True, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.1, "etas": (0.4, 2.0), "step_sizes": (0.01, 0.3)}),
    ("Rprop", {"maximize": True, "foreach": True}),
    *[("Adagrad", {"lr": 0.1, **more}) for more in _DECAYS],
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "initial_accumulator_value": 0.5, "eps": 1e-3, "foreach": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "fused": True}),
    *[("Adadelta", more) for more in _DECAYS],
    ("Adadelta", {"lr": 3.0, "rho": 0.7, "eps": 1e-3, "foreach": True}),
    *[("ASGD", {"lr": 0.1, **more}) for more in _DECAYS],
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "alpha": 0.5, "t0": 3, "foreach": True}),
    ("Adafactor", {"lr": 0.1}),
    ("Adafactor", {"lr": 0.1, "beta2_decay": -0.5, "eps": (1e-4, 1e-2), "d": 2.0, "weight_decay": 0.1}),
    ("Adafactor", {"lr": 0.1, "maximize": True, "foreach": True}),
]

#: Those that take complex parameters: what is special about these does not depend on most options.
COMPLEX = [
    (name, settings)
    for name, settings in SETTINGS
    if name != "Adafactor" and not settings.get("fused") and (len(settings) > 2 or "weight_decay" in settings)
]

#: The settings of each optimizer that most of its code is reached by, for tests that are not about numbers.
TYPICAL: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1},
    "Adam": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.1},
    "Adamax": {"lr": 0.1, "weight_decay": 0.1},
    "NAdam": {"lr": 0.1, "weight_decay": 0.1},
    "RAdam": {"lr": 0.1, "betas": (0.7, 0.8), "weight_decay": 0.1},
    "RMSprop": {"lr": 0.1, "momentum": 0.5, "centered": True},
    "Rprop": {"lr": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1},
    "Adadelta": {"lr": 1.0, "weight_decay": 0.1},
    "ASGD": {"lr": 0.1, "t0": 2},
    "Adafactor": {"lr": 0.1},
}
