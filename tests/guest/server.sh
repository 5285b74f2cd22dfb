# Functions for the machine that serves NFS. Sourced in front of every script that the lab runs in it.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Other locales read a dozen files for every program that starts, from the host.
export LC_ALL=C

say() { printf 'lab: %s\n' "$*" >&2; }

# in_memory <list>: copies the files of in_memory.sh's list into the machine's memory. The clock of an icount machine leaps over idle
# time. Seconds of it pass while a program is read from a busy host, for the first time or after caches were dropped: the server would
# spend them without its load. A program in memory needs nothing of the host. The root has the host's files below and memory above:
# `touch` moves a file up.
in_memory() {
  xargs touch -ch <"$1"
}

# disk_up <name> <device>: makes /dev/mapper/<name>, as fast as the device until disk_delay changes it. dmsetup makes the node,
# because there is no udev.
disk_up() {
  modprobe -a virtio_blk dm_delay || { say "this kernel has no dm_delay"; return 1; }
  dmsetup create "$1" --noudevsync --table "$(disk_table "$2" 0 0)" && dmsetup mknodes
}

# disk_table <device> <ms for reads> <ms for writes and flushes>
disk_table() {
  local device=$1 reads=$2 writes=$3
  echo "0 $(cat "/sys/block/${device#/dev/}/size") delay $device 0 $reads $device 0 $writes"
}

# disk_delay <name> <device> <ms for reads> <ms for writes and flushes>: works while the disk is in use. Skipping the freeze of its
# file system (--nolockfs) loses nothing: the kernel waits for requests under way.
disk_delay() {
  dmsetup load "$1" --table "$(disk_table "$2" "$3" "$4")" &&
    dmsetup suspend --nolockfs --noudevsync "$1" && dmsetup resume --noudevsync "$1"
}

# Modules of ZFS, each before those that need it. From 2.2 on there are only the first and the last.
zfs_modules="spl zavl znvpair zunicode zcommon zlua icp zzstd zfs"

# zfs_load [<directory>]: inserts the modules that the host has built there, and makes zpool and zfs commands in /usr/sbin, with the
# libraries that they need. Later calls remember the directory.
zfs_load() {
  local name
  if [ $# = 1 ]; then
    ln -sfn "$1" /run/zfs
    for name in zpool zfs; do
      rm -f "/usr/sbin/$name"
      printf '#!/bin/sh\nLD_LIBRARY_PATH=%s exec %s "$@"\n' "$1/user/lib" "$1/user/sbin/$name" >"/usr/sbin/$name"
      chmod 755 "/usr/sbin/$name"
    done
  fi
  modprobe -a zlib_deflate zlib_inflate
  for name in $zfs_modules; do
    [ ! -e "/run/zfs/modules/$name.ko" ] || insmod "/run/zfs/modules/$name.ko" || return
  done
}

# zfs_down: stops serving the pool, unmounts and exports it, and removes all modules of ZFS.
zfs_down() {
  local name names=
  rpc.nfsd 0
  exportfs -ua
  umount -R /run/exp && zpool export tank || return
  for name in $zfs_modules; do names="$name $names"; done
  for name in $names; do
    ! grep -q "^$name " /proc/modules || rmmod "$name" || return
  done
}

# zfs_up: reverses zfs_down, but does not serve: nfsd_up does.
zfs_up() {
  zfs_load && zpool import -d /dev/mapper -o cachefile=none tank
}

# export_up <file system> [<disk> [<disk for its log>]]: mounts the file system to be exported at /run/exp. The host makes file
# systems on disks, but not with a log on a disk of its own: mkfs needs both disks.
export_up() {
  local fs=$1 disk=${2:-} log=${3:-}
  mkdir -p /run/exp
  case $fs${log:+ log} in
  tmpfs)
    mount -t tmpfs -o size=75% exported /run/exp
    return
    ;;
  zfs | "zfs log")
    zpool create -f -o ashift=12 -o cachefile=none -O atime=off -O mountpoint=none tank "$disk" ${log:+log "$log"} &&
      zfs create -o mountpoint=/run/exp tank/export
    return
    ;;
  "ext4 log")
    mkfs.ext4 -q -b 4096 -O journal_dev "$log"
    mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=1,nodiscard -J device="$log" "$disk"
    log=,noinit_itable,journal_path=$log
    ;;
  "xfs log")
    mkfs.xfs -q -f -K -l logdev="$log" "$disk"
    log=,logdev=$log
    ;;
  *" log")
    say "the lab makes no $fs with a log on a disk of its own"
    return 1
    ;;
  esac
  modprobe -a virtio_blk "$fs"
  mount -t "$fs" -o "rw$log" "$disk" /run/exp
}

# grace_over: waits until NFSv4 clients that may have known the server before are served.
grace_over() {
  for _ in $(seq 150); do
    [ "$(cat /proc/fs/nfsd/v4_end_grace)" = Y ] && return
    sleep 0.1
  done
  say "the grace period does not end"
  return 1
}

