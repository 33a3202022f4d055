# Every target makes what it needs: on a fresh clone `make test` or `make run` alone is enough.

# Pythons to try, in this order; `make PYTHON=/some/python test` tries that one only.
PYTHON = python3 python3.12 python3.11 python3.10

BIN := .venv/bin

# Which size `make run` makes: smoke (minutes), quick (9 to 10 minutes on two cores) or paper (on a GPU).
TIER = quick

# CUDA's libraries, where there is a GPU that could use them and nowhere else: they are gigabytes.
GPU_LOCK := $(shell [ "$$(uname -sm)" = "Linux x86_64" ] && nvidia-smi -L > /dev/null 2>&1 && echo requirements-gpu.lock)

# Three workers for two cores, as some tests wait for clusters and processes; one thread of BLAS each, or they would fight.
PYTEST = OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=15

# TensorFlow: no start-up chatter, and one Keras instead of two, as TensorFlow Probability loads the old one anyway.
export TF_CPP_MIN_LOG_LEVEL := 2
export TF_USE_LEGACY_KERAS := 1

# Python before 3.12.4 reads and writes the path of this folder in the locale's encoding, with PYTHONUTF8 too: where that
# is ASCII, as under LC_ALL=C, a folder with an umlaut in its name would not do.
ifneq ($(shell locale charmap 2>/dev/null),UTF-8)
    export LC_ALL := C.UTF-8
endif

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help test check coverage run article docs lint lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1	\2/p' $(MAKEFILE_LIST)

test: lint  ## check style and types, then run all tests
	@# loadfile, as the tests of a file share what is dear to make; in the order of tests/conftest.py, the longest first;
	@# -rs: what was skipped, and why
	$(PYTEST) -rs

check: lint  ## check style and types, then run the unit tests
	$(PYTEST) tests/unit

coverage: .venv/.stamp  ## run the unit tests and see which lines they reach, which takes half as long again
	$(PYTEST) tests/unit --cov

run: .venv/.stamp  ## make every figure and table, and a report; TIER=smoke or paper for another size
	@[ -x $(BIN)/snakemake ] || { echo "the workflow needs Python 3.11 or 3.12, and .venv has $$($(BIN)/python -V);" \
	    "make clean, then name one: make PYTHON=/path/to/python run" >&2; exit 1; }
	@$(BIN)/python workflow/scripts/run.py $(TIER) $(if $(FORCE),--force)

article: TIER = paper
article: .venv/.stamp  ## typeset a reproduction report of four pages from the results of TIER, the paper's unless told
	$(BIN)/snakemake article --config tier=$(TIER)

docs: .venv/.stamp  ## build this documentation's pages into docs/_build/html; a warning is an error
	@# pages of names that are gone would stay
	rm -rf docs/generated
	$(BIN)/python -m sphinx -q -W --keep-going docs docs/_build/html

lint: .venv/.stamp  ## check style, format and types, of the workflow too
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@# not on Python 3.10, which has no Snakemake of today
	if [ -e $(BIN)/snakemake ]; then $(BIN)/snakefmt --check Snakefile workflow/rules && $(BIN)/snakemake --lint; fi

lock:  ## resolve requirements.lock and requirements-gpu.lock anew from pyproject.toml (needs uv)
	uv pip compile -q --universal --python-version 3.10 --extra workflow --extra article --extra crate --extra cluster --extra docs \
	    --extra dev --generate-hashes --no-annotate --no-header pyproject.toml -o requirements.lock
	@# wheels of CUDA's libraries are the same for every Python
	uv pip compile -q --python-platform x86_64-manylinux_2_28 --python-version 3.12 --extra gpu -c requirements.lock \
	    --generate-hashes --no-annotate --no-header pyproject.toml | sed -n '/^nvidia/,/[^\\]$$/p' > requirements-gpu.lock

clean:  ## remove .venv and everything that tools leave behind
	rm -rf .venv build docs/_build docs/generated src/*.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps are written last, so that an interrupted installation does not count as made. There are two, so
# that an edit of pyproject.toml costs seconds and only a new lock costs a new environment.
.venv/.stamp: .venv/.locked pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/.locked: requirements.lock $(GPU_LOCK)
	@for python in $(PYTHON); do \
	    if $$python -c 'import ensurepip, sys; sys.exit(not (3, 10) <= sys.version_info < (3, 13))' 2>/dev/null; \
	    then echo "making .venv with $$python (minutes, once)"; exec $$python -m venv --clear .venv; fi; \
	done; \
	echo "orbitgp needs Python 3.10, 3.11 or 3.12 with venv, and none of these is one: $(PYTHON)" >&2; \
	echo "name one with: make PYTHON=/path/to/python" >&2; exit 1
	@# the lock is complete, so nothing is left to resolve; older pips would take coverage[toml] for another package than
	@# coverage and refuse it as unpinned once there is a newer one
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes $(addprefix -r ,$^)
	@touch $@
