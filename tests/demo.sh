#!/bin/bash
# Installs missing packages, builds, and shows nfscope at work until Ctrl-C: on this host's NFS server, or on one in a virtual machine
# if this host has none. Arguments go to `lab run`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

threads=$(cat /proc/fs/nfsd/threads 2>/dev/null || echo 0)
if [ "$threads" -gt 0 ]; then
  echo "make run: builds nfscope, and shows its table and its page for this host's NFS server with $threads threads, until Ctrl-C."
else
  echo "make run: builds nfscope, starts an NFS server under load in a virtual machine, and shows its table and its page, until Ctrl-C."
fi
echo "The first time takes 7 minutes on two CPUs, and more where packages or a kernel must be downloaded first. Later, one minute is enough."
echo "It installs packages with apt as root. Only to look at nfscope: \`nfscope demo\` needs neither root nor a server."
if [ "$threads" -gt 0 ]; then
  tests/setup/setup.sh build
else
  # ZFS takes long to compile; without an argument the machine exports ext4.
  case "$*" in *zfs*) tests/setup/setup.sh all ;; *) tests/setup/setup.sh build machines ;; esac
fi
echo "==> Building"
cargo build --profile machines -p nfscope -p lab
echo "==> Running"
exec target/machines/lab run "$@"
