# Two commands do everything on a fresh machine: `make demo` and `make test`.
# They need Python 3.11+, a C++ compiler and make; the rest is installed into .venv, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
CPP := $(wildcard cpp/*.cpp cpp/*/*.h)
CODE := src tests examples

.PHONY: demo test lint types docs bench format stub clean

demo: $(VENV)/built
	$(BIN)/python examples/robot_arm.py

test: $(VENV)/built
	$(BIN)/python -m pytest -n 2 --dist worksteal

lint: $(VENV)/installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/codespell

types: $(VENV)/installed
	$(BIN)/mypy

docs: $(VENV)/built
	$(BIN)/mkdocs build --strict

bench: $(VENV)/built
	$(BIN)/python -m benchmarks

format: $(VENV)/installed
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)
	$(BIN)/clang-format -i $(CPP)

# Keeps the typed stub of the compiled module, after a change of its Python surface.
stub: $(VENV)/built
	$(BIN)/python -m nanobind.stubgen -m headwise._core -o src/headwise/_core.pyi

clean:
	rm -rf $(VENV) build site

# What is needed to build comes first, because the build sees the environment it will live in.
# The constraints hold for it too: no other torch, no other compiler driver.
$(VENV)/installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt scikit-build-core nanobind cmake ninja torch
	$(PIP) install -c constraints.txt --no-build-isolation --editable '.[dev]'
	touch $@

$(VENV)/built: $(VENV)/installed $(CPP) CMakeLists.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@
