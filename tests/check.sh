# Sourced by tests of packages and releases.
#
# check <name> <command...>: runs a check of the suite $suite, prints its result, and counts failures in $failed.
check() {
  local name=$1 output
  shift
  if output=$("$@" 2>&1); then
    echo "check $suite $name ... ok"
  else
    echo "check $suite $name ... FAILED"
    printf '%s\n' "$output" | tail -n 40 | sed 's/^/  | /'
    failed=$((failed + 1))
  fi
}
