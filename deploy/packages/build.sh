#!/bin/bash
# Builds what `make packages` promises into target/packages: deb, rpm, a tar with the program, an image for containers, a list of
# the libraries inside. Each for x86_64 and aarch64, or for the architectures that are given: deploy/packages/build.sh [x86_64|aarch64]...
#
# Times in the packages are those of the last commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

tools=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}/packages
[ -e "$tools/release" ] || { printf 'error: %s is missing\n  fix: tests/setup/setup.sh packages\n' "$tools/release" >&2; exit 1; }
export PATH=$tools/venv/bin:$tools/tools/bin:$PATH
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
export SOURCE_DATE_EPOCH
umask 022

out=target/packages
stage=$out/stage
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

# build <architecture>: the static program
build() {
  local arch=$1 libs=$PWD/$out/libs/$1 target=$1-unknown-linux-musl host headers
  host=$(rustc -vV | sed -n 's/^host: //p')
  deploy/packages/static_libs.sh "$arch-linux-musl" "$libs"
  headers=$(zig env | sed -n 's/^ *\.lib_dir = "\(.*\)",$/\1/p')/libc/include
  headers=$headers/${arch/x86_64/x86}-linux-any:$headers/any-linux-any
  local -a allocator=()
  # Pages of aarch64 have up to 64 KiB, by the kernel's configuration.
  [ "$arch" != aarch64 ] || allocator=(JEMALLOC_SYS_WITH_LG_PAGE=16)
  # Crates that run while building take the host's own libelf and zlib, from libelf-dev and zlib1g-dev. Cargo gives them the
  # feature of the program's crates as well.
  env "${allocator[@]}" NFSCOPE_ASM_HEADERS="$headers" "LIBBPF_SYS_LIBRARY_PATH_${host//-/_}=$(dirname "$(cc -print-file-name=libelf.a)")" \
    "LIBBPF_SYS_LIBRARY_PATH_${target//-/_}=$libs" LIBBPF_SYS_EXTRA_CFLAGS="-I$libs/include" \
    "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_RUSTFLAGS=--remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" \
    cargo zigbuild --locked --release --target-dir $out/build --target "$target" -p nfscope --features static
  # An interpreter or a library that it needs would be a mistake.
  if readelf -ld "$out/build/$target/release/nfscope" | grep -E 'INTERP|NEEDED'; then
    echo "error: $out/build/$target/release/nfscope is not static" >&2
    exit 1
  fi
}

# Pages for man, completions, licences: the same for all architectures, made by the host's build of the same sources.
documents() {
  rm -rf $stage
  mkdir -p $stage/usr/share/man/man1 $stage/completions
  cargo run --locked --quiet -p nfscope --example man -- $stage/usr/share/man/man1
  gzip -9n $stage/usr/share/man/man1/*
  cargo build --locked --quiet -p nfscope
  target/debug/nfscope completions bash >$stage/completions/nfscope
  target/debug/nfscope completions zsh >$stage/completions/_nfscope
  target/debug/nfscope completions fish >$stage/completions/nfscope.fish
  deploy/packages/notices.py x86_64-unknown-linux-musl | gzip -9n >$stage/NOTICES.gz
  # Debian's form; CHANGELOG.md has the content.
  printf 'nfscope (%s-1) unstable; urgency=medium\n\n  * /usr/share/doc/nfscope/CHANGELOG.md has the changes.\n\n -- nfscope contributors <>  %s\n' \
    "$version" "$(LC_ALL=C date -uRd "@$SOURCE_DATE_EPOCH")" >$stage/changelog
}

# package <architecture>
package() {
  local arch=$1 target=$1-unknown-linux-musl name=nfscope-$version-linux-$1
  mkdir -p $stage/usr/bin
  cp "$out/build/$target/release/nfscope" $stage/usr/bin/nfscope
  cargo deb --quiet --locked -p nfscope --no-build --no-strip --target "$target" -o "$out/"
  cargo generate-rpm -p agent/nfscope --target "$target" --payload-compress gzip -o "$out/"
  deploy/packages/notices.py "$target" --sbom >"$out/$name.cdx.json"
  deploy/packages/image.py "$arch" "$version" $stage/usr/bin/nfscope "$out/nfscope-$version-image-$arch.tar"
  # For hosts with neither: the same files, below one directory.
  rm -rf "$out/$name"
  mkdir -p "$out/$name"
  cp -r $stage/usr/bin/nfscope $stage/usr/share/man/man1 $stage/completions $stage/NOTICES.gz deploy/nfscope.toml \
    deploy/systemd/nfscope.service deploy/systemd/nfscope.socket LICENSE LICENSE-* CHANGELOG.md README.md "$out/$name"
  tar -C $out --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -c "$name" | gzip -9n >"$out/$name.tar.gz"
  rm -rf "${out:?}/$name"
}

[ $# -gt 0 ] || set -- x86_64 aarch64
for arch; do
  # Those of another version as well; another architecture's stay.
  rm -f $out/nfscope_*_"$(sed 's/x86_64/amd64/; s/aarch64/arm64/' <<<"$arch")".deb $out/nfscope-*"$arch".{rpm,tar,tar.gz,cdx.json}
  build "$arch"
done
documents
for arch; do package "$arch"; done
(cd $out && sha256sum -- *.deb *.rpm *.tar *.tar.gz *.cdx.json >SHA256SUMS && cat SHA256SUMS)
