#!/bin/bash
# Installs what is missing, builds, and shows nfscope at work until Ctrl-C: on this host's NFS server, or on one in a
# virtual machine where this host has none. Arguments go to `lab run`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

threads=$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)
if [ "$threads" -gt 0 ]; then
  deploy/setup.sh build
else
  deploy/setup.sh all
fi
echo "==> Building"
cargo build --release -p nfscope -p lab
echo "==> Running"
exec target/release/lab run "$@"
