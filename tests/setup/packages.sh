# Tools that `make packages` builds with, and the Debian that `make packages-test` boots. Sourced by setup.sh, after kernels.sh.
#
# $cache/packages/ has venv/ (zig, which brings musl and compilers for both architectures), tools/ (cargo-deb,
# cargo-generate-rpm, helm where there is Go), deploy/ (ansible-lint, kubernetes-validate), and tree.cpio: a Debian 12 with systemd and
# an NFS server. Each has its versions beside it, written last.

ziglang=0.17.1
cargo_zigbuild=0.24.0
cargo_deb=3.8.0
cargo_generate_rpm=0.21.1
ansible_lint=26.10.1
kubernetes_validate=1.37.0
helm=v3.22.0
packages_packages=(
  mmdebstrap rpm rpm2cpio cpio runc libelf-dev zlib1g-dev binutils python3 python3-venv python3-yaml curl
  gnupg apt-utils createrepo-c dnf busybox-static skopeo docker-registry
)
# Packages of an NFS server, of the test's tools, and those that Ansible needs on a host.
tree_packages=systemd,systemd-sysv,dbus,kmod,nfs-kernel-server,curl,procps,iproute2,e2fsprogs,python3,python3-apt
packages_dir=$cache/packages

set_up_packages() {
  step "What packages are built and tried with (in $packages_dir)"
  install_packages "packages" "${packages_packages[@]}"
  mkdir -p "$packages_dir"
  set_up_zig
  set_up_cargo_tool cargo-deb $cargo_deb
  set_up_cargo_tool cargo-generate-rpm $cargo_generate_rpm
  set_up_deploy
  set_up_helm
  set_up_tree
  echo "zig $ziglang, cargo-zigbuild $cargo_zigbuild, cargo-deb $cargo_deb, cargo-generate-rpm $cargo_generate_rpm" >"$packages_dir/release"
}

set_up_zig() {
  local venv=$packages_dir/venv target
  set_up_python "$venv" cargo-zigbuild $cargo_zigbuild cargo-zigbuild
  if [ "$(cat "$venv/.zig-version" 2>/dev/null)" != $ziglang ]; then
    run "zig: installing $ziglang from PyPI" "check the network and pip's settings (pip config list)" \
      "$venv/bin/pip" --disable-pip-version-check install "ziglang==$ziglang"
    # Scripts call it `zig`.
    printf '#!/bin/sh\nexec "$(dirname "$0")/python" -m ziglang "$@"\n' >"$venv/bin/zig"
    chmod 755 "$venv/bin/zig"
    echo $ziglang >"$venv/.zig-version"
  fi
  for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
    compgen -G "$(rustc --print target-libdir --target $target)/libstd-*" >/dev/null && continue
    command -v rustup >/dev/null ||
      fail "Rust's standard library for $target is missing" "add it to $(command -v rustc), or use rustup: rustup target add $target"
    run "adding Rust's standard library for $target" "rustup target add $target" rustup target add $target
  done
}

# Linters of the Ansible role and of the chart. kubernetes-validate brings the schemas of Kubernetes.
set_up_deploy() {
  local venv=$packages_dir/deploy
  set_up_python "$venv" ansible-lint $ansible_lint ansible-lint
  [ "$(cat "$venv/.validate-version" 2>/dev/null)" = $kubernetes_validate ] && return
  run "kubernetes-validate: installing $kubernetes_validate from PyPI" "check the network and pip's settings (pip config list)" \
    "$venv/bin/pip" --disable-pip-version-check install "kubernetes-validate==$kubernetes_validate"
  echo $kubernetes_validate >"$venv/.validate-version"
}

# helm has no Debian package; Go's module proxy has its source.
set_up_helm() {
  if [ "$(cat "$packages_dir/tools/helm.version" 2>/dev/null)" = $helm ]; then
    have "helm $helm is in $packages_dir/tools"
  elif command -v go >/dev/null; then
    mkdir -p "$packages_dir/tools/bin"
    run "helm: compiling $helm (minutes)" "it needs the Go release that its go.mod names: see $log" \
      env GOBIN="$packages_dir/tools/bin" GOFLAGS=-buildvcs=false go install -p 2 helm.sh/helm/v3/cmd/helm@$helm
    echo $helm >"$packages_dir/tools/helm.version"
  else
    warn "helm is missing: there is no Go tool chain" "install one; make packages-test says that it skips the chart until then"
  fi
}

# set_up_cargo_tool <crate> <version>: builds with little optimization, because the tool runs for a second
set_up_cargo_tool() {
  local crate=$1 version=$2
  if [ "$(cat "$packages_dir/tools/$crate.version" 2>/dev/null)" = "$version" ]; then
    have "$crate $version is in $packages_dir/tools"
    return
  fi
  run "$crate: building $version" "see the end of $log; cargo install --locked $crate@$version" \
    env CARGO_PROFILE_DEV_OPT_LEVEL=1 CARGO_PROFILE_DEV_DEBUG=0 \
    cargo install --locked --debug --force --root "$packages_dir/tools" "$crate@$version"
  echo "$version" >"$packages_dir/tools/$crate.version"
}

# The tree comes from this host's own Debian sources, as the lab's kernels do. Documentation and translations are left out, but dpkg
# does not remember that for later installations.
set_up_tree() {
  local new=$packages_dir/.tree.new
  if [ "$(cat "$packages_dir/tree.packages" 2>/dev/null)" = "$tree_packages" ]; then
    have "a Debian 12 with systemd is in $packages_dir/tree.cpio"
    return
  fi
  write_private_sources
  sed '/^Suites: bookworm /s/ .*/ bookworm/' "$apt/sources/lab.sources" >"$packages_dir/tree.sources"
  need_root
  run "a Debian 12 with systemd: fetching and unpacking (minutes)" "check the network, then run again" \
    "${as_root[@]}" mmdebstrap --variant=minbase --include=$tree_packages \
    --aptopt='APT::Install-Recommends "false"' \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --customize-hook='rm -f "$1"/etc/dpkg/dpkg.cfg.d/99mmdebstrap; rm -rf "$1"/var/cache/apt/* "$1"/var/lib/apt/lists/*' \
    bookworm "$new.tar" "$packages_dir/tree.sources"
  run "a Debian 12 with systemd: packing it for a kernel" "see the end of $log" pack_tree "$new"
  mv "$new.cpio" "$packages_dir/tree.cpio"
  echo "$tree_packages" >"$packages_dir/tree.packages"
}

# cpio is the format that a kernel unpacks into its memory.
pack_tree() (
  set -e
  rm -rf "$1"
  mkdir "$1"
  cd "$1"
  "${as_root[@]}" tar -xf "$1.tar"
  "${as_root[@]}" find . -mindepth 1 -printf '%P\0' | LC_ALL=C sort -z | "${as_root[@]}" cpio --quiet -0 -o -H newc >"$1.cpio"
  cd ..
  "${as_root[@]}" rm -rf "$1" "$1.tar"
)
