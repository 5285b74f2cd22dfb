#!/bin/bash
# Everything that has to hold: set-up, linters, the release build, and every test - plain, root and virtual machine.
# Ends with `N passed, N failed, N skipped`.
#
#   tests/run.sh                  all of it
#   tests/run.sh --check          what needs no virtual machine, for daily work
#   tests/run.sh --kernel 6.12    of the machines only those of that kernel: their tests have it in their names
#   tests/run.sh ARGUMENTS        cargo test's: tests/run.sh -p lab vm_6_12
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS

machines=vm_
case ${1:-} in
-h | --help)
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
  exit
  ;;
--check)
  machines=
  shift
  ;;
--kernel)
  [ -n "${2:-}" ] || { echo "error: --kernel wants a kernel: tests/run.sh --kernel 6.12" >&2; exit 1; }
  machines=vm_${2//./_}_
  shift 2
  ;;
esac

if [ -n "$machines" ] && [ "$(id -u)" != 0 ]; then
  echo "error: tests load BPF programs and boot machines as root" >&2
  echo "  fix: sudo make test; make check needs no root, and skips what does" >&2
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
rm -f $reports/lint.log $reports/seconds.tsv
# Tests that find that they cannot run write why into this file (lab::skip).
export NFSCOPE_SKIPS=$PWD/$reports/skips
: >"$NFSCOPE_SKIPS"
# A machine runs many checks, and each writes a line into the file that NFSCOPE_CHECKS names (lab::Checks).
checks=$PWD/$reports/checks
: >"$checks"
export RUST_BACKTRACE=${RUST_BACKTRACE:-0}

# What failed outside of a test or a lint, by name.
broken=()
stages=

# stage <name> <title> <command...>: runs it and notes how long it took. A stage that fails hides none that can go on
# without it.
stage() {
  local name=$1 title=$2 began=$SECONDS status
  shift 2
  echo "==> $title"
  "$@"
  status=$?
  stages+="${stages:+, }$name $((SECONDS - began))"
  return $status
}

lint() {
  tests/lint.sh | tee $reports/lint.log
  # What a linter found is counted by its line; without a line it has broken off.
  [ "${PIPESTATUS[0]}" = "$(grep -c ' FAILED$' $reports/lint.log)" ] || broken+=("the linters broke off")
}

# Beside the rest of this script, and yet ended by Ctrl-C, which a shell's jobs ignore.
beside() { env --default-signal=INT,QUIT "$@"; }

# Most of the release build keeps one CPU busy: set-up, linters, and the build of the tests, have the other one meanwhile.
release_build() {
  beside cargo build --release -p nfscope >$reports/build.log 2>&1 &
  building=$!
}

release_built() {
  wait $building || { cat $reports/build.log; return 1; }
}

# cargo_tests <arguments of cargo test>
cargo_tests() {
  local before failed
  before=$(count 'FAILED$')
  cargo test --workspace --no-fail-fast "$@" 2>&1 | tee -a $log
  if [ "${PIPESTATUS[0]}" != 0 ]; then
    failed=$(count 'FAILED$')
    # A run without a result is a failure, too.
    [ "$failed" != "$before" ] || broken+=("cargo test ended without a failed test: a compile error, or a test program that died")
  fi
}

# Machines that count instructions take what CPU time plain tests leave; the others begin when these have ended.
machine_tests_begin() {
  rm -f $reports/plain-tests-ended
  NFSCOPE_CHECKS=$checks LAB_OWNER=$$ LAB_TIMED_AFTER=$PWD/$reports/plain-tests-ended \
    beside tests/machines.sh "$machines" >$reports/machines.log 2>&1 &
  machines_run=$!
  # Their machines are gone when this script is.
  trap 'wait $machines_run; exit 130' INT
}

machine_tests() {
  local before
  before=$(count 'FAILED$')
  touch $reports/plain-tests-ended
  tail -n +1 -f --pid $machines_run $reports/machines.log | tee -a $log
  wait $machines_run || [ "$(count 'FAILED$')" != "$before" ] || broken+=("tests/machines.sh ended without a failed test")
}

# Counted by test, not by the totals: a test program with a harness of its own prints none.
count() { grep -cE "^test .* \.\.\. $1" $log; }

if [ -n "$machines" ]; then
  # A fresh machine downloads for minutes, and configures OpenZFS on one CPU: the release build has the other one.
  stage "set-up for the build" "Set-up for the build" tests/setup/setup.sh build || broken+=("tests/setup/setup.sh build")
  release_build
  stage set-up "Set-up of the rest" tests/setup/setup.sh all || broken+=("tests/setup/setup.sh all")
else
  stage set-up "Set-up" tests/setup/setup.sh build lint monitoring browser dtrace || broken+=("tests/setup/setup.sh build lint monitoring browser dtrace")
fi
stage lint "Linters" lint
# Where it fails, the tests say so.
stage "test build" "Build of the tests" cargo test --workspace --no-run --quiet
if [ -n "$machines" ]; then
  # An older build would be tested in its place: without a new one no machine starts.
  stage build "Release build, which has gone on meanwhile" release_built || { broken+=("the release build; no machine was started"); machines=; }
fi
if [ $# -gt 0 ]; then
  # One test owns one machine at most, so two threads keep both slots busy.
  RUST_TEST_THREADS=2 NFSCOPE_CHECKS=$checks stage tests "Tests (output of passing tests is in $log)" cargo_tests "$@"
else
  [ -z "$machines" ] || machine_tests_begin
  # Most of them wait for processes and clocks, and hardly compute.
  RUST_TEST_THREADS=8 stage "plain tests" "Tests without machines (output of passing tests is in $log)" cargo_tests -- --skip vm_
  [ -z "$machines" ] || stage machines "Tests with machines, two at a time" machine_tests
fi

# Of each test that said why it failed: the beginning and the end of what it said from its panic on, without backtraces. So the end of
# the output is enough to work on.
reasons() {
  awk -v first=3 -v last=12 '
    function said(  i) {
      if (test == "") return
      print "  " test ":"
      for (i = from ? from : 1; i <= n; i++) {
        if (i == from + first && n - i > last) { print "      ..."; i = n - last + 1 }
        print "      " substr(line[i], 1, 400)
      }
      test = ""
    }
    /^---- .* stdout ----$/ { said(); test = $2; n = from = traced = 0; next }
    /^failures:$|^test result:/ { said() }
    /^stack backtrace:$/ { traced = 1; next }
    traced && !/^ +[0-9]+: / && !/^ +at / { traced = 0 }
    traced || test == "" || !NF || /^note: run with/ { next }
    { line[++n] = $0; if (!from && / panicked at /) from = n }
    END { said() }' $log
}

passed=$(count 'ok$')
failed=$(($(count 'FAILED$') + $(grep -c ' FAILED$' $reports/lint.log) + ${#broken[@]}))
ignored=$(count 'ignored')
cannot=$(sort -u "$NFSCOPE_SKIPS" | grep -c .)
linted=$(grep -c ' ok$' $reports/lint.log)
unlinted=$(grep -c ' skipped: ' $reports/lint.log)

echo
if [ $((ignored + cannot + unlinted)) -gt 0 ]; then
  echo "Skipped:"
  sort -u "$NFSCOPE_SKIPS" | sed 's/^/  /'
  grep ' skipped: ' $reports/lint.log | sed 's/^ */  /'
  sed -n 's/^test \(.*\) \.\.\. ignored,* *\(.*\)/  \1: ignored: \2/p' $log
fi
sed -n '/^The slowest (seconds/,$p' $log
if [ "$failed" -gt 0 ]; then
  echo "Failed:"
  [ ${#broken[@]} = 0 ] || printf '  %s\n' "${broken[@]}"
  grep ' FAILED$' $reports/lint.log | sed 's/^ */  /; s/ \.\.\. FAILED//'
  sed -n 's/^test \(.*\) \.\.\. FAILED/  \1/p' $log
  sed -n 's/^\(check .*\) \.\.\. FAILED.*/    \1/p' "$checks"
  grep -ho "logs are kept in [^ ]*" $log | sort -u | sed 's/^/  /'
  reasons
fi
[ ! -s "$checks" ] || echo "Checks in machines: $(wc -l <"$checks")"
echo "Seconds: $stages"
echo "$((passed - cannot + linted)) passed, $failed failed, $((ignored + cannot + unlinted)) skipped ($((SECONDS - started)) s)"
[ "$failed" = 0 ]
