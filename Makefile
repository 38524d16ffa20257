# attnlab: `make read` for readers, `make test` for everybody who changes something.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WHEEL := _build/wheel
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# two test processes on two cores: each keeps to one thread
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: help env test lint programs wheel pytest pythons bench lock picture clean read book lab sweeps course coverage kernels test-kernels
.DELETE_ON_ERROR:

help:
	@echo "make read    set everything up, build the book and serve it"
	@echo "make test    set everything up and run every check"
	@echo "make test-kernels  the same verdict under each of OpenBLAS's kernels (an hour)"
	@echo "make book    build the book (_build/html)"
	@echo "make lab     open the pages as notebooks in JupyterLab"
	@echo "make env     only set up (.venv)"
	@echo "make lint    style and types"
	@echo "make bench   speed as ratios against PyTorch and JAX (installs both)"
	@echo "make lock    renew the pinned versions of the development environment"
	@echo "make picture redraw the picture of the README"
	@echo "make sweeps  renew the stored sweeps of the explorables"
	@echo "make course  verify the problem sets and write them for instructors (_build/course)"
	@echo "make coverage  which statements the pages teach"
	@echo "make clean   remove everything that was made"

env: $(VENV)/.ready

$(VENV)/.ready: requirements/dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; v >= (3, 11) or sys.exit("attnlab needs Python 3.11 or newer; this is %d.%d. Try: make PYTHON=python3.12" % v[:2])'
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { echo "This Python cannot make virtual environments. On Debian: apt-get install python3-venv"; exit 1; }
	@echo "setting up $(VENV) (about a minute)"
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --progress-bar off --quiet --require-hashes --requirement requirements/dev.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# -- checks ------------------------------------------------------------------------------------
test: lint programs pythons book pytest kernels

# the most sensitive tests under three of OpenBLAS's kernels, a minute
kernels: env
	$(BIN)/python .ci/kernels --sensitive

# all that passes through BLAS or LAPACK, under each kernel, then all pages under two of them
test-kernels: env
	$(BIN)/python .ci/kernels
	$(BIN)/python .ci/kernels --pages

# a browser and a sandbox, where they are missing
programs: env
	@.ci/programs

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff check --quiet --target-version py314 --ignore UP .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/mypy --python-version 3.14

# Tests see the built wheel, not the checkout: what is not packaged is missed here.
wheel: env
	@rm -rf $(WHEEL) _build/dist && mkdir -p _build
	@echo building the wheel that the tests see
	@$(BIN)/python -m build --wheel --no-isolation --outdir _build/dist . >_build/wheel.log 2>&1 || { cat _build/wheel.log; exit 1; }
	@$(BIN)/python -m pip install --quiet --no-deps --no-compile --target $(WHEEL) _build/dist/*.whl

pytest: wheel
	PYTHONPATH=$(WHEEL) ATTNLAB_UNDER_TEST=$(WHEEL) $(BIN)/pytest -n 2 --dist worksteal --doctest-modules --doctest-glob=README.md tests README.md $(WHEEL)/attnlab $(WHEEL)/attnbook

pythons: wheel
	$(BIN)/python .ci/newer-pythons _build/dist/*.whl

# -- the rest ----------------------------------------------------------------------------------
bench: env
	$(BIN)/python -m pip install --progress-bar off --quiet "torch>=2.4,<2.14" "jax>=0.4.30" daqp quadprog
	$(BIN)/python -m benchmarks

lock:
	@$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --upgrade \
		--no-emit-index-url --no-emit-find-links --no-annotate --no-header \
		--extra book --group dev pyproject.toml --output-file requirements/dev.lock

picture: env
	$(BIN)/python book/pictures/readme.py

sweeps: env
	$(BIN)/python -m attnbook.widgets.sweeps
	$(BIN)/python -m attnbook.widgets.sweeps_encoder
	$(BIN)/python -m attnbook.widgets.planted

# -- the book ----------------------------------------------------------------------------------
book: env
	$(BIN)/python book/_tools/build.py

read: book
	$(BIN)/python book/_tools/serve.py

lab: env
	cd book && ../$(BIN)/jupyter lab --ServerApp.contents_manager_class=jupytext.TextFileContentsManager

coverage: env
	$(BIN)/python book/_tools/coverage.py

# -- coursework --------------------------------------------------------------------------------
course: env programs wheel
	$(BIN)/python -m attnbook.course._make --wheel _build/dist/*.whl

clean:
	rm -rf $(VENV) _build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
