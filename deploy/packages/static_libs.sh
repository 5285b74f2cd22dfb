#!/bin/bash
# libelf and libz for a static nfscope: deploy/packages/static_libs.sh TARGET DIRECTORY
#
# TARGET is zig's name of it (x86_64-linux-musl). DIRECTORY gets libelf.a, libz.a and include/. The sources are those that crate
# libbpf-sys brings, in the version of Cargo.lock. Its own build of them needs autotools, argp, fts and obstack, which musl lacks
# and libelf does not use; it also builds inside of cargo's registry. Compiling the files that libelf consists of needs none of that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target=$1 out=$2

sources=$(cargo metadata --locked --format-version 1 | python3 -c '
import json, os, sys
[crate] = [p for p in json.load(sys.stdin)["packages"] if p["name"] == "libbpf-sys"]
print(os.path.dirname(crate["manifest_path"]))')
stamp="$sources $(zig version) $(sha256sum <"${BASH_SOURCE[0]}")"
[ "$(cat "$out/made-of" 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf "$out"
mkdir -p "$out/include" "$out/objects/elf" "$out/objects/z"

# What elfutils' configure would find out.
cat >"$out/objects/config.h" <<'END'
#define _GNU_SOURCE 1
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_DECL_REALLOCARRAY 1
#define HAVE_ERR_H 1
#define HAVE_MREMAP 1
#define HAVE_STDATOMIC_H 1
#define HAVE_VISIBILITY 1
#include <eu-config.h>
END
elf=$sources/elfutils
# The list of the files, which has one more line for each and ends with an empty one.
mapfile -t files < <(sed -n '/^libelf_a_SOURCES/,/^$/p' "$elf/libelf/Makefile.am" | grep -oE '[a-z0-9_]+\.c\b')
[ ${#files[@]} -gt 100 ] || { echo "error: $elf/libelf/Makefile.am lists ${#files[@]} files of libelf, not over 100" >&2; exit 1; }

# compile <directory of objects> <flags> <file>...
compile() {
  local to=$1 flags=$2
  shift 2
  # shellcheck disable=SC2086 # flags are words
  printf '%s\n' "$@" | xargs -P 2 -I{} bash -c 'file=$1 to=$2; shift 2; exec "$@" -c "$file" -o "$to/$(basename "$file" .c).o"' \
    - {} "$to" zig cc -target "$target" -O2 -w "-ffile-prefix-map=$sources=." $flags
}
compile "$out/objects/elf" "-std=gnu99 -DHAVE_CONFIG_H -I$out/objects -I$elf/libelf -I$elf/lib -I$sources/zlib" \
  "${files[@]/#/$elf/libelf/}"
zlib=(adler32 compress crc32 deflate gzclose gzlib gzread gzwrite infback inffast inflate inftrees trees uncompr zutil)
zlib=("${zlib[@]/#/$sources/zlib/}")
compile "$out/objects/z" "-DHAVE_UNISTD_H -D_LARGEFILE64_SOURCE=1" "${zlib[@]/%/.c}"
for lib in elf z; do (cd "$out/objects/$lib" && zig ar rcsD "../../lib$lib.a" $(ls ./*.o | LC_ALL=C sort)); done
cp "$elf"/libelf/{libelf,gelf,nlist}.h "$elf/libelf/elf.h" "$sources"/zlib/{zlib,zconf}.h "$out/include"
rm -rf "$out/objects"
echo "$stamp" >"$out/made-of"
