# The kernels that the lab boots: Debian's own packages, unpacked side by side, never installed. Sourced by
# setup.sh, which sets $lab and the reporting functions.
#
# $lab/kernels/<name>/ has boot/ and lib/modules/<release>/ as the packages ship them, but for modules without compression and
# signature (plain_modules.py), and `release`, written last.

# Names of kernels, and their packages as extended regular expressions: the newest match of each is taken. Modules of Debian's
# backports have copies of the kernel's own types in their BTF, as have modules that DKMS builds: 6.18 is tested for that.
kernels=(
  "5.10 ^linux-image-5\.10\.0-[0-9]+-amd64-unsigned$"
  "6.1 ^linux-image-6\.1\.0-[0-9]+-amd64-unsigned$"
  "6.12 ^linux-image-6\.12\.[0-9]+\+deb12-amd64-unsigned$"
  "6.18 ^linux-image-6\.18\.[0-9]+\+deb13-amd64$"
  "7.2 ^linux-binary-7\.2\.[0-9]+\+deb[0-9]+-amd64$ ^linux-modules-7\.2\.[0-9]+\+deb[0-9]+-amd64$"
)

# Kernels of the same versions with another flavour, <name>-<flavour>: for machines with LAB_FLAVOUR, which no test needs.
rt_kernels=(
  "6.1-rt ^linux-image-6\.1\.0-[0-9]+-rt-amd64-unsigned$"
  "6.12-rt ^linux-image-6\.12\.[0-9]+\+deb12-rt-amd64-unsigned$"
  "6.18-rt ^linux-image-6\.18\.[0-9]+\+deb13-rt-amd64$"
  "7.2-rt ^linux-binary-7\.2\.[0-9]+\+deb[0-9]+-rt-amd64$ ^linux-modules-7\.2\.[0-9]+\+deb[0-9]+-rt-amd64$"
)

# A private apt in the cache directory knows the other releases; the host's apt does not change.
apt=$lab/apt
apt_options=()
apt_suites="bookworm bookworm-backports bullseye trixie-backports sid"
private_apt() {
  local command=$1
  shift
  "$command" -q \
    -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$apt/sources" \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State::lists="$apt/lists" -o Dir::Cache="$apt/cache" \
    -o APT::Update::Post-Invoke-Success= -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none \
    -o APT::Get::List-Cleanup=0 "${apt_options[@]}" "$@"
}

# Writes the host's Debian sources with the lab's suites in place of the host's own, so that a working mirror is used for these as
# well. Only package lists are fetched (Targets), not the far larger descriptions.
write_private_sources() {
  local main security
  main=$(debian_source '^bookworm$')
  security=$(debian_source '^bookworm-security$')
  [ -n "$main" ] || fail "no source in /etc/apt names the suite bookworm" \
    "restore Debian's own /etc/apt/sources.list.d/debian.sources"
  mkdir -p "$apt/sources" "$apt/lists/partial" "$apt/cache/archives/partial"
  {
    printf '%s\nSuites: %s\nComponents: main contrib\nTargets: Packages\n\n' "$main" "$apt_suites"
    [ -n "$security" ] && printf '%s\nSuites: bookworm-security\nComponents: main\nTargets: Packages\n' "$security"
  } >"$apt/sources/lab.sources"
}

# Types, URIs and Signed-By of the first enabled source with a suite that matches, in deb822 style or one-line style.
debian_source() {
  local suite=$1 file
  for file in /etc/apt/sources.list.d/*.sources; do
    [ -e "$file" ] || continue
    awk -v suite="$suite" '
      BEGIN { RS = ""; FS = "\n" }
      {
        keep = ""; match_suite = 0; off = 0
        for (i = 1; i <= NF; i++) {
          if ($i ~ /^#/) continue
          if (tolower($i) ~ /^enabled: *no/) off = 1
          if ($i ~ /^Suites:/) { n = split($i, s, /[ \t]+/); for (j = 2; j <= n; j++) if (s[j] ~ suite) match_suite = 1 }
          else if ($i ~ /^(URIs|Signed-By):/) keep = keep "\n" $i
        }
        if (match_suite && !off) { print "Types: deb" keep; exit }
      }' "$file"
  done | awk '/^Types:/ && seen++ { exit } { print }'
  [ -e /etc/apt/sources.list ] && awk -v suite="$suite" '
    $1 == "deb" { sub(/\[[^]]*\] */, ""); if ($3 ~ suite) { print "Types: deb\nURIs: " $2; exit } }' /etc/apt/sources.list
  return 0
}

