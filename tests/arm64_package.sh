#!/bin/bash
# Tests the program of the arm64 packages: it has no interpreter and needs no library, deb, rpm and tar have the same one, and an
# emulated machine with Debian's arm64 kernel and a real nfsd runs the lab's tests with it.
#
#   tests/arm64_package.sh [FILTER]    (a part of the tests' names; without it every operation, counted as the kernel counts)
#
# deploy/packages/build.sh aarch64 builds the packages.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

out=target/packages unpacked=$PWD/target/packages/arm64
rm -rf "$unpacked"
mkdir -p "$unpacked/rpm" "$unpacked/tar"
deb=$(ls $out/nfscope_*_arm64.deb) || { echo "  fix: deploy/packages/build.sh aarch64" >&2; exit 1; }
dpkg-deb -x "$deb" "$unpacked"
program=$unpacked/usr/bin/nfscope
readelf -h "$program" | grep 'Machine: *AArch64'
if readelf -ld "$program" | grep -E 'INTERP|NEEDED'; then
  echo "error: $program is not static" >&2
  exit 1
fi
# rpm2cpio exits with 1, because cargo-generate-rpm does not write the size that it compares with.
rpm2cpio $out/nfscope-*.aarch64.rpm >"$unpacked/rpm.cpio" || :
(cd "$unpacked/rpm" && cpio --quiet -id ./usr/bin/nfscope <"$unpacked/rpm.cpio")
tar -xzf $out/nfscope-*-linux-aarch64.tar.gz -C "$unpacked/tar" --strip-components=1
cmp "$program" "$unpacked/rpm/usr/bin/nfscope"
cmp "$program" "$unpacked/tar/nfscope"
echo "check arm64 the program is static, and the same in deb, rpm and tar ... ok"

NFSCOPE_BIN=$program LAB_FLAVOUR=arm64 tests/machines.sh "${1:-vm_6_12_operations}"
