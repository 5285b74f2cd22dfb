# The emulator of the lab's machines, from Debian's backports, unpacked beside the installed one. It forks twice as fast in a machine.
# Sourced by setup.sh; uses the private apt of kernels.sh.

# This suite's QEMU runs with the libraries of the installed one.
qemu_suite=bookworm-backports
qemu_packages=(qemu-system-x86 qemu-system-common qemu-system-data seabios)

# $lab/qemu/ has usr/ as the packages ship it, and `release`, written last.
set_up_qemu() {
  set_up_emulator "$lab/qemu" qemu-system-x86_64 "${qemu_packages[@]}"
}

# set_up_emulator <directory> <program> <package>...
set_up_emulator() {
  local dir=$1 program=$2 new=${1%/*}/.${1##*/}.new
  shift 2
  if [ -e "$dir/release" ]; then
    have "$program $(<"$dir/release") is unpacked"
    return
  fi
  read_private_lists
  rm -rf "$new" "$dir"
  mkdir -p "$new"
  run "$program of $qemu_suite: downloading" "check the network, then run again" \
    download_into "$new" "${@/%//$qemu_suite}"
  run "$program of $qemu_suite: unpacking" "check the space left: df -h $lab, and that it runs: the end of $log" \
    unpack_emulator "$new" "$program"
  mv "$new" "$dir"
}

unpack_emulator() (
  set -e
  cd "$1"
  for package in *.deb; do dpkg -x "$package" .; done
  rm -rf ./*.deb usr/share/doc usr/share/man
  "usr/bin/$2" --version | sed -n '1s/.*version \([^ ]*\).*/\1/p' >release.new
  grep -q . release.new
  mv release.new release
)
