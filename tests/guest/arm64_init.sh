#!/bin/sh
# The first process of a machine whose root is not the host's. The host's files are at /host. The lab's first process is one of them:
# the first argument is its path, and the others are its arguments.
mount -t 9p -o ro,trans=virtio,version=9p2000.L,access=any,msize=512000,cache=loose labhost /host
exec /host"$@"
