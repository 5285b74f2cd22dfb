#!/bin/bash
# Runs the tests that boot a machine and have FILTER in their names, two machines at a time (.config/nextest.toml). Sets up the
# packages of a machine variant before.
#
#   tests/machines.sh [FILTER]    (vm_7_2)
#
# LAB_FLAVOUR=rt or arm64, LAB_CPUS=8 and LAB_KERNEL_ARGS="..." change every machine of a run: docs/develop/lab.md.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests/setup/setup.sh nextest ${LAB_FLAVOUR:+"$LAB_FLAVOUR"}
if [ "${LAB_FLAVOUR:-}" = arm64 ]; then
  # shellcheck disable=SC2086 # words
  tests/arm64.sh ${NFSCOPE_BIN:+-p lab}
elif [ -z "${NFSCOPE_BIN:-}" ]; then
  cargo build --profile machines -p nfscope
fi
cache=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}
PATH=$cache/lab/nextest/bin:$PATH exec cargo nextest run --workspace --success-output final -E "test(/vm_/) and test(/${1:-.}/)"
