# Debian's arm64 kernel and root for an emulated machine, and the tools that build nfscope for it. Sourced by setup.sh, after
# kernels.sh and qemu.sh.
#
# $lab/arm64/root/ is the machine's root file system: Debian's arm64 packages, unpacked and never installed. The cross compiler takes
# libraries and headers from it. $lab/arm64/qemu/ is the emulator. Both have `release`, written last: remove them to apply a change of
# their packages. The kernel is $lab/kernels/6.12-arm64/.

arm64_kernels=(
  "6.12-arm64 ^linux-image-6\.12\.[0-9]+\+deb12-arm64-unsigned$"
)
arm64_target=aarch64-unknown-linux-gnu
# Packages that every Debian has are named, too: nothing else would install them in this root.
arm64_root_packages=(
  base-files base-passwd bash dash coreutils sed grep mawk findutils util-linux mount hostname libc-bin netbase
  sysvinit-utils procps kmod iproute2 busybox-static
  nfs-kernel-server nfs-common rpcbind e2fsprogs xfsprogs btrfs-progs dmsetup bpftool fio
  libc6-dev libelf-dev zlib1g-dev
)
arm64_qemu_packages=(qemu-system-arm qemu-system-common qemu-system-data)

set_up_arm64() {
  step "An emulated arm64 machine (in $lab/arm64)"
  install_packages "arm64" gcc-aarch64-linux-gnu libc6-dev-arm64-cross
  mkdir -p "$lab/arm64"
  set_up_emulator "$lab/arm64/qemu" qemu-system-aarch64 "${arm64_qemu_packages[@]}"
  set_up_for_arm64
}

# This private apt knows only arm64, and takes no package for installed.
set_up_for_arm64() {
  local apt=$lab/arm64/apt apt_suites="bookworm bookworm-backports" private_lists_read=
  local apt_options=(-o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State::status="$lab/arm64/apt/status")
  mkdir -p "$apt"
  : >"$apt/status"
  add_arm64_rust
  set_up_unpacked arm64 "arm64's" unpack_arm64_root "root ${arm64_root_packages[*]}"
  set_up_unpacked kernels kernel unpack_kernel "${arm64_kernels[@]}"
  forget_private_packages
}

# Rust's standard library for arm64: rustup's, or the package beside Debian's own compiler.
add_arm64_rust() {
  local version
  [ "$(rustc --print sysroot)" != /usr ] || version=$(dpkg-query -W -f='${Version}' libstd-rust-web-dev)
  if [ -n "${version:-}" ]; then
    arm64_root_packages+=("libstd-rust-web-dev=$version")
  elif ! compgen -G "$(rustc --print target-libdir --target $arm64_target)/libstd-*" >/dev/null; then
    command -v rustup >/dev/null ||
      fail "Rust's standard library for arm64 is missing" "add it to $(command -v rustc): target $arm64_target"
    run "adding Rust's standard library for arm64" "rustup target add $arm64_target" rustup target add $arm64_target
  fi
}

unpack_arm64_root() {
  local name=$1 new=$lab/arm64/.$1.new
  shift
  rm -rf "$new" "${lab:?}/arm64/$name"
  mkdir -p "$new/packages/partial"
  run "arm64's root: downloading what $# packages need" "check the network, then run again" \
    private_apt apt-get -y --download-only --no-install-recommends -o Dir::Cache::archives="$new/packages" install "$@"
  run "arm64's root: unpacking" "check the space left: df -h $lab" unpack_root_into "$new"
  mv "$new" "$lab/arm64/$name"
}

# Scripts of the packages do not run. Their steps that a machine needs are done here.
unpack_root_into() (
  set -e
  cd "$1"
  for package in packages/*.deb; do dpkg -x "$package" .; done
  rm -rf packages usr/share/doc usr/share/man usr/share/locale
  cp usr/share/base-passwd/passwd.master etc/passwd
  cp usr/share/base-passwd/group.master etc/group
  echo "_rpc:x:101:65534::/run/rpcbind:/usr/sbin/nologin" >>etc/passwd
  echo "statd:x:102:65534::/var/lib/nfs:/usr/sbin/nologin" >>etc/passwd
  cp usr/share/nfs-common/conffiles/*.conf etc/
  rmdir var/run var/lock
  ln -s /run var/run
  ln -s /run/lock var/lock
  ln -s mawk usr/bin/awk
  ln -s /proc/self/mounts etc/mtab
  touch etc/exports
  mkdir -p mnt host
  cp "$here/../guest/arm64_init.sh" init
  chmod 755 init
  . etc/os-release
  echo "$PRETTY_NAME" >release
)
