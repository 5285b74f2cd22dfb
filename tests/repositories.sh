#!/bin/bash
# Makes a release of the packages in target/packages, signed by a key that exists for this test alone, and uses it as a stranger
# would: apt installs from it in a clean Debian 12, dnf in a root that has a shell and nothing else, helm takes the chart from a
# registry. Needs root. Ends with the number of checks that failed.
#
# `make packages-test` runs it; deploy/packages/build.sh x86_64 is enough before it.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}
out=target/dist
work=$(mktemp -d)
chmod 755 "$work"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
failed=0
servers=()
end() {
  [ ${#servers[@]} = 0 ] || kill "${servers[@]}"
  mountpoint -q "$work/debian/proc" && umount "$work/debian/proc"
  gpgconf --homedir "$work/keys" --kill all 2>/dev/null
  rm -rf "$work"
}
trap end EXIT

suite=release
. tests/check.sh
refused() { # refused <text of the reason> <command...>
  local output text=$1
  shift
  output=$("$@" 2>&1) && { printf '%s\n' "$output" "it was not refused"; return 1; }
  grep -qi -- "$text" <<<"$output" || { printf '%s\n' "$output" "the reason is not '$text'"; return 1; }
}

export GNUPGHOME=$work/keys
new_key() { gpg --batch --quiet --passphrase '' --quick-generate-key "$1" rsa3072 sign never; }
release() {
  mkdir -m 700 "$GNUPGHOME" && new_key release@example.org && new_key other@example.org || return
  gpg --batch --armor --export other@example.org >"$work/other.asc"
  # The folder has an earlier release: the same package by an older number.
  mkdir -p "$work/repository/apt/pool" "$work/old"
  dpkg-deb -R target/packages/nfscope_"$version"-1_amd64.deb "$work/old" &&
    sed -i 's/^Version: .*/Version: 0.0.9-1/' "$work/old/DEBIAN/control" &&
    dpkg-deb -b "$work/old" "$work/repository/apt/pool/nfscope_0.0.9-1_amd64.deb" || return
  RELEASE_KEY=release@example.org REPOSITORY=$work/repository deploy/packages/release.sh
}
signed() {
  (cd $out && gpg --batch --verify SHA256SUMS.asc SHA256SUMS && sha256sum --quiet -c SHA256SUMS) || return
  # Every file but the sums themselves has one.
  diff <(cd $out && find . -maxdepth 1 -type f ! -name 'SHA256SUMS*' -printf '%f\n' | sort) \
    <(awk '{ print $2 }' $out/SHA256SUMS | sort) || return
  grep -q "^# nfscope $version$" $out/NOTES.md && [ "$(wc -l <$out/NOTES.md)" -gt 5 ] && [ "$(grep -c '^## ' $out/NOTES.md)" = 0 ]
}
unknown_keys_are_refused() {
  refused "no secret key nobody@example.org" env RELEASE_KEY=nobody@example.org REPOSITORY="$work/none" deploy/packages/release.sh
}

# serve <folder>: prints the port
serve() {
  python3 -u -m http.server --bind 127.0.0.1 --directory "$1" 0 >"$work/http" 2>&1 &
  servers+=($!)
  for _ in $(seq 100); do
    port=$(sed -n 's/.* port \([0-9]*\) .*/\1/p' "$work/http")
    [ -z "$port" ] || return 0
    sleep 0.1
  done
  return 1
}

debian=$work/debian
in_debian() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot "$debian" "$@"; }
clean_debian() {
  mkdir -p "$debian" && (cd "$debian" && cpio --quiet -idm <"$cache/packages/tree.cpio") || return
  # Its only source is the one that docs/install.md has.
  rm -rf "$debian"/etc/apt/sources.list "$debian"/etc/apt/sources.list.d/*
  mkdir -p "$debian/etc/apt/keyrings" "$debian/etc/apt/sources.list.d"
  [ -e "$debian/dev/null" ] || mknod -m 666 "$debian/dev/null" c 1 3
  cat >"$debian/etc/apt/sources.list.d/nfscope.sources" <<END_OF_SOURCES
Types: deb
URIs: http://127.0.0.1:$port/apt
Suites: stable
Components: main
Signed-By: /etc/apt/keyrings/nfscope.asc
END_OF_SOURCES
}
apt_refuses() {
  cp "$work/other.asc" "$debian/etc/apt/keyrings/nfscope.asc"
  refused "not signed\|couldn't be verified" in_debian apt-get -q update
}
apt_installs() {
  cp "$work/repository/nfscope.asc" "$debian/etc/apt/keyrings/nfscope.asc"
  in_debian apt-get -q update && in_debian apt-get -q -y install nfscope=0.0.9-1 || return
  [ "$(in_debian dpkg-query -W -f '${Version}' nfscope)" = 0.0.9-1 ]
}
apt_upgrades() {
  # A changed setting stays.
  echo '# changed' >>"$debian/etc/nfscope/nfscope.toml"
  in_debian apt-get -q update && in_debian apt-get -q -y upgrade || return
  [ "$(in_debian dpkg-query -W -f '${Version}' nfscope)" = "$version-1" ] && in_debian nfscope --version | grep -F "$version" &&
    tail -n 1 "$debian/etc/nfscope/nfscope.toml" | grep '# changed'
}
# Without an NFS server: `nfscope demo` answers.
docs_are_right() {
  cp tests/guest/docs.py "$debian/root/" && mount -t proc proc "$debian/proc" || return
  in_debian env HOME=/root TERM=dumb python3 /root/docs.py
  local status=$?
  umount "$debian/proc"
  return $status
}
apt_purges() {
  in_debian apt-get -q -y purge nfscope || return
  ! find "$debian"/{usr,etc,var/lib/nfscope} -name '*nfscope*' ! -path '*/apt/*' ! -path '*/dpkg/*' 2>/dev/null | grep .
}

# dnf of Debian installs into a root of its own. The package asks for /bin/sh, which this root has from an rpm with busybox.
root=$work/root
shell_rpm() {
  cat >"$work/shell.spec" <<'END_OF_SPEC'
Name: shell
Version: 1
Release: 1
Summary: A shell for scriptlets
License: GPL-2.0-only
AutoReqProv: no
%description
A shell for scriptlets.
%install
mkdir -p %{buildroot}/bin
cp /bin/busybox %{buildroot}/bin/busybox
ln -s busybox %{buildroot}/bin/sh
%files
/bin/busybox
/bin/sh
END_OF_SPEC
  rpmbuild --quiet -bb --define "_topdir $work/rpmbuild" --define "_rpmdir $work/shell" --define '__strip /bin/true' \
    --define 'debug_package %{nil}' "$work/shell.spec" && createrepo_c --quiet "$work/shell"
}
dnf_with() { # dnf_with <key> <arguments of dnf>
  local key=$1
  shift
  mkdir -p "$work/repos.d" "$root"
  cat >"$work/repos.d/nfscope.repo" <<END_OF_REPO
[nfscope]
name=nfscope
baseurl=http://127.0.0.1:$port/dnf
gpgcheck=1
repo_gpgcheck=1
gpgkey=file://$key
[shell]
name=shell
baseurl=file://$work/shell
gpgcheck=0
END_OF_REPO
  env -u http_proxy -u https_proxy dnf -q -y --installroot="$root" --releasever=1 --setopt=reposdir="$work/repos.d" \
    --setopt=cachedir="$work/dnf-cache-$(basename "$key")" --setopt=logdir="$work" "$@"
}
dnf_refuses() { shell_rpm && refused "key\|signature\|gpg" dnf_with "$work/other.asc" install nfscope; }
dnf_installs() {
  dnf_with "$work/repository/nfscope.asc" install nfscope || return
  rpm --root "$root" -q nfscope && rpm --root "$root" -V nfscope && chroot "$root" /usr/bin/nfscope --version | grep -F "$version"
}
dnf_removes() {
  dnf_with "$work/repository/nfscope.asc" remove nfscope || return
  ! find "$root"/{usr,etc} -name '*nfscope*' ! -path '*/rpm/*' ! -path '*/dnf/*' 2>/dev/null | grep .
}

PATH=$cache/packages/tools/bin:$PATH
chart() {
  local registry package=$work/nfscope-$version.tgz
  mkdir -p "$work/registry"
  registry=127.0.0.1:$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  printf 'version: 0.1\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: "%s"}\n' "$work/registry" "$registry" >"$work/registry.yml"
  docker-registry serve "$work/registry.yml" >"$work/registry.log" 2>&1 &
  servers+=($!)
  for _ in $(seq 100); do curl -sf "http://$registry/v2/" >/dev/null && break; sleep 0.1; done
  skopeo copy --dest-tls-verify=false "oci-archive:$out/nfscope-chart-$version-oci.tar" \
    "docker://$registry/charts/nfscope:$version" || return
  helm pull --plain-http "oci://$registry/charts/nfscope" --version "$version" -d "$work" &&
    cmp "$package" "$out/nfscope-chart-$version.tgz" && helm show chart "$package" | grep -x "appVersion: $version" || return
  helm template t "$package" --kube-version 1.37.0 --set nodeSelector.nfs=yes,dashboards.enabled=true,prometheusRule.enabled=true \
    >"$work/chart.yaml" &&
    [ "$(grep -c 'kind: PrometheusRule' "$work/chart.yaml")" = 3 ] &&
    [ "$(grep -c 'grafana_dashboard: "1"' "$work/chart.yaml")" = "$(ls dashboards/grafana/*.json | wc -l)" ]
}

check "is made and signed" release
[ $failed = 0 ] || exit $failed
check "has sums, a signature and notes" signed
check "names an unknown key" unknown_keys_are_refused
serve "$work/repository" || { echo "check release the repository is served ... FAILED"; exit 1; }
check "a clean Debian is unpacked" clean_debian
check "apt refuses another key" apt_refuses
check "apt installs an earlier release" apt_installs
check "apt upgrades, and settings stay" apt_upgrades
check "commands of the documentation do as written" docs_are_right
check "apt purges" apt_purges
check "dnf refuses another key" dnf_refuses
check "dnf installs" dnf_installs
check "dnf removes" dnf_removes
if command -v helm >/dev/null; then
  check "helm takes the chart from a registry" chart
else
  echo "check release the chart ... skipped: helm is missing: install Go and run tests/setup/setup.sh packages"
fi
exit $failed
