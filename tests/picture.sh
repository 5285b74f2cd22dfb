#!/bin/bash
# Takes docs/img/page-light.png and page-dark.png from a report of the demonstration. The picture of `top` is a test's:
# UPDATE_GOLDEN=1 cargo test -p nfscope --test main picture
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tests/setup/setup.sh build browser
cargo build --release -p nfscope
nfscope=$PWD/target/release/nfscope
dir=$(mktemp -d)
"$nfscope" demo >"$dir/said" &
demo=$!
trap 'kill "$demo" 2>/dev/null; rm -rf "$dir"' EXIT
until url=$(sed -n '1s|/#.*||p' "$dir/said") && [ -n "$url" ] && "$nfscope" report --last 1d --url "$url" "$dir/report.html" >/dev/null 2>&1; do
  kill -0 "$demo"
  sleep 1
done
"${NFSCOPE_CACHE:-$HOME/.cache/nfscope/lab}/browser/bin/python" tests/browser/page_picture.py "$dir/report.html" docs/img
