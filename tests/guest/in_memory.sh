# in_memory.sh <program...>: the paths of these programs, of those that the machines' scripts use, of their libraries, and of every
# symbolic link on the way to them. The host says them, whose root is the machine's: it takes a moment here and a minute there.
PATH=$PATH:/usr/sbin:/sbin
programs=("$@")
for name in bash sh cat dd sleep sync date rm mkdir touch chrt ip mount umount exportfs rpc.nfsd rpc.mountd dmsetup \
  pkill fsfreeze mount.nfs umount.nfs mountpoint modprobe nsenter timeout grep sed awk tr sort head tail wc seq stat find \
  xargs ls cp mv ln chmod chown truncate kill id env setsid; do
  path=$(type -P "$name") || continue
  programs+=("$path")
done
# Statically linked ones have no libraries.
paths=$(printf '%s\n' "${programs[@]}" && ldd "${programs[@]}" 2>/dev/null | grep -o '/[^ :]*')
links() {
  local path
  while read -r path; do
    while [ "${path:-/}" != / ]; do
      [ ! -L "$path" ] || echo "$path"
      path=${path%/*}
    done
  done
}
paths=$(sort -u <<<"$paths")
{ xargs realpath <<<"$paths"; echo /etc/ld.so.cache; links <<<"$paths"; } | sort -u
