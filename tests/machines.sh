#!/bin/bash
# Every test that boots a machine, each in a process of its own, two at a time whichever test program they are in: cargo
# runs one program after the other, and the last test of each would have the host to itself.
#
#   tests/machines.sh [FILTER]    (a part of the test's name: vm_7_2)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

# Those that take longest begin first, so that none is left alone at the end.
longest="vm_scenarios vm_phases vm_logs vm_baselines vm_zfs vm_matrix vm_measures vm_prometheus vm_coverage"

# name and path of each test program
programs() {
  # The whole workspace, as run.sh builds it: the packages by themselves would be built once more.
  cargo test --workspace --no-run --message-format=json | python3 -c '
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if m.get("executable") and m["target"]["kind"] == ["test"] and "/tests/tests/" in m["target"]["src_path"]:
        print(m["target"]["name"], m["executable"])'
}

# program and name of each test that boots a machine
tests() {
  local name path order
  while read -r name path; do
    order=${longest%%"$name"*}
    [ "$order" != "$longest" ] || order=$longest.
    "$path" --list --format terse 2>/dev/null | sed -n "s|^\(vm_.*\): test\$|${#order} $path \1|p"
  done | sort -n | cut -d' ' -f2-
}

# Runs one, and prints what it said at once.
one() {
  local path=$1 name=$2 out status
  out=$(mktemp)
  "$path" --exact "$name" >"$out" 2>&1
  status=$?
  # A test that was killed has no line of its own.
  grep -qE "^test $name \.\.\. (ok|FAILED|ignored)" "$out" || echo "test $name ... FAILED" >>"$out"
  flock "$0" cat "$out"
  rm -f "$out"
  return $status
}

if [ "${1:-}" = --one ]; then
  one "$2" "$3"
  exit
fi

list=$(programs) || exit 1
list=$(tests <<<"$list" | grep -- "${1:-}")
[ -n "$list" ] || { echo "no test is called so: ${1:-}" >&2; exit 1; }
echo "$(wc -l <<<"$list") tests"
xargs -P 2 -L 1 ./machines.sh --one <<<"$list"
