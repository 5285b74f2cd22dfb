#!/bin/bash
# virtme-ng calls this script in place of QEMU, with the command line that it has composed. Four things change before the real one
# starts:
#
# - The first process is the lab's own instead of virtme-ng's. LAB_INIT is its path and its arguments.
# - LAB_QEMU is the emulator, with the first of its arguments.
# - The root, LAB_ROOT, is exported once more, for a mount that caches. So is the host's root, if that is another one.
# - The devices that virtme-ng's first process talks through are left out. They bring some 400 event descriptors, and QEMU
#   polls all it has whenever a timer or a request wakes it. For the same reason a disk's request is served where the
#   guest sends it (ioeventfd=off) instead of waking another thread. Both together took a third of a machine's CPU time.

arguments=()
while [ $# -gt 0 ]; do
  argument=$1
  shift
  case $argument in
  -device | -chardev)
    case $1 in
    virtio-serial-* | virtserialport,* | i6300esb,*) shift && continue ;;
    *,id=stdin,* | *,id=stdout,* | *,id=stderr,* | *,id=dev_std*,* | *,id=ret,*) shift && continue ;;
    esac
    ;;
  *" init="*) argument="${argument% init=*} init=$LAB_INIT" ;;
  esac
  arguments+=("$argument")
done
for device in virtio-blk-pci virtio-net-pci virtio-9p-pci; do
  arguments+=(-global "$device.ioeventfd=off")
done
export_root() {
  arguments+=(-fsdev "local,id=$1,path=$2,security_model=none,readonly=on,multidevs=remap")
  arguments+=(-device "virtio-9p-pci,fsdev=$1,mount_tag=$1")
}
export_root labroot "$LAB_ROOT"
[ "$LAB_ROOT" = / ] || export_root labhost /
# shellcheck disable=SC2086 # words
exec $LAB_QEMU "${arguments[@]}"
