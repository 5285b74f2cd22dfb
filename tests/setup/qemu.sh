# The emulator of the lab's machines: that of Debian's backports, unpacked beside the one that is installed. It forks twice as
# fast in a machine. Sourced by setup.sh; uses the private apt of kernels.sh.

# The suite whose QEMU runs with the installed one's libraries.
qemu_suite=bookworm-backports
qemu_packages=(qemu-system-x86 qemu-system-common qemu-system-data seabios)

# $lab/qemu/ has usr/ as the packages ship it, and `release`, written last.
set_up_qemu() {
  local new=$lab/.qemu.new
  if [ -e "$lab/qemu/release" ]; then
    have "QEMU $(<"$lab/qemu/release") is unpacked"
    return
  fi
  read_private_lists
  rm -rf "$new" "$lab/qemu"
  mkdir -p "$new"
  run "QEMU of $qemu_suite: downloading" "check the network, then run again" \
    download_into "$new" "${qemu_packages[@]/%//$qemu_suite}"
  run "QEMU of $qemu_suite: unpacking" "check the space left: df -h $lab, and that it runs: the end of $log" unpack_qemu "$new"
  mv "$new" "$lab/qemu"
}

unpack_qemu() (
  set -e
  cd "$1"
  for package in *.deb; do dpkg -x "$package" .; done
  rm -rf ./*.deb usr/share/doc usr/share/man
  usr/bin/qemu-system-x86_64 --version | sed -n '1s/.*version \([^ ]*\).*/\1/p' >release.new
  grep -q . release.new
  mv release.new release
)
