# libbpf-tools, with which nfscope's cost is compared: Debian's package, unpacked and never installed. Sourced by setup.sh, after
# kernels.sh.

# $lab/libbpf-tools/ has usr/ as the package ships it, and `release`, written last.
set_up_bench() {
  local new=$lab/.libbpf-tools.new
  step "What make bench compares with (in $lab)"
  install_packages "bench" bpftool
  if [ -e "$lab/libbpf-tools/release" ]; then
    have "libbpf-tools $(<"$lab/libbpf-tools/release") is unpacked"
    return
  fi
  read_private_lists
  rm -rf "$new" "$lab/libbpf-tools"
  mkdir -p "$new"
  run "libbpf-tools: downloading" "check the network, then run again" download_into "$new" libbpf-tools/bookworm
  run "libbpf-tools: unpacking" "check the space left: df -h $lab" unpack_libbpf_tools "$new"
  mv "$new" "$lab/libbpf-tools"
}

unpack_libbpf_tools() (
  set -e
  cd "$1"
  for package in *.deb; do
    dpkg-deb -f "$package" Version >release.new
    dpkg -x "$package" .
  done
  rm -rf ./*.deb usr/share
  mv release.new release
)
