# Messages of set-up and test scripts: one line per step, a running clock for slow steps, and errors with a fix. Sourced; $log is the
# file for the output of the commands.

step() { printf '==> %s\n' "$*"; }
have() { printf '    ok: %s\n' "$*"; }
warn() { printf '    warning: %s\n             fix: %s\n' "$1" "$2" >&2; }

fail() { # fail <what is wrong> <the fix>
  printf 'error: %s\n  fix: %s\n' "$1" "$2" >&2
  exit 1
}

# run <what is being done> <fix if it fails> <command...>
# The command's output goes to $log; after two seconds a clock shows that it is alive.
run() {
  local what=$1 fix=$2 started=$SECONDS shown=0 pid
  shift 2
  printf '    %s ...' "$what"
  printf -- '--- %s: %s\n' "$what" "$*" >>"$log"
  "$@" >>"$log" 2>&1 9>&- </dev/null &
  pid=$!
  while kill -0 $pid 2>/dev/null; do
    sleep 0.1
    local elapsed=$((SECONDS - started))
    if [ $elapsed -ge $((shown + 2)) ]; then
      shown=$elapsed
      if [ -t 1 ]; then
        printf '\r    %s ... %d s' "$what" $elapsed
      elif [ $((elapsed / 10)) -gt $(((elapsed - 2) / 10)) ] || [ $elapsed -lt 4 ]; then
        printf ' %d s' $elapsed
      fi
    fi
  done
  if wait $pid; then
    printf ' done\n'
    return
  fi
  printf ' failed\n'
  tail -n 15 "$log" | sed 's/^/      | /' >&2
  fail "$what: the command failed ($1; all output is in $log)" "$fix"
}
