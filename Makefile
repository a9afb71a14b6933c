# `make demo` and `make test` do everything from a fresh clone: Python 3.11 or later and make are all they need.
#
# A stamp file stands for each installation step, so that a step runs again only when what it was made from changed.

PYTHON ?= python3
VENV   ?= .venv
# Which tests to run, as a pytest marker expression, and further arguments for pytest. (Those of MPI have a target.)
SELECT ?= not slow and not mpi
ARGS   ?=
# In how many processes `make test` and `make test-parity` run the tests, a file of them in one; 0 for none but pytest's
# own, as a debugger needs it.
JOBS   ?= auto
# Which versions of Python `make test-versions` is about; all if empty.
VERSIONS ?=
# Where the checkouts are that `make programs` runs.
CHECKOUTS ?=
# Which scripts `make examples` runs.
EXAMPLE ?= digits char_transformer vae lstm_names neural_ode hamiltonian gaussian_process cart_pole scipy_fit

BIN := $(VENV)/bin
PY  := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check install --quiet

GENERATED := src/retrograd/_generated/.stamp
SOURCES   := $(shell find src/retrograd -path src/retrograd/_generated -prune -o \
                     \( -name '*.py' -o -name '*.yaml' -o -name '*.txt' \) -print 2>/dev/null)

MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo examples test test-parity test-slow test-programs test-fast test-core test-mpi test-cuda test-versions \
        test-wheels check \
        fast fast-wheel bench bench-capture bench-distributed bench-func bench-kernels bench-memory bench-optim \
        bench-threads programs coverage generate clean \
        docs test-explorer explorer-libraries \
        explorer-screenshots

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(GENERATED) ## train a small network, check a gradient, draw the graph and the loss
	@$(PY) demo/train.py

examples: $(GENERATED) $(VENV)/examples.stamp ## the scripts of examples/, some minutes; EXAMPLE=vae for one of them
	@for name in $(EXAMPLE); do echo "examples/$$name.py"; $(PY) examples/$$name.py || exit 1; done

