#!/bin/bash
# Everything that has to hold: set-up, linters, the build that machines run, and every test - plain, root and virtual machine.
# Ends with `N passed, N failed, N skipped`.
#
#   tests/run.sh                    all of it
#   tests/run.sh --check            for daily work: no virtual machines, and no tests that take long (.config/nextest.toml, profile check)
#   tests/run.sh --kernel 6.12      of the machines only those of that kernel: their tests have it in their names
#   tests/run.sh --changed [BASE]   what the difference to BASE (default: HEAD, so what is not committed) can reach, by the table in
#                                   docs/develop/tests.md; --changed --list says what that is
#   tests/run.sh ARGUMENTS          those of cargo nextest run: tests/run.sh vm_6_12, tests/run.sh -E 'package(nfscope-model)'
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
started=$SECONDS
cache=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}

# Scope of the run: all tests or a nextest filter; whether tests that boot a machine can be among them; whether all other stages run,
# too.
filter='' machines=yes whole=yes profile=default
case ${1:-} in
-h | --help)
  sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
  exit
  ;;
--check)
  machines= profile=check
  shift
  ;;
--kernel)
  [ -n "${2:-}" ] || { echo "error: --kernel wants a kernel: tests/run.sh --kernel 6.12" >&2; exit 1; }
  filter="not test(/vm_/) or test(/vm_${2//./_}_/)"
  shift 2
  ;;
--changed)
  shift
  if [ "${1:-}" = --list ]; then
    tests/changed.sh --list "${2:-HEAD}"
    exit
  fi
  reached=$(tests/changed.sh "${1:-HEAD}") || exit 1
  [ -n "$reached" ] || { echo "Nothing has changed since ${1:-HEAD}."; exit 0; }
  read -r boots filter <<<"$reached"
  [ "$boots" = machines ] || machines=
  [ $# = 0 ] || shift
  ;;
esac
[ $# = 0 ] || whole=

if [ -n "$machines" ] && [ "$(id -u)" != 0 ]; then
  echo "error: tests load BPF programs and boot machines as root" >&2
  echo "  fix: sudo make test; make check needs no root, and skips what does" >&2
  exit 1
fi

reports=$PWD/target/test-reports
mkdir -p "$reports"
# Directories that failed runs left: <kernel>-<process>-<number> without such a process.
for dir in target/lab/*-*-*; do
  process=${dir%-*}
  [ -e "/proc/${process##*-}" ] || rm -rf "$dir"
done
rm -f "$reports"/{lint.log,seconds.tsv,checks,skips,build.log} target/nextest/$profile/junit.xml
touch "$reports"/{lint.log,skips,checks}
# Files into which tests write: the reasons of skipped tests (lab::skip), the checks of each machine (lab::Checks), and the CPU time
# of each machine, by its supervisor.
export NFSCOPE_SKIPS=$reports/skips NFSCOPE_CHECKS=$reports/checks LAB_CPU_SECONDS=$reports/cpu-seconds
rm -f "$LAB_CPU_SECONDS"
export RUST_BACKTRACE=${RUST_BACKTRACE:-0}

# Stages that failed outside of a test or a lint, by name.
broken=()
stages=

# stage <name> <title> <command...>: runs the command and notes its time. The next stages run after a failure, too, if they can.
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
  tests/lint.sh | tee "$reports/lint.log"
  # Findings of the linters are counted by their lines. A status that differs from that count means that the linters broke off.
  [ "${PIPESTATUS[0]}" = "$(grep -c ' FAILED$' "$reports/lint.log")" ] || broken+=("the linters broke off")
}

# The build goes on beside the rest of this script. Jobs of a shell ignore Ctrl-C; `env --default-signal` restores it.
build_begin() {
  env --default-signal=INT,QUIT cargo build --profile machines -p nfscope >"$reports/build.log" 2>&1 &
  building=$!
}

build_end() {
  wait $building || { cat "$reports/build.log"; return 1; }
}

nextest() { PATH=$cache/lab/nextest/bin:$PATH cargo nextest "$@"; }

tests() {
  local expression=()
  [ -z "$filter" ] || expression=(-E "$filter")
  nextest run --profile $profile --workspace --no-tests pass "${expression[@]}" "$@"
  # nextest exits with 100 if tests failed; the report names them.
  [[ $? == 0 || $? == 100 ]] || broken+=("cargo nextest")
  [ -e target/nextest/$profile/junit.xml ] || broken+=("no test has run")
  # nextest runs no examples of documentation; the lab has one.
  [ -z "$whole" ] || cargo test --quiet --doc -p lab || broken+=("cargo test --doc -p lab")
}

if [ -n "$machines" ]; then
  # A fresh machine downloads for minutes, and configures OpenZFS on one CPU: the build uses the other one.
  stage "set-up for the build" "Set-up for the build" tests/setup/setup.sh build || broken+=("tests/setup/setup.sh build")
  build_begin
  stage set-up "Set-up of the rest" tests/setup/setup.sh all || broken+=("tests/setup/setup.sh all")
else
  stage set-up "Set-up" tests/setup/setup.sh plain || broken+=("tests/setup/setup.sh plain")
fi
[ -z "$whole" ] || stage lint "Linters" lint
# A failed build of the tests fails the stage `tests`, too.
stage "test build" "Build of the tests" nextest run --workspace --no-run --cargo-quiet
if [ -n "$machines" ]; then
  # Machines would otherwise test an older build: without a new one none starts.
  stage build "Build for the machines, which has gone on meanwhile" build_end || { broken+=("the build for the machines; none was started"); filter="${filter:+($filter) and }not test(/vm_/)"; }
fi
stage tests "Tests (what passing ones said is in target/nextest/$profile/junit.xml)" tests "$@"

echo
unlinted=$(grep -c ' skipped: ' "$reports/lint.log")
cannot=$(sort -u "$reports/skips" | grep -c .)
if [ $((cannot + unlinted)) -gt 0 ]; then
  echo "Skipped:"
  sort -u "$reports/skips" | sed 's/^/  /'
  grep ' skipped: ' "$reports/lint.log" | sed 's/^ */  /'
fi
summary=$(tests/summary.py target/nextest/$profile/junit.xml "$LAB_CPU_SECONDS") || broken+=("tests/summary.py")
sed '$d' <<<"$summary"
read -r passed failed ignored < <(tail -n 1 <<<"$summary")
failed=$((failed + $(grep -c ' FAILED$' "$reports/lint.log") + ${#broken[@]}))
if [ "$failed" -gt 0 ]; then
  echo "Failed:"
  [ ${#broken[@]} = 0 ] || printf '  %s\n' "${broken[@]}"
  grep ' FAILED$' "$reports/lint.log" | sed 's/^ */  /; s/ \.\.\. FAILED//'
  sed -n 's/^\(check .*\) \.\.\. FAILED.*/  \1/p' "$reports/checks"
fi
[ ! -s "$reports/checks" ] || echo "Checks in machines: $(wc -l <"$reports/checks")"
echo "Seconds: $stages"
linted=$(grep -c ' ok$' "$reports/lint.log")
echo "$((passed - cannot + linted)) passed, $failed failed, $((ignored + cannot + unlinted)) skipped ($((SECONDS - started)) s)"
[ "$failed" = 0 ]
