# attnlab: `make read` for readers, `make test` for everybody who changes something.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WHEEL := _build/wheel
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# bytecode is kept, also where the shell says not to: else each of hundreds of processes compiles anew
export PYTHONDONTWRITEBYTECODE :=
# two test processes on two cores: each keeps to one thread
export OPENBLAS_NUM_THREADS := 1
export OMP_NUM_THREADS := 1

.PHONY: help env env-book test test-all lint lint-all programs programs-all try-programs try-programs-all say-test say-test-all wheel pytest pytest-long bench lock picture clean read edit book repaired live lab sweeps course real torch coverage kernels test-kernels
.DELETE_ON_ERROR:
.NOTPARALLEL:

help:
	@echo "make read    set up what readers need, build the book and serve it"
	@echo "make edit    serve the book, and show what is saved within seconds"
	@echo "make test    set everything up and run the checks (minutes)"
	@echo "make test-all  what make test leaves out because it is long; CI runs both"
	@echo "make test-kernels  the same verdict under each of OpenBLAS's kernels (an hour)"
	@echo "make book    build the book (_build/html)"
	@echo "make live    fetch Python for live pages (make book and make read do, too)"
	@echo "make lab     open the pages as notebooks in JupyterLab"
	@echo "make env     only set up (.venv)"
	@echo "make lint    style and types"
	@echo "make bench   speed as ratios against PyTorch and JAX (installs both)"
	@echo "make lock    renew the pinned versions of both environments"
	@echo "make picture redraw the picture of the README"
	@echo "make sweeps  renew the stored sweeps of the explorables"
	@echo "make real    renew the kept runs of real text, images and models (installs PyTorch)"
	@echo "make course  verify the problem sets and write them for instructors (_build/course)"
	@echo "make coverage  which statements the pages teach"
	@echo "make clean   remove everything that was made, except your notebooks in lab/"

# Readers need no test tools. A developer's environment holds a reader's, so it serves for both.
env: $(VENV)/.ready
env-book: $(VENV)/.ready-book

$(VENV)/.ready-book: requirements/book.lock pyproject.toml .ci/environment
	@.ci/environment $(PYTHON) book

$(VENV)/.ready: requirements/dev.lock pyproject.toml .ci/environment
	@.ci/environment $(PYTHON) dev

# -- checks ------------------------------------------------------------------------------------
# `make test` and `make test-all` run every test once between them: the mark `long` tells them apart.
test: say-test try-programs lint book pytest

test-all: say-test-all try-programs-all lint-all book pytest-long kernels

say-test:
	@echo "make test takes about 10 minutes on two cores, and up to 5 more where all must be set up"

say-test-all:
	@echo "make test-all takes about half an hour on two cores"

# the most sensitive tests under three of OpenBLAS's kernels, and every number that the built pages
# tell under another kernel than the build's
kernels: env
	$(BIN)/python .ci/kernels --sensitive
	$(BIN)/python .ci/kernels --built

# all that passes through BLAS or LAPACK, under each kernel, then all pages under two of them
test-kernels: env
	$(BIN)/python .ci/kernels
	$(BIN)/python .ci/kernels --pages

# a browser and a sandbox, where they are missing
programs: env
	@$(BIN)/python .ci/programs

# and another browser, for the long tests
programs-all: env
	@$(BIN)/python .ci/programs all

# where one stays missing the rest runs all the same; pytest leaves tests out, and fails at its end
try-programs try-programs-all: env
	@$(BIN)/python .ci/programs $(if $(findstring all,$@),all) || true

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy

# the same for the newest Python, and types for the oldest, whichever runs here
lint-all: env
	$(BIN)/ruff check --quiet --target-version py314 --ignore UP .
	@.ci/types

# Tests see the built wheel, not the checkout: what is not packaged is missed here.
wheel: env
	@rm -rf $(WHEEL) _build/dist && mkdir -p _build
	@echo building the wheel that the tests see
	@$(BIN)/python -m hatchling build -t wheel -d _build/dist >_build/wheel.log 2>&1 || { cat _build/wheel.log; exit 1; }
	@$(BIN)/python -m pip install --quiet --quiet --no-deps --no-compile --target $(WHEEL) _build/dist/*.whl

# three processes: browsers and sandboxes leave two cores waiting
PYTEST := PYTHONPATH=$(WHEEL) ATTNLAB_UNDER_TEST=$(WHEEL) $(BIN)/pytest -n 3 --dist worksteal --durations=10 \
	--missing-programs _build/missing-programs.json

pytest: try-programs wheel
	$(PYTEST) -m "not long" --doctest-modules --doctest-glob=README.md tests README.md $(WHEEL)/attnlab $(WHEEL)/attnbook

pytest-long: try-programs-all wheel torch
	$(PYTEST) -m long tests

# What trains on real data; `make test` does without. The pinned release is small where the index
# gives builds for processors; the usual index of Linux has builds for CUDA, of several GB.
torch: env
	@$(BIN)/python -c "import torch" 2>/dev/null || $(BIN)/python -m pip install --progress-bar off --quiet torch==2.13.0

# -- the rest ----------------------------------------------------------------------------------
bench: env
	$(BIN)/python -m pip install --progress-bar off --quiet "torch>=2.4,<2.14" "jax>=0.4.30" daqp quadprog
	$(BIN)/python -m benchmarks

# no index and no machine may be named in a lock; readers get the versions that developers test
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --no-annotate --no-header pyproject.toml --extra book
lock:
	@$(BIN)/python -m pip install --quiet --quiet uv
	$(BIN)/$(COMPILE) --upgrade --group dev --output-file requirements/dev.lock
	$(BIN)/$(COMPILE) --constraint requirements/dev.lock --upgrade --group build --output-file requirements/book.lock

picture: env programs
	$(BIN)/python book/pictures/first_run.py

sweeps: env
	$(BIN)/python -m attnbook.widgets.sweeps
	$(BIN)/python -m attnbook.widgets.sweeps_encoder
	$(BIN)/python -m attnbook.widgets.planted

# what the pages show of real data: an hour, and some hundred MB of archives, once
real: env torch
	@echo "make real takes half an hour to an hour on two cores, and fetches some hundred MB of archives once"
	$(BIN)/python -m attnbook figure real --store --out _build/real

# -- the book ----------------------------------------------------------------------------------
book: repaired
	@$(BIN)/python book/_tools/build.py

# served as soon as the pages are there; live Python and the ledger's checks follow
read: repaired
	@$(BIN)/python book/_tools/read.py

# what a build that was killed, or met a full disk, may have left half-written
repaired: env-book
	@$(BIN)/python book/_tools/recovery.py

live: env-book
	$(BIN)/python book/_tools/runtime.py

edit: repaired
	@$(BIN)/python book/_tools/edit.py

lab: env-book
	@$(BIN)/python book/_tools/open_lab.py

coverage: env
	$(BIN)/python book/_tools/coverage.py

# -- coursework --------------------------------------------------------------------------------
course: env programs wheel
	@echo "make course takes a few minutes on two cores"
	$(BIN)/python -m attnbook.course._make --wheel _build/dist/*.whl

clean:
	rm -rf $(VENV) _build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
