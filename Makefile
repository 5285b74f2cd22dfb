# Thin: each target is one script or one program, and those hold the logic.

.PHONY: help packages packages-test release arm64 run check test bench fuzz ssd-log scenarios baselines experiment versions what-if big-server soak fleet lab picture fmt lint

help:
	@echo "make run        nfscope on this host's NFS server, or on one in a virtual machine"
	@echo "make check      linters and every test that needs no virtual machine: for daily work"
	@echo "make test       set-up, linters and every test, virtual machines included"
	@echo "make fuzz       parsers against mutated input, TIMES=1 as many runs as the tests make (ten million), from SEED=0 on"
	@echo "make bench      what the probes cost, in counted instructions"
	@echo "make ssd-log    what a fast log device does for sync writes to a slow ZFS pool"
	@echo "make scenarios  servers whose bottleneck is known, and what the diagnosis says of them"
	@echo "make baselines  a log device, more threads, and no change at all, recorded and compared"
	@echo "make experiment log device, threads and the property sync: which of them matter, and together"
	@echo "make versions   NFSv3 beside 4.0, 4.1 and 4.2, compared on a client of a real server"
	@echo "make what-if    changes of servers, predicted and then really made"
	@echo "make big-server thousands of threads, connections and clients, every operation counted"
	@echo "make soak       a busy server for HOURS=8, with restarts, reloads and crowds: nothing grows, every count is exact"
	@echo "make packages   deb, rpm, static programs, image and list of libraries, into target/packages"
	@echo "make packages-test  installs them in a machine with systemd and from repositories, and looks at each of them"
	@echo "make release    packages, chart, notes, checksums and repositories into target/dist, signed by RELEASE_KEY=..."
	@echo "make arm64      the packaged program for aarch64, in an emulated machine with Debian's kernel and a real nfsd"
	@echo "make fleet      two hundred simulated agents, kept by Prometheus and by VictoriaMetrics"
	@echo "make picture    the README's pictures of the page, light and dark, from the demonstration"
	@echo "make lab        a shell in a virtual machine that serves NFS"
	@echo "make fmt        format Rust and C"
	@echo "make lint       what make check and make test look at before they test"

run:
	@tests/demo.sh

picture:
	@tests/picture.sh

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

fuzz:
	@FUZZ_TIMES=$(or $(TIMES),1) FUZZ_SEED=$(or $(SEED),0) cargo test --profile fuzz -p nfscope --test fuzz -- --nocapture --test-threads 1
	@FUZZ_TIMES=$(or $(TIMES),1) FUZZ_SEED=$(or $(SEED),0) cargo test --profile fuzz -p nfscope-source --lib fuzz -- --nocapture --test-threads 1

ssd-log:
	@tests/setup/setup.sh
	@cargo build --release -p nfscope -p lab
	@target/release/lab ssd-log

scenarios:
	@tests/setup/setup.sh
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab scenarios $(SCENARIOS)

baselines:
	@tests/setup/setup.sh
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab baselines --keep target/baselines

experiment:
	@tests/setup/setup.sh
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab experiment --keep target/experiment

versions:
	@tests/setup/setup.sh machines
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab versions --keep target/versions

what-if:
	@tests/setup/setup.sh
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab what-if --write

big-server:
	@tests/setup/setup.sh machines
	@cargo build --profile machines -p nfscope -p lab
	@target/machines/lab big-server

soak:
	@tests/setup/setup.sh machines
	@cargo build --release -p nfscope -p lab
	@nice -n 5 target/release/lab soak --hours $(or $(HOURS),8)

fleet:
	@tests/setup/setup.sh fleet
	@cargo build -p nfscope --example fleet
	@tests/fleet.py $(ENGINES)

lab:
	@tests/setup/setup.sh lab
	@cargo build -p lab
	@target/debug/lab shell

fmt:
	@tests/lint.sh --fix

lint:
	@tests/lint.sh

packages:
	@tests/setup/setup.sh build packages
	@deploy/packages/build.sh

packages-test:
	@tests/setup/setup.sh build machines packages
	@deploy/packages/build.sh x86_64
	@tests/packages.sh
	@tests/repositories.sh

release:
	@tests/setup/setup.sh build packages
	@deploy/packages/build.sh
	@RELEASE_KEY="$(RELEASE_KEY)" REPOSITORY="$(REPOSITORY)" deploy/packages/release.sh

arm64:
	@tests/setup/setup.sh build machines packages arm64
	@deploy/packages/build.sh aarch64
	@tests/arm64_package.sh $(TESTS)
