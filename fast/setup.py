"""Builds the kernels for the processor they are installed on.

RETROGRAD_FAST_CFLAGS in the environment replaces the flags that choose the processor, say with "-mavx2 -mfma" for a
wheel that others will use.
"""

import os
import shlex

from setuptools import Extension, setup

# Nothing here looks at errno or at floating-point exceptions; with them in mind the compiler makes fewer vectors.
arithmetic = ["-fno-math-errno", "-fno-trapping-math"]
processor = shlex.split(os.environ.get("RETROGRAD_FAST_CFLAGS", "-march=native"))

setup(
    ext_modules=[
        Extension(
            "retrograd_fast._kernels",  # loaded with ctypes, not imported: it knows nothing of Python
            sources=["src/kernels_f32.c", "src/kernels_f64.c", "src/pool.c"],
            depends=[f"src/{name}" for name in sorted(os.listdir("src")) if name.endswith((".h", ".inc"))],
            define_macros=[("_GNU_SOURCE", None)],
            extra_compile_args=["-std=c11", "-O3", "-fopenmp-simd", "-pthread", *arithmetic, *processor],
            extra_link_args=["-pthread"],
            libraries=["m"],
        )
    ]
)