# export_anew <file system> [<name of another export>...]: replaces the export, on the same disks.
export_anew() {
  local fs=$1 disk name
  shift
  case $fs$(findmnt -n -o FSTYPE /run/exp) in *zfs*) say "zfs neither comes nor goes this way"; return 1 ;; esac
  export_down
  disk=$(exported_disk)
  umount -R /run/exp
  export_up "$fs" "$disk" /dev/mapper/log
  for name; do also_export_up "$name"; done
}

# export_inside <file system> [<name of another export>...]: replaces the export by one whose log is in the file system's own disk.
# ext4-fast is ext4 with fast commits.
export_inside() {
  local fs=$1 disk name
  shift
  export_down
  disk=$(exported_disk)
  umount -R /run/exp
  inside_up "$fs" "$disk"
  for name; do also_export_up "$name"; done
}

# inside_up <file system> <disk>: makes the file system with its log inside it, and mounts it at /run/exp.
inside_up() {
  local fs=$1 disk=$2
  case $fs in
  ext4) mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=1,nodiscard "$disk" ;;
  ext4-fast) mkfs.ext4 -q -F -b 4096 -O fast_commit -E lazy_itable_init=1,nodiscard "$disk" ;;
  *) "mkfs.$fs" -q -f -K "$disk" ;;
  esac
  fs=${fs%-fast}
  modprobe "$fs"
  # ext4's thread that initializes inode tables would write beside the tests.
  mount -t "$fs" -o "rw$([ "$fs" = ext4 ] && echo ,noinit_itable)" "$disk" /run/exp
}

export_down() {
  rpc.nfsd 0
  exportfs -ua
}

exported_disk() { findmnt -n -o SOURCE /run/exp; }

# also_export_up <name>: mounts a file system of its own below the export, to be exported by itself.
also_export_up() {
  mkdir -p "/run/exp/$1"
  mount -t tmpfs -o size=25% "$1" "/run/exp/$1"
}

# insecure: the raw client does not bind a reserved port.
export_options=rw,sync,no_root_squash,insecure,no_subtree_check

# export_with <option>: adds an option, such as pnfs, to the export.
export_with() { exportfs -o "$export_options,fsid=0,$1" '*:/run/exp' && exportfs -f; }

# nfsd_up <threads> [<name of another export>...]: starts everything that serves /run/exp.
nfsd_up() {
  local threads=$1 fsid=1 name
  shift
  mountpoint -q /var/lib/nfs || {
    mount -t tmpfs state /var/lib/nfs
    mkdir -p /var/lib/nfs/{v4recovery,rpc_pipefs,sm,sm.bak,v4root,nfsdcltrack,nfsdcld}
    touch /var/lib/nfs/{etab,rmtab,xtab,state}
    mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
    mkdir -p /run/rpcbind
    rpcbind -w
  }
  modprobe nfsd
  mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd
  # fsid=0: the root of the v4 name space.
  local options=$export_options
  exportfs -o $options,fsid=0 '*:/run/exp'
  for name; do
    exportfs -o "$options,fsid=$((fsid++))" "*:/run/exp/$name"
  done
  pidof rpc.mountd >/dev/null || rpc.mountd
  # Kernels that do not track their clients themselves wait for nfsdcld, and without it the whole grace period passes.
  [ -e /proc/fs/nfsd/nfsv4recoverydir ] || pidof nfsdcld >/dev/null ||
    nfsdcld -p /var/lib/nfs/rpc_pipefs -s /var/lib/nfs/nfsdcld
  # The grace periods of nfsd and lockd are cut short, because no client has state to reclaim. While lockd's lasts, nfsd answers LOCKs
  # with NFS4ERR_GRACE.
  rpc.nfsd --grace-time 10 "$threads"
  echo Y >/proc/fs/lockd/nlm_end_grace
  # The kernel refuses this write if there was no grace period.
  echo Y 2>/dev/null >/proc/fs/nfsd/v4_end_grace || true
  threads_anywhere
  [ "$(cat /proc/fs/nfsd/threads)" -gt 0 ]
}

# Kernels with nohz_full keep threads on the other CPUs. nfsd is to run on those without a tick as well.
threads_anywhere() {
  local tid
  grep -q '[0-9]' /sys/devices/system/cpu/nohz_full 2>/dev/null || return 0
  for tid in $(pgrep -x nfsd); do
    taskset -p -c "$(cat /sys/devices/system/cpu/possible)" "$tid" >/dev/null || return
  done
}

# cpus_online <0 or 1>: switches all CPUs but the first.
cpus_online() {
  local online
  for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
    [ ! -e "$online" ] || [ "$(cat "$online")" = "$1" ] || echo "$1" >"$online" || return
  done
}

# client_up <n>: makes a network namespace (10.9.n.0/24, the server at .1) with a host name of its own. Two clients with the same host
# name are one client that has rebooted, to an NFSv4 server.
client_up() {
  local n=$1
  mkdir -p /run/uts
  ip netns add "c$n"
  ip link add "s$n" type veth peer name eth0 netns "c$n"
  ip address add "10.9.$n.1/24" dev "s$n"
  ip link set "s$n" up
  ip -n "c$n" link set lo up
  ip -n "c$n" address add "10.9.$n.2/24" dev eth0
  ip -n "c$n" link set eth0 up
  touch "/run/uts/c$n"
  unshare --uts="/run/uts/c$n" hostname "client$n"
}
