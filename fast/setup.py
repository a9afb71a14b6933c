"""Builds the compiled core, and the kernels, these once for each kind of processor that they may meet; which is used is
chosen when they are loaded.

RETROGRAD_FAST_LEVELS in the environment names the kinds to build, "avx2 plain" say; RETROGRAD_FAST_CFLAGS adds flags.
"""

import os
import platform
import shlex
import sysconfig

import numpy
from setuptools import Extension, setup

X86 = platform.machine().lower() in ("x86_64", "amd64")
#: The compiler's flags for each kind. Intel's processors are given whole vectors of AVX-512 only if asked for.
LEVELS = {
    "plain": [],
    "avx2": ["-mavx2", "-mfma", "-mf16c"],
    "avx512": [
        "-mavx512f", "-mavx512dq", "-mavx512bw", "-mavx512vl", "-mavx512cd", "-mfma", "-mprefer-vector-width=512"
    ],
}
wanted = os.environ.get("RETROGRAD_FAST_LEVELS", " ".join(LEVELS) if X86 else "plain").split()

# Nothing here looks at errno or at floating-point exceptions; with them in mind the compiler makes fewer vectors.
FLAGS = ["-std=c11", "-O3", "-fopenmp-simd", "-pthread", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]
# Products and sums in one instruction, as BLAS has them; -std=c11 alone would keep them apart.
FLAGS += ["-ffp-contract=fast"]
FLAGS += shlex.split(os.environ.get("RETROGRAD_FAST_CFLAGS", ""))

# One wheel for all versions of Python from 3.11 on; builds without the lock have no such interface yet.
one_wheel = not sysconfig.get_config_var("Py_GIL_DISABLED")
macros = [("_GNU_SOURCE", None)] + ([("Py_LIMITED_API", "0x030B0000")] if one_wheel else [])
options = {"bdist_wheel": {"py_limited_api": "cp311"}} if one_wheel else {}

NAMES = ("module", "ufuncs", "products", "reductions", "twister", "updates", "kernels_f32", "kernels_f64", "pool")
SOURCES = [f"src/{name}.c" for name in NAMES]
CORE = [f"src/core/{name}" for name in sorted(os.listdir("src/core")) if name.endswith(".c")]
DEPENDS = [f"src/{name}" for name in sorted(os.listdir("src")) if name.endswith((".h", ".inc", ".list"))]

# The compiled core reads the slots of Python's objects, which without the lock would need more care than it takes.
core = Extension(
    "retrograd_fast._core",
    sources=CORE,
    depends=["src/core/core.h", "src/core/recorded.h"],
    include_dirs=[numpy.get_include()],
    define_macros=macros,
    extra_compile_args=FLAGS,
    libraries=["m"],
    py_limited_api=one_wheel,
)

setup(
    ext_modules=[
        Extension("retrograd_fast._levels", sources=["src/levels.c"], define_macros=macros, py_limited_api=one_wheel),
        *([core] if one_wheel else []),
        *[
            Extension(
                f"retrograd_fast._kernels_{level}",
                sources=SOURCES,
                depends=DEPENDS,
                include_dirs=[numpy.get_include()],
                define_macros=[*macros, ("LEVEL", level)],
                extra_compile_args=[*FLAGS, *LEVELS[level]],
                extra_link_args=["-pthread"],
                libraries=["m"],
                py_limited_api=one_wheel,
            )
            for level in wanted
        ],
    ],
    options=options,
)
