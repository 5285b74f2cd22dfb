#!/bin/bash
# Formatting and lints: rustfmt, clippy, a check for illumos, clang-format, systemd's rating of the unit,
# words of added lines, cargo deny, dashboard-linter, shell syntax. With --fix, formats instead of checking.
# The last line of each check is `ok`, `FAILED` or `skipped: <why>`; the exit status is the number of failures.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
check() { # check <name> <fix> <command...>
  local name=$1 fix=$2 output
  shift 2
  printf '    %s ... ' "$name"
  if output=$("$@" 2>&1); then
    echo ok
  else
    echo FAILED
    printf '%s\n' "$output" | tail -n 60 | sed 's/^/      | /'
    printf '      fix: %s\n' "$fix"
    failed=$((failed + 1))
  fi
}
skip() { printf '    %s ... skipped: %s\n' "$1" "$2"; }

mapfile -t c_files < <(git ls-files --cached --others --exclude-standard 'probes/**/*.c' 'probes/**/*.h' | sort -u)
mapfile -t shell_files < <(git ls-files --cached --others --exclude-standard '*.sh' '.ci/*' | sort -u)

if [ "${1:-}" = --fix ]; then
  cargo fmt --all
  [ ${#c_files[@]} = 0 ] || clang-format -i --style=file "${c_files[@]}"
  exit
fi

# Crates that load no probes are meant for illumos, too. Their build is checked and never linked, so that the host's own C compiler is
# enough for SQLite. It has a directory and a lock of its own, and runs beside clippy.
illumos=x86_64-unknown-illumos
illumos_packages=(nfscope-model nfscope-text nfscope-stats nfscope-whatif nfscope-diagnose nfscope-baseline nfscope)
illumos_said=target/illumos-check.txt illumos_check=
if compgen -G "$(rustc --print target-libdir --target $illumos 2>/dev/null)/libstd-*" >/dev/null; then
  mkdir -p target
  env --default-signal=INT,QUIT CC_x86_64_unknown_illumos=cc AR_x86_64_unknown_illumos=ar \
    cargo check --quiet --target $illumos "${illumos_packages[@]/#/--package=}" >$illumos_said 2>&1 &
  illumos_check=$!
fi
illumos_ended() { cat $illumos_said; return "$illumos_status"; }

if cargo fmt --version >/dev/null 2>&1; then
  check rustfmt "make fmt" cargo fmt --all --check
else
  skip rustfmt "cargo fmt is missing"
fi
if cargo clippy --version >/dev/null 2>&1; then
  check clippy "see each message" cargo clippy --quiet --workspace --all-targets -- -D warnings
else
  skip clippy "cargo clippy is missing"
fi
if [ ${#c_files[@]} = 0 ]; then
  skip clang-format "there are no C files in probes/"
elif [ ! -e .clang-format ] && [ ! -e probes/.clang-format ]; then
  skip clang-format "there is no .clang-format"
else
  check clang-format "make fmt" clang-format --style=file --dry-run --Werror "${c_files[@]}"
fi
if [ -n "$illumos_check" ]; then
  wait "$illumos_check"
  illumos_status=$?
  check "cargo check for illumos" "see each message" illumos_ended
else
  skip "cargo check for illumos" "Rust's standard library for it is missing: rustup target add $illumos"
fi
if git rev-parse --verify --quiet HEAD >/dev/null; then
  check "words of added lines" "docs/develop/words.md" tests/words.py
else
  skip "words of added lines" "there is no repository here"
fi
# systemd's rating of the unit's exposure: 0 is none, 10 is full. docs/install.md has the rating.
exposure() {
  local said=target/exposure.txt rated
  mkdir -p target
  systemd-analyze verify --man=no deploy/systemd/nfscope.service 2>&1 | grep -v 'nfscope is not executable' && return 1
  systemd-analyze security --offline=true --threshold=25 --no-pager deploy/systemd/nfscope.service >$said 2>&1 || { tail -n 2 $said; return 1; }
  rated=$(sed -n 's/.*exposure level.*: \([0-9.]*\) .*/\1/p' $said)
  grep -qF "exposure $rated of 10" docs/install.md || { echo "the rating is $rated, which docs/install.md does not say"; return 1; }
}
# systemd before 250 can only rate units that run.
if systemd-analyze --help 2>/dev/null | grep -q -- --offline; then
  check "systemd unit (exposure at most 2.5)" "see each message" exposure
else
  skip "systemd unit" "systemd-analyze security --offline is missing (systemd 250 or later)"
fi
PATH=$PATH:${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}/lab/lint/bin
if ! cargo deny --version >/dev/null 2>&1; then
  skip "cargo deny" "cargo-deny is missing: tests/setup/setup.sh lint, or cargo install --locked cargo-deny"
elif cargo metadata --offline --locked --format-version 1 2>&1 >/dev/null | grep -q 'failed to download'; then
  skip "cargo deny" "libraries of other platforms are not in cargo's cache: tests/setup/setup.sh lint, or cargo fetch --locked"
else
  check "cargo deny: licences, bans, sources" "see each message, or deny.toml" cargo deny --offline --log-level error check licenses bans sources
  # RustSec's advisories come by git; a host without that network uses an existing copy.
  if compgen -G "${CARGO_HOME:-$HOME/.cargo}/advisory-db*/*" >/dev/null; then
    check "cargo deny: advisories" "update the crate, or say in deny.toml why it is no danger" \
      cargo deny --offline --log-level error check advisories
  else
    skip "cargo deny: advisories" "no copy of RustSec's advisories is on this host: cargo deny fetch db"
  fi
fi
# Grafana's own linter. Its rules are also in tests/tests/monitoring/linter.rs, which does not need the program.
if command -v dashboard-linter >/dev/null; then
  linted() { for file in dashboards/grafana/*.json; do dashboard-linter lint --strict "$file" || return; done; }
  check "dashboard-linter" "see each message" linted
else
  skip "dashboard-linter" "it is missing: go install github.com/grafana/dashboard-linter@v0.2.0 (its rules are tested without it)"
fi
syntax() { for file in "$@"; do bash -n "$file" || return; done; }
check "shell syntax" "see the message" syntax "${shell_files[@]}"
exit $failed
