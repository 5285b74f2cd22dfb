#!/bin/bash
# Everything that has to hold: set-up, linters, the release build, and every test - plain, root and virtual machine.
# Ends with `N passed, N failed, N skipped`. Arguments go to cargo test (`tests/run.sh -p lab vm_6_12`).
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS

tests/setup/setup.sh all || exit 1
if [ "$(id -u)" != 0 ]; then
  echo "error: tests load BPF programs and boot machines as root" >&2
  echo "  fix: sudo make test" >&2
  exit 1
fi

reports=target/test-reports
mkdir -p $reports
# What failed runs of before have left: <kernel>-<process>-<number>, whose process is gone.
for dir in target/lab/*-*-*; do
  process=${dir%-*}
  [ -e "/proc/${process##*-}" ] || rm -rf "$dir"
done
log=$reports/tests.log
: >$log
# Tests that find that they cannot run write why into this file (lab::skip).
export NFSCOPE_SKIPS=$PWD/$reports/skips
: >"$NFSCOPE_SKIPS"

echo "==> Linters"
tests/lint.sh | tee $reports/lint.log
lint_failures=${PIPESTATUS[0]}

echo "==> Release build"
if ! cargo build --release -p nfscope; then
  echo "0 passed, 1 failed, 0 skipped: the release build failed"
  exit 1
fi

export RUST_BACKTRACE=${RUST_BACKTRACE:-0}
if [ $# -gt 0 ]; then
  echo "==> Tests (output of passing tests is in $log)"
  # One test owns one machine at most, so two threads keep both slots busy.
  RUST_TEST_THREADS=2 cargo test --workspace --no-fail-fast "$@" 2>&1 | tee $log
  cargo_status=${PIPESTATUS[0]}
else
  echo "==> Tests without machines (output of passing tests is in $log)"
  cargo test --workspace --no-fail-fast -- --skip vm_ 2>&1 | tee $log
  cargo_status=${PIPESTATUS[0]}
  echo "==> Tests with machines, two at a time"
  tests/machines.sh 2>&1 | tee -a $log
  [ "${PIPESTATUS[0]}" = 0 ] || cargo_status=1
fi

# Counted by test, not by the totals: a test program with a harness of its own prints none.
count() { grep -cE "^test .* \.\.\. $1" $log; }
passed=$(count 'ok$')
failed=$(($(count 'FAILED$') + lint_failures))
ignored=$(count 'ignored')
cannot=$(sort -u "$NFSCOPE_SKIPS" | grep -c .)
linted=$(grep -c ' ok$' $reports/lint.log)
unlinted=$(grep -c ' skipped: ' $reports/lint.log)
# A run that stopped without a result (a compile error) is a failure too.
[ "$cargo_status" != 0 ] && [ "$failed" = "$lint_failures" ] && failed=$((failed + 1))

echo
if [ $((ignored + cannot + unlinted)) -gt 0 ]; then
  echo "Skipped:"
  sort -u "$NFSCOPE_SKIPS" | sed 's/^/  /'
  grep ' skipped: ' $reports/lint.log | sed 's/^ */  /'
  sed -n 's/^test \(.*\) \.\.\. ignored,* *\(.*\)/  \1: ignored: \2/p' $log
fi
if [ "$failed" -gt 0 ]; then
  echo "Failed:"
  grep ' FAILED$' $reports/lint.log | sed 's/^ */  /; s/ \.\.\. FAILED//'
  sed -n 's/^test \(.*\) \.\.\. FAILED/  \1/p' $log
  grep -ho "logs are kept in [^ ]*" $log | sort -u | sed 's/^/  /'
fi
echo "$((passed - cannot + linted)) passed, $failed failed, $((ignored + cannot + unlinted)) skipped ($((SECONDS - started)) s)"
[ "$failed" = 0 ]