test: $(GENERATED) $(VENV)/test.stamp ## the tests, and the examples in docstrings and README
	@$(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "$(SELECT)" $(ARGS)
	@$(PY) -m pytest -q --import-mode=prepend --doctest-modules --doctest-glob='*.md' src/retrograd README.md

test-parity: $(GENERATED) $(VENV)/test.stamp $(VENV)/parity.stamp ## installs torch, then all tests but the slow ones
	@$(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "$(SELECT)" $(ARGS)

test-slow: $(GENERATED) $(VENV)/test.stamp ## deep graphs, leaks and whatever else takes long
	@$(PY) -m pytest -q -m slow $(ARGS)

test-programs: $(GENERATED) $(VENV)/test.stamp $(VENV)/parity.stamp ## 100,000 random programs beside torch: half an hour
	@$(PY) -m pytest -q -s -m slow tests/test_programs.py $(ARGS)

test-fast: $(GENERATED) $(VENV)/test.stamp $(VENV)/fast.stamp ## compile the optional kernels and core; the tests of both
	@RETROGRAD_CORE=compiled $(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "$(SELECT)" tests/kernels tests/autograd \
	  tests/capture/test_compiled_recording.py $(ARGS)

test-core: $(GENERATED) $(VENV)/test.stamp $(VENV)/fast.stamp ## the tests again, on the compiled core
	@RETROGRAD_CORE=compiled $(PY) -m pytest -q -n $(JOBS) --dist loadfile -m "$(SELECT)" $(ARGS)

test-explorer: $(GENERATED) $(VENV)/test.stamp $(VENV)/explorer.stamp ## the explorer's page, and a trace in Perfetto's, in a browser (Debian: chromium, chromium-driver)
	@RETROGRAD_NEEDS_BROWSER=1 $(PY) -m pytest -q -s -m browser tests/explorer tests/profiler $(ARGS)

explorer-libraries: ## build what the explorer lays graphs out with, from the npm registry (needs node and npm)
	@tools/explorer/build.sh

explorer-screenshots: $(GENERATED) $(VENV)/test.stamp $(VENV)/explorer.stamp ## the pictures of docs/EXPLORER.md
	@$(PY) docs/explorer_screenshots.py

docs: $(GENERATED) $(VENV)/docs.stamp ## the site, into build/site: pages, pictures, charts and reference; warnings are errors
	@$(PY) docs/website/build.py

test-cuda: $(GENERATED) ## on a machine with a GPU and CuPy: all samples, the device tests, the benchmark beside torch
	@cd tests && PYTHONPATH=../src:. $(abspath $(PY)) -m gpu.run $(ARGS)

test-mpi: $(GENERATED) $(VENV)/test.stamp $(VENV)/mpi.stamp ## processes that work together, under mpiexec
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest -q -m mpi tests/distributed $(ARGS)

test-versions: ## the tests on every supported Python that is here (see tools/versions.py); VERSIONS=3.14 for one
	@VERSIONS="$(VERSIONS)" $(PYTHON) tools/versions.py $(ARGS)

test-wheels: $(VENV)/install.stamp ## both wheels, pure and compiled: built, installed by themselves, and tested
	@$(PY) tools/wheels.py $(ARGS)

check: $(GENERATED) $(VENV)/dev.stamp ## ruff and mypy
	@$(BIN)/ruff check .
	@$(PY) -m mypy

fast: $(VENV)/fast.stamp ## compile the optional kernels and core (needs gcc or clang) and install them

# Zig's compiler is clang with the headers of every glibc: what it links for 2.17 runs on any Linux since 2014.
ZIG = $(abspath $(BIN))/python -m ziglang cc -target x86_64-linux-gnu.2.17
fast-wheel: $(VENV)/install.stamp ## a wheel of the optional kernels for any Linux on x86-64, into dist/
	@$(PIP) ziglang 'setuptools>=77' 'numpy>=2'
	@rm -rf fast/build
	@cd fast && CC="$(ZIG)" LDSHARED="$(ZIG) -shared" CFLAGS="-O3 -DNDEBUG -fPIC" \
	  $(abspath $(BIN))/python -W ignore setup.py -q bdist_wheel --plat-name manylinux2014_x86_64 -d ../dist
	@ls dist/retrograd_fast-*manylinux*

bench: $(GENERATED) $(VENV)/parity.stamp ## measure beside torch, which is installed for it
	@$(PY) benchmarks/bench_overhead.py $(ARGS)

bench-capture: $(GENERATED) $(VENV)/parity.stamp ## captured steps beside torch, on NumPy and in C; ARGS=--quick takes fewer samples
	@$(PY) benchmarks/bench_capture.py $(ARGS)

bench-optim: $(GENERATED) $(VENV)/parity.stamp ## steps of optimizers beside torch; ARGS=--quick takes fewer samples
	@$(PY) benchmarks/bench_optim.py $(ARGS)

bench-distributed: $(GENERATED) $(VENV)/mpi.stamp ## bytes on the wire, overlap and efficiency of data-parallel training
	@$(PY) benchmarks/bench_distributed.py $(ARGS)

bench-func: $(GENERATED) $(VENV)/parity.stamp ## vmap, Hessians and Jacobians beside torch.func
	@$(PY) benchmarks/bench_func.py $(ARGS)

bench-threads: $(GENERATED) $(VENV)/parity.stamp ## what a second thread is worth, on tensors of a million elements
	@$(PY) benchmarks/bench_threads.py $(ARGS)

bench-memory: $(GENERATED) $(VENV)/parity.stamp ## the memory that whole steps take, beside torch
	@$(PY) benchmarks/bench_memory.py $(ARGS)

bench-kernels: $(GENERATED) $(VENV)/parity.stamp ## operators on large tensors beside torch; ARGS=--only=softmax for some
	@$(PY) benchmarks/bench_kernels.py $(ARGS)

programs: $(GENERATED) $(VENV)/parity.stamp $(VENV)/programs.stamp ## public programs on torch and here: docs/PROGRAMS.md
	@test -n "$(CHECKOUTS)" || { echo "name the folder with their checkouts: make programs CHECKOUTS=folder" >&2; exit 1; }
	@$(PY) benchmarks/public_programs/run.py $(CHECKOUTS) --table docs/PROGRAMS.md $(ARGS)

coverage: $(GENERATED) $(VENV)/parity.stamp ## torch's public functions against ours: docs/COVERAGE.md
	@$(PY) docs/coverage.py

generate: $(VENV)/install.stamp ## write src/retrograd/_generated and the type stubs
	@$(PY) hatch_build.py
	@touch $(GENERATED)

clean: ## remove the environment, the generated files and all caches
	rm -rf $(VENV) .venvs build dist fast/build examples/out docs/_made src/retrograd/_generated .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find src -name '*.pyi' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# ------------------------------------------------------------------------------------------------ installation steps

$(VENV)/venv.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "retrograd needs Python 3.11 or later; name one with: make PYTHON=python3.12" >&2; exit 1; }
	@echo "making $(VENV)"
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "python's venv module is missing (on Debian: apt install python3-venv)" >&2; exit 1; }
	@touch $@

# The generator needs PyYAML here as well, to run again without a reinstallation.
$(VENV)/install.stamp: $(VENV)/venv.stamp pyproject.toml hatch_build.py
	@echo "installing retrograd"
	@$(PIP) pyyaml --editable .
	@touch $@

$(GENERATED): $(VENV)/install.stamp $(SOURCES)
	@$(PY) hatch_build.py >/dev/null
	@touch $@

$(VENV)/test.stamp: $(VENV)/install.stamp
	@echo "installing what the tests need"
	@$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/explorer.stamp: $(VENV)/install.stamp
	@echo "installing selenium and Perfetto's page"
	@$(PIP) --editable '.[explorer-test]'
	@touch $@

$(VENV)/docs.stamp: $(VENV)/install.stamp
	@echo "installing Sphinx"
	@$(PIP) --editable '.[docs]'
	@touch $@

$(VENV)/examples.stamp: $(VENV)/install.stamp
	@echo "installing tqdm and matplotlib"
	@$(PIP) --editable '.[examples]'
	@touch $@

$(VENV)/dev.stamp: $(VENV)/install.stamp
	@echo "installing ruff, mypy and pyright"
	@$(PIP) --editable '.[dev]'
	@touch $@

$(VENV)/fast.stamp: $(VENV)/install.stamp $(wildcard fast/*.py fast/*.toml fast/src/* fast/src/core/* fast/src/retrograd_fast/*.py)
	@echo "compiling the optional kernels"
	@rm -rf fast/build
	@$(PIP) --force-reinstall --no-deps ./fast
	@touch $@

$(VENV)/mpi.stamp: $(VENV)/install.stamp
	@echo "installing mpi4py and an MPI"
	@$(PIP) --editable '.[mpi]'
	@touch $@

$(VENV)/programs.stamp: $(VENV)/install.stamp
	@echo "installing what the programs import"
	@$(PIP) --editable '.[programs]'
	@touch $@

$(VENV)/parity.stamp: $(VENV)/install.stamp
	@echo "installing torch 2.13.0 and tensorboard, to compare with"
	@$(PIP) --editable '.[parity]'
	@touch $@
