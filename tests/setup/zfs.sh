# OpenZFS for two of the lab's kernels, built from Debian's packages. Sourced by setup.sh, after kernels.sh.
#
# ZFS is under the CDDL: its modules together with a kernel may be used, but not passed on. They are therefore only built here, into
# the user's own cache, and are part of nothing that nfscope ships.
#
# $lab/zfs/<kernel>/ has modules/ (stripped), user/ (zpool, zfs and their libraries) and, written last, `release`:
# the versions of ZFS and of the kernel that they were built for. A module fits that one kernel only.

# Kernel, and the version of Debian's zfs-linux as an extended regular expression: the newest match is taken. 6.1 gets the version of
# Debian 12, 6.12 that of Debian 12 with a kernel from backports.
zfs_kernels=(
  "6.12 ~bpo12\+"
  "6.1 ^2\.1\."
)
# gcc-12 built the kernels.
zfs_packages=(gcc gcc-12 libc6-dev make binutils file python3 pahole libblkid1 libuuid1 libudev1 libssl3)

set_up_zfs() {
  step "OpenZFS for the lab's machines (in $lab/zfs)"
  local entry name kernel built wanted=()
  for entry in "${zfs_kernels[@]}"; do
    name=${entry%% *}
    [ -e "$lab/kernels/$name/release" ] || fail "there is no kernel $name to build OpenZFS for" "tests/setup/setup.sh lab"
    kernel=$(<"$lab/kernels/$name/release")
    built=$(cat "$lab/zfs/$name/release" 2>/dev/null || true)
    if [ "${built##* }" = "$kernel" ]; then
      have "OpenZFS ${built% *} is built for $kernel"
    else
      wanted+=("$entry")
    fi
  done
  [ ${#wanted[@]} = 0 ] && return
  install_packages "OpenZFS" "${zfs_packages[@]}"
  read_private_lists
  for entry in "${wanted[@]}"; do
    # shellcheck disable=SC2086 # an entry is words
    build_zfs $entry
  done
}

# Version of the package by which an unpacked kernel was built. Headers of another build with the same release would compile as well,
# but then the modules' BTF, which is numbered on from the kernel's, might not fit.
kernel_version() {
  file -b "$lab/kernels/$1/boot/vmlinuz-"* | sed -nE 's/.* Debian ([^ ]+) .*/\1/p'
}

# <package>=<version> of a package's dependencies whose names match.
depends_on() { # depends_on <package> <version> <extended regular expression>
  private_apt apt-cache show "$1=$2" | sed -n 's/^Depends: //p' | head -n1 | tr ',|' '\n\n' | awk '{ print $1 }' |
    grep -E "$3" | sed "s/\$/=$2/"
}

build_zfs() {
  local name=$1 pattern=$2 kernel zfs linux new packages
  kernel=$(<"$lab/kernels/$name/release")
  linux=$(kernel_version "$name" || true)
  [ -n "$linux" ] || fail "the image of kernel $name does not say which version of Debian's package it is" \
    "rm -r $lab/kernels/$name, then run again"
  zfs=$(private_apt apt-cache madison zfs-dkms | awk '{ print $3 }' | grep -E "$pattern" | sort -V | tail -n1 || true)
  [ -n "$zfs" ] || fail "no version of zfs-dkms matches $pattern in the Debian suites of the lab" \
    "the archive has moved on: update the pattern of kernel $name in tests/setup/zfs.sh"
  private_apt apt-cache madison "linux-headers-$kernel" | awk '{ print $3 }' | grep -xF "$linux" >/dev/null ||
    fail "the archive no longer has the headers of kernel $kernel ($linux)" \
      "rm -r $lab/kernels/$name, then run again: the newest kernel comes with headers"
  new=$lab/zfs/.$name.new
  rm -rf "$new"
  mkdir -p "$new/work/packages" "$new/work/headers" "$new/work/source"
  packages=(
    "linux-headers-$kernel=$linux" $(depends_on "linux-headers-$kernel" "$linux" '^linux-(headers|kbuild|compiler)')
    "zfs-dkms=$zfs" "zfsutils-linux=$zfs" $(depends_on zfsutils-linux "$zfs" '^lib.*linux$')
  )
  run "OpenZFS for $kernel: downloading $zfs and the kernel's headers" "check the network, then run again" \
    download_into "$new/work/packages" "${packages[@]}"
  run "OpenZFS for $kernel: unpacking" "check the space left: df -h $lab" unpack_zfs "$new" "$kernel"
  run "OpenZFS for $kernel: configuring (one to three minutes)" "see config.log below $new/work/source" \
    configure_zfs "$new/work" "$kernel"
  run "OpenZFS for $kernel: compiling (three to five minutes)" "see $log; what was built is in $new/work/source" \
    compile_zfs "$new/work"
  run "OpenZFS for $kernel: keeping the modules" "see $log, and check the space left: df -h $lab" \
    keep_zfs "$new" "$kernel" "$zfs"
  rm -rf "$lab/zfs/$name"
  mv "$new" "$lab/zfs/$name"
}

# The headers name one file by its path on an installed system; everything else in them is relative.
unpack_zfs() (
  set -e
  cd "$1/work"
  for package in packages/linux-*.deb; do dpkg -x "$package" headers; done
  sed -i "s#^include /usr/src/#include $PWD/headers/usr/src/#" "headers/usr/src/linux-headers-$2/Makefile"
  dpkg -x packages/zfs-dkms_*.deb source
  for package in packages/zfsutils-*.deb packages/lib*.deb; do dpkg -x "$package" unpacked; done
  rm -r packages
  mkdir -p ../user/sbin ../user/lib
  for program in zpool zfs; do find unpacked -path "*/sbin/$program" -exec mv -t ../user/sbin {} +; done
  find unpacked -name 'lib*.so.*' -exec mv -t ../user/lib {} +
  rm -r unpacked
  for program in zpool zfs; do
    needs=$(LD_LIBRARY_PATH=../user/lib ldd "../user/sbin/$program")
    echo "$needs"
    if grep 'not found' <<<"$needs"; then exit 1; fi
  done
)

configure_zfs() (
  set -e
  cd "$1"/source/usr/src/zfs-*
  ./configure --disable-dependency-tracking --prefix=/usr --with-config=kernel \
    --with-linux="$1/headers/usr/src/linux-headers-${2%-amd64}-common" \
    --with-linux-obj="$1/headers/usr/src/linux-headers-$2"
)

compile_zfs() {
  make -C "$1"/source/usr/src/zfs-* -j"$(nproc)"
}

# Headers with a vmlinux (6.12) give the modules BTF. Debian 12's headers of 6.1 have none.
keep_zfs() (
  set -e
  cd "$1"
  mkdir modules
  find work/source/usr/src/zfs-*/module -name '*.ko' -exec cp -t modules {} +
  if [ -e "work/headers/usr/src/linux-headers-$2/vmlinux" ]; then
    readelf -SW modules/zfs.ko | grep -F ' .BTF '
  fi
  strip -g modules/*.ko # keeps .BTF
  rm -rf work
  echo "$3 $2" >release
)
