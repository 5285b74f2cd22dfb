#!/bin/bash
# Makes a release of what deploy/packages/build.sh has built: deploy/packages/release.sh. It writes target/dist:
#
#   the files of target/packages, the chart (tgz, and tar in the layout of OCI), NOTES.md from CHANGELOG.md, SHA256SUMS, and with a
#   key SHA256SUMS.asc and nfscope.asc, its public half
#   repository/apt, repository/dnf    folders for any web server
#
# RELEASE_KEY   the key that gpg signs with, by its fingerprint or address; without it nothing is signed, and apt and dnf refuse
#               the repositories unless they are told to trust them
# REPOSITORY    a folder of earlier releases, to which this release is added (default: target/dist/repository, made anew)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

from=target/packages
out=target/dist
key=${RELEASE_KEY:-}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
export SOURCE_DATE_EPOCH
umask 022

fail() { printf 'error: %s\n  fix: %s\n' "$1" "$2" >&2; exit 1; }
for tool in apt-ftparchive createrepo_c rpmsign gpg; do
  command -v $tool >/dev/null || fail "$tool is missing" "tests/setup/setup.sh packages"
done
[ -z "$key" ] || gpg --batch --list-secret-keys "$key" >/dev/null 2>&1 ||
  fail "gpg has no secret key $key" "gpg --list-secret-keys shows the keys that RELEASE_KEY may name"
(cd $from && sha256sum --quiet -c SHA256SUMS) || fail "$from is not what build.sh has written" "make packages"
ls $from/nfscope_"$version"-1_*.deb >/dev/null 2>&1 || fail "$from has no packages of $version" "make packages"

sign() { gpg --batch --yes --local-user "$key" --armor "$@"; }

rm -rf $out
mkdir -p $out
repository=${REPOSITORY:-$out/repository}
mkdir -p "$repository/apt" "$repository/dnf"
repository=$(cd "$repository" && pwd)
find $from -maxdepth 1 -type f ! -name SHA256SUMS -exec cp -t $out {} +

# A signature is part of an rpm, which therefore is signed before its checksum is made.
if [ -n "$key" ]; then
  # Debian's rpm looks for gpg2.
  rpmsign --define "_gpg_name $key" --define "__gpg $(command -v gpg)" --addsign $out/*.rpm >/dev/null
  gpg --batch --armor --export "$key" >$out/nfscope.asc
fi

deploy/packages/chart.py deploy/helm/nfscope "$out/nfscope-chart-$version.tgz" "$out/nfscope-chart-$version-oci.tar"

# The section of this version. A heading that says more than version and date, as "not yet released", is no release.
heading=$(grep -m 1 "^## $version" CHANGELOG.md) || fail "CHANGELOG.md has no section $version" "write one: ## $version, DATE"
{
  echo "# nfscope $version"
  awk -v heading="$heading" '$0 == heading { on = 1; next } /^## / { on = 0 } on' CHANGELOG.md
} >$out/NOTES.md

# The suite stable has the packages of every version that the folder has.
(
  cd "$repository/apt"
  mkdir -p pool
  cp "$OLDPWD"/$out/*.deb pool/
  rm -rf dists
  for arch in amd64 arm64; do
    mkdir -p dists/stable/main/binary-$arch
    apt-ftparchive --arch $arch packages pool >dists/stable/main/binary-$arch/Packages
    gzip -9nk dists/stable/main/binary-$arch/Packages
  done
  apt-ftparchive -o APT::FTPArchive::Release::Origin=nfscope -o APT::FTPArchive::Release::Label=nfscope \
    -o APT::FTPArchive::Release::Suite=stable -o APT::FTPArchive::Release::Codename=stable \
    -o APT::FTPArchive::Release::Components=main -o APT::FTPArchive::Release::Architectures="amd64 arm64" \
    release dists/stable >../Release
  mv ../Release dists/stable/Release
  [ -z "$key" ] || sign --clearsign --output dists/stable/InRelease dists/stable/Release
)
# Both architectures are in the same folder: dnf takes those of the host.
(
  cd "$repository/dnf"
  cp "$OLDPWD"/$out/*.rpm .
  rm -rf repodata
  createrepo_c --quiet --general-compress-type gz .
  [ -z "$key" ] || sign --detach-sign --output repodata/repomd.xml.asc repodata/repomd.xml
)
[ -z "$key" ] || cp $out/nfscope.asc "$repository/"

(cd $out && find . -maxdepth 1 -type f -printf '%f\n' | LC_ALL=C sort | xargs sha256sum -- >../SHA256SUMS && mv ../SHA256SUMS .)
if [ -n "$key" ]; then
  sign --detach-sign --output $out/SHA256SUMS.asc $out/SHA256SUMS
else
  echo "not signed: RELEASE_KEY names no key. apt and dnf refuse the repositories, unless they are told to trust them." >&2
fi
[[ $heading =~ ^"## $version, "[0-9]{4}-[0-9]{2}-[0-9]{2}$ ]] ||
  echo "draft: the heading '${heading#\#\# }' of CHANGELOG.md has no date, so that NOTES.md is of no release." >&2
for arch in x86_64 aarch64; do
  [ -e "$out/nfscope-$version-linux-$arch.tar.gz" ] || echo "incomplete: no packages for $arch; make packages builds both architectures." >&2
done
echo "$PWD/$out"
ls -1 $out
