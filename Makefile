# Two commands do everything on a fresh machine: `make demo` and `make test`.
# They need Python 3.11+, a C++ compiler and make; the rest is installed into .venv, once.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Where the compiler's warnings are ours to mend, they are errors.
STRICT := --config-settings=cmake.define.HEADWISE_STRICT=ON
CPP := $(wildcard cpp/*.cpp cpp/*.h cpp/*/*.h tests/fuzz/*.cpp)
KERNELS := $(wildcard cpp/*/*.inl)
CODE := src tests examples benchmarks tools

.PHONY: demo test check floors third-party lint types docs pictures wheel wheel-test bench bundle sanitize format stub clean

demo: $(VENV)/built
	$(BIN)/headwise study run demo --out runs/demo
	$(BIN)/headwise report runs/demo --formats png

test: $(VENV)/built
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Lint, types and the fast tests, in a minute and a half: for every save.
check: lint types $(VENV)/built
	$(BIN)/python -m pytest -n 2 --dist worksteal -q tests/test_architecture.py tests/spaces tests/ops \
		tests/heads tests/nets tests/population tests/factorizations tests/algorithms

# The oldest of every dependency that pyproject.toml allows, in an environment of its own, and a smoke
# test with it. On Linux torch is a CPU build from TORCH_INDEX, so nothing for GPUs is downloaded;
# `make floors TORCH=2.13.0 TORCH_INDEX=` takes another torch, of whatever build pip's own index has.
FLOORS := build/floors
TORCH ?=
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
floors:
	rm -rf $(FLOORS)
	$(PYTHON) -m venv $(FLOORS)
	$(PYTHON) tools/floors.py $(if $(TORCH),--torch $(TORCH)) \
		$(if $(TORCH_INDEX),,--any-build) > $(FLOORS)/floors.txt
	$(FLOORS)/bin/python -m pip --disable-pip-version-check --quiet install -c $(FLOORS)/floors.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) \
		--config-settings=build-dir=$(FLOORS)/module .
	cd $(FLOORS) && bin/python -W error $(abspath tools/smoke.py)

# Other people's environments, with an environment of its own upon .venv: what each needs, and how fast
# it is. NLE pins an older Gymnasium, which is not what it needs.
THIRD := build/third-party
third-party: $(VENV)/built
	rm -rf $(THIRD)
	$(BIN)/python -m venv $(THIRD)
	$(BIN)/python -c "import sysconfig as s; print('import site; site.addsitedir(%r)' % s.get_path('purelib'))" \
		> $$($(THIRD)/bin/python -c "import sysconfig as s; print(s.get_path('purelib'))")/headwise-upon.pth
	$(THIRD)/bin/python -m pip --disable-pip-version-check --quiet install -c constraints.txt \
		--prefer-binary -r tools/third_party.txt
	$(THIRD)/bin/python -m pip --disable-pip-version-check --quiet install --no-deps nle==1.3.0
	$(THIRD)/bin/python tools/third_party.py

lint: $(VENV)/installed
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/codespell

types: $(VENV)/installed
	$(BIN)/mypy

docs: $(VENV)/built
	$(BIN)/mkdocs build --strict

# The diagrams of the docs, light and dark. The film of trained agents is `python tools/draw_agents.py`.
pictures: $(VENV)/installed
	$(BIN)/python tools/draw_rooms.py
	$(BIN)/python tools/draw_factorizations.py
	$(BIN)/python tools/draw_topologies.py

# The sdist and its wheels in dist/; `make wheel PYTHONS="/usr/bin/python3.11 python3.12"` names Pythons.
# `make wheel-test` tries the one for PYTHON where nothing can be compiled.
PYTHONS ?=
wheel: $(VENV)/installed
	$(BIN)/python tools/wheel.py $(PYTHONS)

wheel-test:
	$(PYTHON) tools/wheel_test.py

# What can be measured here; `make bench PEERS=peers/bin/python` compares it with others' packages.
bench: $(VENV)/built
	$(BIN)/python -m benchmarks envs $(if $(PEERS),--peers $(PEERS))
	$(BIN)/python -m benchmarks population
	$(if $(PEERS),$(BIN)/python -m benchmarks training --rounds 3 --seconds 6 --peers $(PEERS))

# The project and its dependencies as one file for a machine without registries, which has a torch of
# its own (docs/gpu.md). WITH names extras, ALSO packages: `make bundle WITH=study,test ALSO=cmake`.
WITH ?= study
bundle: $(VENV)/installed
	$(BIN)/python tools/bundle.py --extras '$(WITH)' --also '$(ALSO)' \
		$(if $(PYTHON_VERSION),--python-version $(PYTHON_VERSION))

# Random calls of the compiled modules under AddressSanitizer and UBSan, with every instruction set,
# and the threads under ThreadSanitizer. Needs g++ and its sanitizer libraries.
CALLS ?= 1000000
CMAKE := CXX=g++ $(BIN)/cmake --no-warn-unused-cli -S . -G Ninja -DCMAKE_BUILD_TYPE=Release \
	-DCMAKE_MAKE_PROGRAM=$(abspath $(BIN)/ninja) -DPython_EXECUTABLE=$(abspath $(BIN)/python)
FUZZ = LD_PRELOAD="$(shell g++ -print-file-name=libasan.so) $(shell g++ -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
	LSAN_OPTIONS=suppressions=tests/fuzz/lsan.supp:print_suppressions=0 PYTHONMALLOC=malloc \
	$(BIN)/python tests/fuzz/fuzz_core.py --modules build/sanitize/address

sanitize: $(VENV)/built
	$(CMAKE) -B build/sanitize/address -DHEADWISE_SANITIZE=address
	$(BIN)/cmake --build build/sanitize/address
	$(FUZZ) --calls $(CALLS)
	HEADWISE_ISA=avx2 $(FUZZ) --calls $$(($(CALLS) / 10)) --seed 1
	HEADWISE_ISA=baseline $(FUZZ) --calls $$(($(CALLS) / 10)) --seed 2
	$(CMAKE) -B build/sanitize/thread -DHEADWISE_SANITIZE=thread
	$(BIN)/cmake --build build/sanitize/thread
	build/sanitize/thread/races

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
	$(PIP) install -c constraints.txt --no-build-isolation $(STRICT) --editable '.[dev]'
	touch $@

$(VENV)/built: $(VENV)/installed $(CPP) $(KERNELS) CMakeLists.txt
	$(PIP) install --no-deps --no-build-isolation $(STRICT) --editable .
	touch $@
