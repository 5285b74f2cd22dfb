# Debian's Chromium, and the library that drives it to test the page. Sourced by setup.sh.
#
# $lab/browser/ is a Python environment of its own. Playwright brings no browser: it drives the installed one.

playwright=1.65.2
# Without a font Chromium draws no text.
browser_packages=(chromium fonts-dejavu-core python3 python3-venv)

set_up_browser() {
  step "What tests the page in a browser (in $lab)"
  install_packages "browser" "${browser_packages[@]}"
  set_up_python "$lab/browser" playwright "$playwright" playwright
}
