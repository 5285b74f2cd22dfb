# Functions for the machine that serves NFS. Sourced in front of every script that the lab runs in it.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
# Another locale has a dozen files, which every program opens, on the host.
export LC_ALL=C

say() { printf 'lab: %s\n' "$*" >&2; }

# in_memory <list>: what the list of in_memory.sh names is the machine's own from now on. The clock of a machine that counts
# instructions leaps over whatever nobody computes in: a program that is read from a busy host, for the first time or after caches
# were dropped, takes seconds of it, which the server would spend without its load. A program that is here does not ask the host
# for anything when it is run again. The root is the host's below and memory above: what is touched moves up.
in_memory() {
  xargs touch -ch <"$1"
}

# disk_up <name> <device>: /dev/mapper/<name>, as fast as the device until disk_delay says otherwise.
# There is no udev: the node is made by hand.
disk_up() {
  modprobe -a virtio_blk dm_delay || { say "this kernel has no dm_delay"; return 1; }
  dmsetup create "$1" --noudevsync --table "$(disk_table "$2" 0 0)" && dmsetup mknodes
}

# disk_table <device> <ms for reads> <ms for writes and flushes>
disk_table() {
  local device=$1 reads=$2 writes=$3
  echo "0 $(cat "/sys/block/${device#/dev/}/size") delay $device 0 $reads $device 0 $writes"
}

# disk_delay <name> <device> <ms for reads> <ms for writes and flushes>: while it is in use, too.
# Nothing is lost by not freezing what is mounted: requests under way are waited for.
disk_delay() {
  dmsetup load "$1" --table "$(disk_table "$2" "$3" "$4")" &&
    dmsetup suspend --nolockfs --noudevsync "$1" && dmsetup resume --noudevsync "$1"
}

# The modules of ZFS, each before those that need it. From 2.2 on there are only the first and the last.
zfs_modules="spl zavl znvpair zunicode zcommon zlua icp zzstd zfs"

# zfs_load [<directory>]: inserts the modules that the host has built there, and makes zpool and zfs, which come with
# libraries of their own, commands like any other. Later calls remember the directory.
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

# zfs_down: the pool is not served, not mounted and not imported any more, and no module of ZFS is left.
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

# zfs_up: what zfs_down took away is there again and mounted, but not served: nfsd_up.
zfs_up() {
  zfs_load && zpool import -d /dev/mapper -o cachefile=none tank
}

# export_up <file system> [<disk> [<disk for its log>]]: mounts what is to be exported at /run/exp. Disks are made file
# systems on the host, but a log on a disk of its own belongs to one file system, and mkfs wants to see both.
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

# grace_over: until clients of version 4 are served, who may have known the server before.
grace_over() {
  for _ in $(seq 150); do
    [ "$(cat /proc/fs/nfsd/v4_end_grace)" = Y ] && return
    sleep 0.1
  done
  say "the grace period does not end"
  return 1
}

# export_anew <file system> [<name of another export>...]: in place of what was exported, on the same disks.
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

# export_inside <file system> [<name of another export>...]: the same, but with its log in the file system's own disk.
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

# inside_up <file system> <disk>: makes it, with its log inside it, and mounts it at /run/exp.
inside_up() {
  local fs=$1 disk=$2
  case $fs in
  ext4) mkfs.ext4 -q -F -b 4096 -E lazy_itable_init=1,nodiscard "$disk" ;;
  ext4-fast) mkfs.ext4 -q -F -b 4096 -O fast_commit -E lazy_itable_init=1,nodiscard "$disk" ;;
  *) "mkfs.$fs" -q -f -K "$disk" ;;
  esac
  fs=${fs%-fast}
  modprobe "$fs"
  # No thread of ext4's own writes behind the tests' back.
  mount -t "$fs" -o "rw$([ "$fs" = ext4 ] && echo ,noinit_itable)" "$disk" /run/exp
}

export_down() {
  rpc.nfsd 0
  exportfs -ua
}

exported_disk() { findmnt -n -o SOURCE /run/exp; }

# also_export_up <name>: a file system of its own below the export, to be exported by itself.
also_export_up() {
  mkdir -p "/run/exp/$1"
  mount -t tmpfs -o size=25% "$1" "/run/exp/$1"
}

# insecure: the raw client does not bother with a reserved port.
export_options=rw,sync,no_root_squash,insecure,no_subtree_check

# export_with <option>: what is exported has this option, too, such as pnfs.
export_with() { exportfs -o "$export_options,fsid=0,$1" '*:/run/exp' && exportfs -f; }

# nfsd_up <threads> [<name of another export>...]: from nothing to serving /run/exp.
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
  # A kernel that does not track its clients itself waits for nfsdcld, and without it lets the whole grace period pass.
  [ -e /proc/fs/nfsd/nfsv4recoverydir ] || pidof nfsdcld >/dev/null ||
    nfsdcld -p /var/lib/nfs/rpc_pipefs -s /var/lib/nfs/nfsdcld
  # Nobody has state to reclaim, so nobody needs to wait for a grace period. lockd has one of its own, in which nfsd answers LOCKs with
  # NFS4ERR_GRACE, too.
  rpc.nfsd --grace-time 10 "$threads"
  echo Y >/proc/fs/lockd/nlm_end_grace
  # Refused where there was none.
  echo Y 2>/dev/null >/proc/fs/nfsd/v4_end_grace || true
  threads_anywhere
  [ "$(cat /proc/fs/nfsd/threads)" -gt 0 ]
}

# A kernel with nohz_full keeps its threads on the other CPUs. nfsd is to run on those without a tick as well.
threads_anywhere() {
  local tid
  grep -q '[0-9]' /sys/devices/system/cpu/nohz_full 2>/dev/null || return 0
  for tid in $(pgrep -x nfsd); do
    taskset -p -c "$(cat /sys/devices/system/cpu/possible)" "$tid" >/dev/null || return
  done
}

# cpus_online <0 or 1>: all but the first.
cpus_online() {
  local online
  for online in /sys/devices/system/cpu/cpu[1-9]*/online; do
    [ ! -e "$online" ] || [ "$(cat "$online")" = "$1" ] || echo "$1" >"$online" || return
  done
}

# client_up <n>: a network of its own (10.9.n.0/24, the server at .1) and a host name of its own, without which an
# NFSv4 server takes two clients for one that has rebooted.
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
