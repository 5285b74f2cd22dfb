#!/bin/bash
# Prints the tests that the difference to a commit can reach, as a filter of cargo nextest, by the table in docs/develop/tests.md. Its
# rows are path, filter and minutes. A path takes the longest row that fits; a path without a row reaches everything. The word
# `machines` or `plain` stands in front of the filter: whether tests that boot a machine can be among them.
#
#   tests/changed.sh [--list] BASE    (--list: each changed path with its filter)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

list=
[ "$1" != --list ] || { list=yes; shift; }
git rev-parse --verify --quiet "$1^{commit}" >/dev/null || { echo "error: there is no commit $1" >&2; exit 1; }

{ git diff --name-only "$1" --; git ls-files --others --exclude-standard; } | sort -u | awk -F ' *[|] *' -v list=$list '
  FNR == NR { if ($2 ~ /^`.*`$/ && $3 ~ /^`.*`$/ && NF == 5) { gsub(/`/, ""); filter[$2] = $3 }; next }
  {
    best = ""
    for (path in filter) if (index($0, path) == 1 && length(path) > length(best)) best = path
    reached = best == "" ? "all()" : filter[best]
    if (list) print $0 ": " reached
    else if (!(reached in seen)) { seen[reached]; all = all (all == "" ? "" : " or ") "(" reached ")" }
    if (reached !~ /and not test\(\/vm_\/\)$/) boots = 1
  }
  END { if (!list && all != "") print (boots ? "machines " : "plain ") all }' docs/develop/tests.md -
