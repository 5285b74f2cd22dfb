# Functions for the machine that serves NFS. Sourced in front of every script that the lab runs in it.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

say() { printf 'lab: %s\n' "$*" >&2; }

# Mounts what is to be exported at /run/exp.
# export_up <file system> <delay in ms, 0 for none>
export_up() {
  local fs=$1 delay=$2 disk=/dev/vda
  mkdir -p /run/exp
  if [ "$fs" = tmpfs ]; then
    mount -t tmpfs -o size=75% exported /run/exp
    return
  fi
  modprobe -a virtio_blk "$fs"
  if [ "$delay" != 0 ]; then
    modprobe dm_delay || { say "this kernel has no dm_delay"; return 1; }
    # Reads at once; writes and flushes late. There is no udev: the node is made by hand.
    dmsetup create slow --noudevsync \
      --table "0 $(cat /sys/block/vda/size) delay $disk 0 0 $disk 0 $delay" && dmsetup mknodes
    disk=/dev/mapper/slow
  fi
  mount -t "$fs" $disk /run/exp
}

# nfsd_up <threads>: from nothing to serving /run/exp.
nfsd_up() {
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
  # insecure: the raw client does not bother with a reserved port. fsid=0: the root of the v4 name space.
  exportfs -o rw,sync,no_root_squash,insecure,fsid=0,no_subtree_check '*:/run/exp'
  pidof rpc.mountd >/dev/null || rpc.mountd
  # Nobody has state to reclaim, so nobody needs to wait for a grace period.
  rpc.nfsd --grace-time 10 "$1"
  echo Y 2>/dev/null >/proc/fs/nfsd/v4_end_grace || true # busy: there was none
  [ "$(cat /proc/fs/nfsd/threads)" -gt 0 ]
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
