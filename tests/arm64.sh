#!/bin/bash
# Builds nfscope and lab for arm64, as the machines of LAB_FLAVOUR=arm64 run them: target/aarch64-unknown-linux-gnu/release/.
# tests/setup/setup.sh arm64 installs its requirements.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

root=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}/lab/arm64/root
[ -e "$root/release" ] || { printf 'error: %s is missing\n  fix: tests/setup/setup.sh arm64\n' "$root" >&2; exit 1; }

target=aarch64-unknown-linux-gnu
flags="-C link-arg=--sysroot=$root"
# Debian's own Rust compiler takes its standard library from Debian, too.
[ "$(rustc --print sysroot)" != /usr ] || flags+=" --sysroot=$root/usr"
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS=$flags
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc AR_aarch64_unknown_linux_gnu=aarch64-linux-gnu-ar
export CFLAGS_aarch64_unknown_linux_gnu=--sysroot=$root
# Packages to build: both, or those of the arguments, as in: tests/arm64.sh -p lab
[ $# -gt 0 ] || set -- -p nfscope -p lab
exec cargo build --release --target $target "$@"
