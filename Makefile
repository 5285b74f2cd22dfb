# Thin: each target is one script or one program, and those hold the logic.

.PHONY: help run check test bench ssd-log scenarios baselines what-if big-server lab fmt lint

help:
	@echo "make run        nfscope on this host's NFS server, or on one in a virtual machine"
	@echo "make check      linters and every test that needs no virtual machine: for daily work"
	@echo "make test       set-up, linters and every test, virtual machines included"
	@echo "make bench      what the probes cost, in counted instructions"
	@echo "make ssd-log    what a fast log device does for sync writes to a slow ZFS pool"
	@echo "make scenarios  servers whose bottleneck is known, and what the diagnosis says of them"
	@echo "make baselines  a log device, more threads, and no change at all, recorded and compared"
	@echo "make what-if    changes of servers, predicted and then really made"
	@echo "make big-server thousands of threads, connections and clients, every operation counted"
	@echo "make lab        a shell in a virtual machine that serves NFS"
	@echo "make fmt        format Rust and C"
	@echo "make lint       what make check and make test look at before they test"

run:
	@tests/demo.sh

check:
	@tests/run.sh --check

test:
	@tests/run.sh

bench:
	@tests/setup/setup.sh build machines bench
	@cargo build --release -p nfscope -p lab
	@cargo build --release -p nfscope-baseline --example long_recording
	@cargo run --release -p nfscope-probes --example native
	@target/release/lab block-cost
	@target/release/lab bench

ssd-log:
	@tests/setup/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab ssd-log

scenarios:
	@tests/setup/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab scenarios $(SCENARIOS)

baselines:
	@tests/setup/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab baselines --keep target/baselines

what-if:
	@tests/setup/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab what-if --write

big-server:
	@tests/setup/setup.sh machines
	@cargo build --release -p nfscope -p lab
	@target/release/lab big-server

lab:
	@tests/setup/setup.sh lab
	@cargo build -p lab
	@target/debug/lab shell

fmt:
	@tests/lint.sh --fix

lint:
	@tests/lint.sh
