"""SciPy's solvers for functions of Tensors: ``minimize``, ``root``, ``least_squares`` and ``solve_ivp``.

SciPy solves; what it would have to estimate by differences it gets exactly: gradients, Jacobians, products with
Hessians. The solutions are Tensors with a history: they have derivatives by the tensors in `args` (to any order) and by
those leaves that the function finds elsewhere, such as a model's parameters (to first order). How the solver
came there does not matter to them: they are computed at the solution, by the implicit function theorem, and for
differential equations by the adjoint equation.

SciPy computes in double precision; give it float64.

>>> import retrograd as torch
>>> from retrograd import scipy
>>> a = torch.tensor([1.0, 3.0], dtype=torch.float64, requires_grad=True)
>>> found = scipy.minimize(lambda x, a: ((x - a) ** 2).sum() + x.prod(), torch.zeros(2, dtype=torch.float64), (a,))
>>> found.x
tensor([-0.6667,  3.3333], dtype=torch.float64, grad_fn=<SolutionBackward>)
>>> torch.autograd.grad(found.x[0], a)
(tensor([ 1.3333, -0.6667], dtype=torch.float64),)
"""

from .integrate import solve_ivp
from .optimize import least_squares, minimize, root

__all__ = ["least_squares", "minimize", "root", "solve_ivp"]
