# The two commands: `make serve` and `make test`. `make help` lists the rest.
PYTHON ?= python3
PORT   ?= 8000
HOST   ?= 127.0.0.1
MODEL  ?=
ARGS   ?=
# A package index with CPU-only builds of torch: make serve TORCH_INDEX=URL
export TORCH_INDEX ?=
export PYTHON

BIN := .venv/bin
CODEC_SOURCES  := $(shell find recipe-rs -path '*/target' -prune -o -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' -o -name '*.json' -o -name '*.bin' \) -print 2>/dev/null | grep -v '/tests/\|/benches/\|/fuzz/')
NATIVE_SOURCES := $(shell find kernels/cpu -path '*/target' -prune -o -type f \( -name '*.rs' -o -name '*.toml' -o -name '*.py' -o -name '*.pyi' \) -print 2>/dev/null | grep -v '/tests/\|/benches/\|/fuzz/')

.DEFAULT_GOAL := help
.PHONY: help setup model serve chat test test-full fast bench gpu-check clean

help: ## show this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.stamps/venv: pyproject.toml constraints.txt scripts/setup
	@scripts/setup venv
.stamps/codec: .stamps/venv Cargo.toml Cargo.lock $(CODEC_SOURCES)
	@scripts/setup codec
.stamps/native: .stamps/venv Cargo.toml Cargo.lock $(NATIVE_SOURCES)
	@scripts/setup native
.stamps/engine: .stamps/codec .stamps/native
	@scripts/setup engine
.stamps/dev: .stamps/engine
	@scripts/setup dev

setup: .stamps/engine ## create .venv and install codec, CPU operators, engine and server
model: .stamps/engine ## fetch the default model (94 MB, checksum verified)
	@$(BIN)/python -m deepinfer.loader.default_model

serve: .stamps/engine ## set everything up and serve the default model (MODEL=path, PORT=, ARGS=)
	@exec $(BIN)/deepinfer serve $(MODEL) --host $(HOST) --port $(PORT) $(ARGS)

chat: .stamps/engine ## chat with the default model in the terminal
	@exec $(BIN)/deepinfer chat $(MODEL) $(ARGS)

test: .stamps/dev model ## set up what is missing and pass every check
	@scripts/check all
test-full: .stamps/dev model ## the same with the heavy matrices
	@scripts/check full
fast: .stamps/dev ## format, lint, types and unit tests, under a minute
	@scripts/check fast

bench: .stamps/dev model ## what the benchmarks can measure here (scripts/bench --help)
	@scripts/bench $(or $(ARGS),--help)
gpu-check: ## kernels on a real GPU; needs only torch, triton and pytest
	@scripts/gpu_check

clean: ## remove the environment and all build outputs (models stay)
	rm -rf .venv .stamps target dist build
