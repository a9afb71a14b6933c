"""What a random program writes down while it runs: one list of events, to be compared with another library's.

The source of this file stands at the top of a printed program, so it is about a module called ``torch`` and nothing
else.  An event is ``(number of the statement, what, value)``; values are plain Python objects.
"""

import warnings

warnings.simplefilter("ignore")


class Recorder:
    """The helpers that the statements of a program call, and the list of what they have seen."""

    def __init__(self, torch, names):
        self.torch = torch
        self.forward = torch.autograd.forward_ad
        self.names = names  # the program's own namespace
        self.events = []
        self.messages = {}  # number of a statement -> the error it has raised
        self.number = 0
        names |= {
            "torch": torch,
            "F": torch.nn.functional,
            "fw": self.forward,
            "at": self.at,
            "look": self.look,
            "note": self.note,
            "hook": self.hook,
            "hookable": self.hookable,
            "own": self.own,
            "tangent": self.tangent,
            "checkpoint": torch.utils.checkpoint.checkpoint,
            "once_differentiable": torch.autograd.function.once_differentiable,
        }

    # ---------------------------------------------------------------------------------------------- called by programs

    def at(self, number):
        """``with at(3): ...`` is statement 3: an error in it is an event, not the end."""
        return Statement(self, number)

    def note(self, what, *things):
        """Write down tensors, or whatever else, that a function of the program was given; None."""
        self.events.append((self.number, what, tuple(self.brief(thing) for thing in things)))

    def hook(self, name, answer=None):
        """A hook that writes down what it was given and gives ``answer(*given)`` back."""

        def called(*given):
            flat = [x for one in given for x in (one if isinstance(one, (tuple, list)) else (one,))]
            self.events.append((self.number, name + ".hook", tuple(self.brief(x) for x in flat)))
            return None if answer is None else answer(*given)

        return called

    def hookable(self, tensor):
        """The tensor, if torch survives a hook on it: its history is up to date, and it has one or is a true leaf."""
        if not tensor.requires_grad or (tensor.grad_fn is None and tensor._is_view()):
            raise LookupError("no hook on a view without history")
        return tensor

    def own(self, gradients):
        """Copies of gradients, after a note of what they are: how the engine's lie in memory is its own affair.
        Something to go on with where one is None."""
        self.note("grad", *gradients)
        return [self.torch.zeros(2) if g is None else g.contiguous().clone() for g in gradients]

    def tangent(self, tensor):
        """The tangent of a tensor, or something to go on with."""
        found = self.forward.unpack_dual(tensor).tangent
        return self.torch.zeros(2) if found is None else found

    def look(self):
        """Write down everything about every tensor of the program."""
        tensors = [(name, t) for name, t in self.names.items() if name[0] == "v" and hasattr(t, "requires_grad_")]
        found, memory = [], {}
        for name, t in tensors:
            self.describe(name, t, found)
        for name, t in tensors:
            if t.numel():
                memory.setdefault(t.untyped_storage().data_ptr(), []).append(name)
            grad = None if not t.is_leaf and not t.retains_grad else t.grad
            if grad is not None and grad.numel():
                memory.setdefault(grad.untyped_storage().data_ptr(), []).append(name + ".grad")
        found.append(("sharing", sorted(group for group in memory.values() if len(group) > 1)))
        self.events += [(self.number, what, value) for what, value in found]

    # ------------------------------------------------------------------------------------------------------- describing

    def brief(self, thing):
        """What a hook tells about a tensor it was given."""
        if not hasattr(thing, "requires_grad_"):
            return thing if isinstance(thing, (bool, int, str, tuple, type(None))) else type(thing).__name__
        node = thing.grad_fn
        return str(thing.dtype), tuple(thing.shape), thing.tolist(), thing.requires_grad, node is not None

    def plain(self, node):
        """The name of a node, without the namespace and the number of the overload."""
        return node.name().rpartition("::")[2].rstrip("0123456789") if hasattr(node, "name") else node

    def describe(self, name, t, found):
        """Append what there is to say about one tensor."""
        found.append((name + ".dtype", str(t.dtype)))
        found.append((name + ".shape", tuple(t.shape)))
        found.append((name + ".value", t.tolist()))
        found.append((name + ".bits", (t.is_conj(), t.is_neg())))
        found.append((name + ".is_inference", t.is_inference()))
        found.append((name + ".is_view", t._is_view()))
        if t.numel():
            found.append((name + ".stride", tuple(s for s, n in zip(t.stride(), t.shape) if n > 1)))
        found.append((name + ".requires_grad", self.ask(t, "requires_grad")))
        node = self.ask(t, "grad_fn")
        found.append((name + ".grad_fn", self.plain(node)))
        found.append((name + ".is_leaf", self.ask(t, "is_leaf")))
        found.append((name + ".version", self.ask(t, "_version")))
        base = t._base
        found.append((name + ".base", base if base is None else self.named(base)))
        if t.is_leaf or t.retains_grad:
            grad = t.grad
            found.append((name + ".grad", grad if grad is None else self.brief(grad)))
            if grad is not None and grad.numel():
                found.append((name + ".grad.stride", tuple(s for s, n in zip(grad.stride(), grad.shape) if n > 1)))
        if self.forward._current_level >= 0:
            tangent = self.ask(t, "tangent")
            found.append((name + ".tangent", tangent if isinstance(tangent, str) else self.brief(tangent)))

    def ask(self, t, attribute):
        """An attribute, or the name of the error that reading it raises."""
        try:
            return self.forward.unpack_dual(t).tangent if attribute == "tangent" else getattr(t, attribute)
        except Exception as error:
            return type(error).__name__

    def named(self, tensor):
        for name, t in self.names.items():
            if t is tensor:
                return name
        return "nameless"


class Statement:
    """The context manager around a statement of a program."""

    def __init__(self, recorder, number):
        self.recorder = recorder
        self.number = number

    def __enter__(self):
        self.recorder.number = self.number

    def __exit__(self, kind, error, traceback):
        recorder = self.recorder
        recorder.number = self.number
        if error is not None:
            if not isinstance(error, Exception):
                return False
            recorder.messages[self.number] = str(error)
        recorder.events.append((self.number, "raised", kind and kind.__name__))
        return True
