#!/bin/bash
# Every test that boots a machine, each in a process of its own, two at a time whichever test program they are in: cargo
# runs one program after the other, and the last test of each would have the host to itself. A third machine runs besides,
# one that counts instructions: no time of the host is measured in it, so that it can have the lowest priority, and takes
# the CPU time that the others do not use.
#
#   tests/machines.sh [FILTER]    (a part of the test's name: vm_7_2)
#
# LAB_TIMED_AFTER=FILE: until that file is there, only the machine that counts runs. Where LAB_OWNER=PID is gone before that, the
# others never do.
#
# LAB_FLAVOUR=rt or arm64, LAB_CPUS=8 and LAB_KERNEL_ARGS="..." change every machine of a run: docs/develop/lab.md.
#
# The cache directory keeps how long each test took when it passed last. The longest begin first, so that none is left
# alone at the end.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# <test> <seconds> <seconds of CPU time that its machines used>
record=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}/lab/seconds.tsv
# The same for the tests of this run, whether they passed or not.
ran=${LAB_SECONDS:-$PWD/../target/test-reports/seconds.tsv}

# Tests whose machines count instructions.
counting='^vm_(scenarios|baselines|experiment|ssd_log|versions)::'

# On a machine that has no record yet, what has these in its name is long.
long='scenario|cause|operations|logs|baselines|zfs|prometheus|ssd'

# path of each test program of the lab
programs() {
  # The whole workspace, as run.sh builds it: the package by itself would be built once more.
  cargo test --workspace --no-run --message-format=json | python3 -c '
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("executable") and m["profile"]["test"] and m["manifest_path"].endswith("/tests/Cargo.toml"):
        print(m["executable"])'
}

# name of each test that boots a machine, and path of its program: exactly those that run.sh leaves out of the others
tests() {
  local path
  while read -r path; do
    "$path" --list --format terse 2>/dev/null | sed -n "s|^\(.*vm_.*\): test\$|\1 $path|p"
  done
}

longest_first() {
  local last=/dev/null
  [ ! -e "$record" ] || last=$record
  awk -v long="$long" '
    FILENAME == ARGV[1] { seconds[$1] = $2; next }
    { print $1 in seconds ? seconds[$1] : 100000 + ($0 ~ long), $0 }' "$last" - | sort -rn | cut -d' ' -f2-
}

# Runs one, and prints what it said at once.
one() {
  local name=$1 path=$2 out status seconds cpu started=$EPOCHREALTIME
  out=$(mktemp)
  LAB_CPU_SECONDS=$out.cpu "$path" --exact "$name" >"$out" 2>&1
  status=$?
  seconds=$(awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  cpu=$(cat "$out.cpu" 2>/dev/null | awk '{ cpu += $1 } END { printf "%.1f", cpu }')
  # A test that was killed has no line of its own.
  grep -qE "^test $name \.\.\. (ok|FAILED|ignored)" "$out" || echo "test $name ... FAILED" >>"$out"
  (
    flock 9
    cat "$out"
    echo "$name took $seconds s; its machines used $cpu s of CPU time"
    printf '%s\t%s\t%s\n' "$name" "$seconds" "$cpu" >>"$ran"
    if [ $status = 0 ] && [ -z "${LAB_FLAVOUR:-}${LAB_CPUS:-}${LAB_KERNEL_ARGS:-}" ]; then
      { grep -v "^$name	" "$record"; tail -n 1 "$ran"; } 2>/dev/null >"$record.new"
      mv "$record.new" "$record"
    fi
  ) 9<machines.sh
  rm -f "$out" "$out.cpu"
  return $status
}

# Takes tests off the lists that are named, the first list first, and runs them until nothing is left.
worker() {
  local list next failed=0
  for list; do
    while next=$(take "$list") && [ -n "$next" ]; do
      # shellcheck disable=SC2086 # a test and its program
      one $next || failed=1
    done
  done
  return $failed
}

# Where something else uses the host, and what is timed must not run beside it.
wait_for_the_host() {
  while [ -n "${LAB_TIMED_AFTER:-}" ] && [ ! -e "$LAB_TIMED_AFTER" ]; do
    [ -e "/proc/${LAB_OWNER:-self}" ] || exit 1
    sleep 1
  done
}

# take <list>: its first line, which it has no longer
take() {
  (
    flock 9
    head -n 1 "$1"
    sed -i 1d "$1"
  ) 9<machines.sh
}

if [ "${1:-}" = --worker ]; then
  shift
  [[ $1 != */timed ]] || wait_for_the_host
  worker "$@"
  exit
fi

mkdir -p "$(dirname "$record")" "$(dirname "$ran")"
: >"$ran"
[ -z "${LAB_FLAVOUR:-}" ] || ./setup/setup.sh "$LAB_FLAVOUR" || exit 1
# shellcheck disable=SC2086 # words
[ "${LAB_FLAVOUR:-}" != arm64 ] || ./arm64.sh ${NFSCOPE_BIN:+-p lab} || exit 1
list=$(programs) || exit 1
list=$(tests <<<"$list" | grep -- "${1:-}" | longest_first)
[ -n "$list" ] || { echo "no test is called so: ${1:-}" >&2; exit 1; }
echo "$(wc -l <<<"$list") tests"
lists=$(mktemp -d)
trap 'rm -rf "$lists"' EXIT
grep -vE "$counting" <<<"$list" >"$lists/timed"
grep -E "$counting" <<<"$list" >"$lists/counting"
xargs -P 3 -L 1 ./machines.sh --worker <<END
$lists/timed $lists/counting
$lists/timed $lists/counting
$lists/counting
END
status=$?
echo "The slowest (seconds, and of CPU time):"
sort -t$'\t' -k2,2rn "$ran" | head -n 10 | awk -F'\t' '{ printf "  %7.1f %7.1f  %s\n", $2, $3, $1 }'
exit $status
