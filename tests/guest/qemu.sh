#!/bin/bash
# Stands in for QEMU: virtme-ng calls it with the command line that it has composed, and two things change before the
# real one starts. The first process is the lab's own instead of virtme-ng's, and the host's root is exported once
# more, for a mount that caches. LAB_INIT is the path and the arguments of the first process.

arguments=()
for argument; do
  case $argument in *" init="*) argument="${argument% init=*} init=$LAB_INIT" ;; esac
  arguments+=("$argument")
done
exec qemu-system-x86_64 "${arguments[@]}" \
  -fsdev local,id=labroot,path=/,security_model=none,readonly=on,multidevs=remap \
  -device virtio-9p-pci,fsdev=labroot,mount_tag=labroot
