# The D compiler that tries the scripts for illumos: DTrace of Debian's packages, unpacked into the cache and never installed.
# Sourced by setup.sh, after kernels.sh.

# The most stable suite that has dtrace.
dtrace_suite=forky
# Libraries of dtrace are unpacked with it: Debian 12's own C library is too old for it.
dtrace_packages=(
  dtrace libdtrace2 libctf-nobfd0 libelf1t64 libc6 zlib1g libzstd1 libpcap0.8t64 libsframe3 libpfm4 libdbus-1-3 libsystemd0 libcap2
  libgcc-s1 libstdc++6 libselinux1 libpcre2-8-0 libgcrypt20 libgpg-error0 liblz4-1 liblzma5
)

# $lab/dtrace/ has the program `dtrace`, a script that is written anew each time; lib/ as the packages ship it; and `release`, written
# last of the unpacked files.
set_up_dtrace() {
  local dir=$lab/dtrace new=$lab/.dtrace.new
  step "The D compiler that tries the scripts for illumos (in $lab)"
  # dtrace needs python3 and binutils to register the USDT probes of a program.
  install_packages "dtrace" python3 binutils
  if [ -e "$dir/release" ]; then
    have "dtrace $(<"$dir/release") is unpacked"
    write_dtrace "$dir"
    return
  fi
  # This suite is added for dtrace alone: kernels and OpenZFS are the newest of the other suites.
  local suites=$apt_suites
  apt_suites="$suites $dtrace_suite"
  private_lists_read=
  read_private_lists
  rm -rf "$new" "$dir"
  mkdir -p "$new/debs"
  run "dtrace of $dtrace_suite: downloading" "check the network, then run again" \
    download_into "$new/debs" "${dtrace_packages[@]/%//$dtrace_suite}" patchelf/bookworm
  run "dtrace of $dtrace_suite: unpacking" "check the space left: df -h $lab, and that it runs: the end of $log" \
    unpack_dtrace "$new" "$dir"
  mv "$new" "$dir"
  write_dtrace "$dir"
  apt_suites=$suites
  private_lists_read=
}

# unpack_dtrace <directory to fill> <directory that it will be>
unpack_dtrace() (
  set -e
  cd "$1"
  for package in debs/*.deb; do dpkg -x "$package" root; done
  # Debian 13 and later have /lib in /usr/lib; packages may still ship either.
  libraries=$2/root/usr/lib/x86_64-linux-gnu
  cp -r root/usr/lib/x86_64-linux-gnu/dtrace lib
  # The name of a block device's major number comes from a symbol that kernels without CONFIG_KALLSYMS_ALL do not export. Without this
  # change no script compiles there, and no test uses that name.
  sed -i -z 's/stringof(((struct blk_major_name \*\*)&vmlinux`major_names)\[[^]]*\]->name)/"disk"/' lib/*/io.d
  # dtrace sets a uprobe on its own file, so that another dynamic linker cannot start it.
  cp root/usr/sbin/dtrace dtrace.bin
  root/usr/bin/patchelf --set-interpreter "$2/root/usr/lib64/ld-linux-x86-64.so.2" \
    --force-rpath --set-rpath "$libraries" dtrace.bin
  dpkg-deb -f debs/dtrace_*.deb Version >release
  rm -rf debs root/usr/share
)

# write_dtrace <directory of DTrace>: writes the script `dtrace` there, if it differs
write_dtrace() {
  local new
  new=$(mktemp)
  cat >"$new" <<SCRIPT
#!/bin/bash
# dtrace in mounts of its own: the file systems that it needs may not be mounted here, and stay so for everybody else.
if [ "\${1:-}" != --mounted ]; then exec unshare -m --propagation private "\$0" --mounted "\$@"; fi
shift
mountpoint -q /sys/kernel/debug || mount -t debugfs none /sys/kernel/debug
mountpoint -q /sys/kernel/debug/tracing || mount -t tracefs none /sys/kernel/debug/tracing
mountpoint -q /sys/fs/bpf || mount -t bpf none /sys/fs/bpf
# A dtrace that was killed leaves its events to the kernel, called by its process ID. The next one with that ID, which is this
# process, could not make its own: "Failed to enable dtrace:::BEGIN".
events=/sys/kernel/debug/tracing/uprobe_events
for event in \$(grep -o "\bdt_\$\$_[^ ]*" \$events); do
  echo "-:\$event" >>\$events || echo "dtrace: the kernel does not give up an earlier process's \$event: run it again" >&2
done
exec $1/dtrace.bin -xsyslibdir=$1/lib "\$@"
SCRIPT
  if ! cmp -s "$new" "$1/dtrace"; then
    # The script is replaced in one step, so that a test never reads half of it.
    run "dtrace: its script" "check that you may write into $1" install -m 755 "$new" "$1/.dtrace"
    mv "$1/.dtrace" "$1/dtrace"
  fi
  rm -f "$new"
}
