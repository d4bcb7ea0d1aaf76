# SPDX-License-Identifier: Apache-2.0
# A thin front: Meson and ninja do the work.  `make help` lists the targets.

PREFIX  ?= /usr/local
DESTDIR ?=
SECONDS ?= 60
BUILD   ?= build
T       ?=

CLANG_ENV = CC=clang
# Built in half the time of -O2, and as good at finding things.
SANITIZE  = -Db_sanitize=address,undefined -Db_lundef=false -Dkernels=plain -Doptimization=1
# A wrong answer of a sanitizer must end the test; leaks count.  The search for leaks guesses where thread-local
# memory of libraries opened at run time lies, and crashes when it is wrong: it leaves that out.
SANITIZE_ENV = ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:allocator_may_return_null=1:intercept_tls_get_addr=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

.PHONY: all train-small train-small-rocm train-ranks demo-wan test test-interop test-long lint asan bench fuzz install uninstall clean help

all: $(BUILD)/build.ninja
	@ninja -C $(BUILD)

$(BUILD)/build.ninja:
	@scripts/setup
	@meson setup $(BUILD)

# DATA=FILE trains on that text; ARGS are for cairn train.
train-small: all
	@scripts/train-small $(BUILD)/cairn "$(DATA)" $(ARGS)

train-small-rocm: all
	@scripts/train-small $(BUILD)/cairn "$(DATA)" --device hip:0 --set train.allow_cpu=false $(ARGS) || { status=$$?; $(BUILD)/cairn doctor | grep -m 1 -A 3 FAIL; exit $$status; }

# The same job with two processes that share the CPU.
train-ranks: all
	@scripts/setup --ranks
	@scripts/train-small $(BUILD)/cairn "$(DATA)" --device cpu --ranks 2 --set train.batch=4 --set train.accumulate=2 $(ARGS)

# Teaches a small Wan model what a star is, on the CPU; ARGS are for cairn train.
demo-wan: all
	@rm -rf $(BUILD)/demo
	@python3 demo/shapes.py $(BUILD)/demo/clips
	@$(BUILD)/cairn train demo/wan.yaml --set data.path=$(BUILD)/demo/clips --set run.dir=$(BUILD)/demo/run $(ARGS)
	@echo '$(BUILD)/demo/run/samples/sheet.png: samples without the LoRA on the left, with it on the right, from the same noise'

test: all
	@scripts/setup --test
	@scripts/test $(BUILD) --no-suite long $(T)

test-interop: all
	@scripts/setup --test
	@INTEROP_TORCH=1 scripts/test $(BUILD) --suite interop $(T)

test-long: all
	@scripts/test $(BUILD) --suite long $(T)

lint: all
	@scripts/setup --test
	@scripts/test $(BUILD) --suite lint

build-asan/build.ninja:
	@scripts/setup --test --clang
	@$(CLANG_ENV) meson setup build-asan $(SANITIZE)

asan: build-asan/build.ninja
	@ninja -C build-asan
	@$(SANITIZE_ENV) scripts/test build-asan --no-suite long --no-suite lint --no-suite interop $(T)

bench: all
	@CAIRN_COMMIT=$$(git rev-parse --short HEAD 2>/dev/null) meson test -C $(BUILD) --benchmark --verbose

build-fuzz/build.ninja:
	@scripts/setup --clang
	@$(CLANG_ENV) meson setup build-fuzz -Dfuzzers=true $(SANITIZE)

fuzz: build-fuzz/build.ninja
	@ninja -C build-fuzz fuzzers
	@tests/fuzz/run build-fuzz $(SECONDS)

install: all
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) meson install -C $(BUILD)

uninstall: all
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@DESTDIR=$(DESTDIR) scripts/uninstall $(BUILD)

clean:
	@rm -rf $(BUILD) build-asan build-fuzz build-static

help:
	@echo 'make                    install missing packages (scripts/setup), build $(BUILD)/cairn'
	@echo 'make demo-wan           train a LoRA for a small Wan model on the CPU: samples before and after, in a few minutes'
	@echo 'make train-small        train a small GPT on the best device, or else the CPU (DATA=text.txt)'
	@echo 'make train-small-rocm   the same on an AMD GPU; if that fails, print what the doctor finds'
	@echo 'make train-ranks        the same with two processes on the CPU, by Open MPI, which it installs'
	@echo 'make test               all tests and lint, except the long tests; T=name runs one'
	@echo 'make test-interop       compare with Python packages (safetensors, diffusers, ...; pip installs them into $(BUILD))'
	@echo 'make lint               check layers, headers, format, shell, man page and docs against the program'
	@echo 'make asan               the tests under the address and undefined-behaviour sanitizers (clang)'
	@echo 'make fuzz SECONDS=60    fuzz the parsers with libFuzzer for that long in total (clang)'
	@echo 'make bench              run the benchmarks'
	@echo 'make test-long          tests that take minutes'
	@echo 'make install PREFIX=/usr/local DESTDIR='
	@echo 'make uninstall          with the same PREFIX and DESTDIR'
	@echo 'make clean'
