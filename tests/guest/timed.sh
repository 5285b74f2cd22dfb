# Disks whose requests take a known time, and servers on them. Sourced after server.sh.

# null_disk <name> <ms> [<MiB>]: /dev/mapper/<name>, a disk in memory (1024 MiB) whose every request a timer completes after
# that time.
null_disk() {
  local dir=/sys/kernel/config/nullb/$1 size=${3:-1024} throttle
  modprobe null_blk nr_devices=0 && modprobe dm_mod || return
  mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
  mkdir "$dir"
  echo "$size" >"$dir/size"
  echo 1 >"$dir/memory_backed"
  echo 2 >"$dir/irqmode"
  awk -v ms="$2" 'BEGIN { printf "%d\n", ms * 1000000 }' >"$dir/completion_nsec"
  [ "$1" != data ] || echo "${disk_depth:-64}" >"$dir/hw_queue_depth"
  echo 1 >"$dir/power"
  # Writeback throttling (wbt) would hold writes back if reads take longer than it expects of a disk.
  throttle=$(null_device "$1")
  throttle=/sys/block/${throttle#/dev/}/queue/wbt_lat_usec
  [ ! -e "$throttle" ] || echo 0 >"$throttle"
  # zpool takes a mapped device as it is; it partitions others and waits for udev.
  dmsetup create "$1" --noudevsync --table "0 $((size * 2048)) linear $(null_device "$1") 0" && dmsetup mknodes
}

# null_device <name>: prints its device, which newer kernels name as its directory.
null_device() {
  local device=/dev/$1
  [ -e "$device" ] || device=/dev/nullb$(cat "/sys/kernel/config/nullb/$1/index")
  echo "$device"
}

# null_delay <name> <ms for reads> <ms for writes and flushes>: makes each request take longer, while the disk is in use.
null_delay() {
  modprobe dm_delay && disk_delay "$1" "$(null_device "$1")" "$2" "$3"
}

# null_gone <name>: removes the disk, if there is one.
null_gone() {
  local dir=/sys/kernel/config/nullb/$1
  [ -e "$dir" ] || return 0
  { dmsetup remove "$1" --noudevsync && dmsetup mknodes; } || return
  echo 0 >"$dir/power"
  rmdir "$dir"
}

# scene_up <file system> <ms of its disk> [<ms of its log's own disk>]: exports a new, empty file system in place of the last one. The
# log's disk has log_mib MiB (64). zfs needs its modules: zfs_load.
scene_up() {
  local fs=$1 log=
  scene_down || return
  if [ "$fs" != tmpfs ]; then
    null_disk data "$2" || return
    [ -z "${3:-}" ] || { null_disk log "$3" "${log_mib:-64}" && log=/dev/mapper/log; } || return
  fi
  case $fs$log in
  ext4 | ext4-fast | xfs | btrfs) inside_up "$fs" /dev/mapper/data ;;
  *) export_up "$fs" /dev/mapper/data ${log:+"$log"} ;;
  esac
}

# unexport: unmounts /run/exp. A killed process may hold a file there a moment longer.
unexport() {
  local try
  for try in 1 2 3 4 5 6 7 8 9 10; do
    mountpoint -q /run/exp || return 0
    umount -R /run/exp 2>/dev/null || sleep 0.2
  done
  ! mountpoint -q /run/exp || umount -R /run/exp
}

# scene_down: ends the export, and removes the disks of scene_up.
scene_down() {
  local name
  export_down
  unexport || return
  ! grep -q '^zfs ' /proc/modules || ! zpool list -H tank >/dev/null 2>&1 || zpool destroy tank || return
  for name in data log; do null_gone "$name" || return; done
}
