# Thin: each target is one script or one program, and those hold the logic.

.PHONY: help run test bench lab fmt lint

help:
	@echo "make run    nfscope on this host's NFS server, or on one in a virtual machine"
	@echo "make test   set-up, linters and every test, virtual machines included"
	@echo "make bench  what the probes cost, in counted instructions"
	@echo "make lab    a shell in a virtual machine that serves NFS"
	@echo "make fmt    format Rust and C"
	@echo "make lint   what make test checks before it tests"

run:
	@deploy/run.sh

test:
	@tests/run.sh

bench:
	@deploy/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab bench

lab:
	@deploy/setup.sh lab
	@cargo build -p lab
	@target/debug/lab shell

fmt:
	@tests/lint.sh --fix

lint:
	@tests/lint.sh