set_up_kernels() {
  set_up_unpacked kernels kernel unpack_kernel "${kernels[@]}"
  set_up_plain_modules "${kernels[@]}"
}

set_up_rt_kernels() {
  step "Kernels with PREEMPT_RT (in $lab)"
  set_up_unpacked kernels kernel unpack_kernel "${rt_kernels[@]}"
  set_up_plain_modules "${rt_kernels[@]}"
}

# Makes the modules of kernels plain that were unpacked before this step existed.
set_up_plain_modules() {
  local entry name
  for entry; do
    name=${entry%% *}
    [ -e "$lab/kernels/$name/plain" ] ||
      run "kernel $name: modules without compression and signature" "check the space left: df -h $lab" plain_modules_of "$name"
  done
}

# Works on a copy that replaces the kernel in one step, because a machine with this kernel may run.
plain_modules_of() (
  set -e
  cd "$lab/kernels"
  rm -rf ".$1.new" ".$1.old"
  cp -al "$1" ".$1.new"
  make_modules_plain ".$1.new"
  mv "$1" ".$1.old"
  mv ".$1.new" "$1"
  rm -rf ".$1.old"
)

# make_modules_plain <directory of a kernel>: makes its modules plain, and the indexes that modprobe reads. `plain` is written last.
make_modules_plain() (
  set -e
  cd "$1"
  release=$(ls lib/modules)
  "$here/plain_modules.py" "lib/modules/$release"
  depmod -b . "$release"
  : >plain
)

# set_up_unpacked <directory> <what it is> <function> <entry>...: calls the function with the words of each entry, the first
# of which is its name, unless $lab/<directory>/<name>/release is there.
set_up_unpacked() {
  local dir=$lab/$1 what=$2 unpack=$3 entry name wanted=()
  shift 3
  for entry; do
    name=${entry%% *}
    if [ -e "$dir/$name/release" ]; then
      have "$what $name is unpacked ($(<"$dir/$name/release"))"
    else
      wanted+=("$entry")
    fi
  done
  [ ${#wanted[@]} = 0 ] && return
  read_private_lists
  for entry in "${wanted[@]}"; do
    # shellcheck disable=SC2086 # an entry is words
    $unpack $entry
  done
}

private_lists_read=
read_private_lists() {
  [ -n "$private_lists_read" ] && return
  write_private_sources
  run "reading the package lists of $apt_suites" \
    "check the network; the lists are private to $apt" private_apt apt-get update
  private_lists_read=yes
}

forget_private_packages() {
  rm -rf "$apt/cache/archives" "$apt/cache/"*.bin
}

newest_package() {
  private_apt apt-cache --names-only search "$1" | awk '{ print $1 }' | sort -V | tail -n1
}

unpack_kernel() {
  local name=$1 pattern package packages=() new
  shift
  for pattern in "$@"; do
    package=$(newest_package "$pattern")
    [ -n "$package" ] || fail "no package matches $pattern in the Debian suites of the lab" \
      "the archive has moved on: update the pattern of kernel $name in tests/setup/kernels.sh"
    packages+=("$package")
  done
  new=$lab/kernels/.$name.new
  rm -rf "$new" "$lab/kernels/$name"
  mkdir -p "$new/packages"
  run "kernel $name: downloading ${packages[*]}" "check the network, then run again" \
    download_into "$new/packages" "${packages[@]}"
  run "kernel $name: unpacking" "check the space left: df -h $lab" unpack_into "$new"
  mv "$new" "$lab/kernels/$name"
}

download_into() {
  cd "$1" && shift && private_apt apt-get download "$@"
}

# Unpacks packages. Modules must be in lib/modules, and modules.dep, which a package's post-install script would make, must exist
# before a read-only guest reads it.
unpack_into() (
  set -e
  cd "$1"
  for package in packages/*.deb; do dpkg -x "$package" .; done
  rm -rf packages usr/share
  if [ ! -d lib/modules ]; then
    mkdir -p lib
    mv usr/lib/modules lib/modules
  fi
  release=$(ls lib/modules)
  [ -e "boot/vmlinuz-$release" ] || { mkdir -p boot && mv "lib/modules/$release/vmlinuz" "boot/vmlinuz-$release"; }
  make_modules_plain .
  echo "$release" >release
)
