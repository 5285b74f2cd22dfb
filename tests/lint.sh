#!/bin/bash
# Formatting and lints: rustfmt, clippy, a check for illumos, clang-format, shell syntax. With --fix, formats instead of checking.
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
# What has no probes to load is meant for illumos, too. Its part of the build is checked and never linked, so that the
# host's own C compiler will do for SQLite.
illumos=x86_64-unknown-illumos
illumos_packages=(nfscope-model nfscope-text nfscope-stats nfscope-whatif nfscope-diagnose nfscope-baseline nfscope)
if compgen -G "$(rustc --print target-libdir --target $illumos 2>/dev/null)/libstd-*" >/dev/null; then
  check "cargo check for illumos" "see each message" env CC_x86_64_unknown_illumos=cc AR_x86_64_unknown_illumos=ar \
    cargo check --quiet --target $illumos "${illumos_packages[@]/#/--package=}"
else
  skip "cargo check for illumos" "Rust's standard library for it is missing: rustup target add $illumos"
fi
syntax() { for file in "$@"; do bash -n "$file" || return; done; }
check "shell syntax" "see the message" syntax "${shell_files[@]}"
exit $failed
