# in_memory.sh <program...>: paths of these programs, of the programs that the machines' scripts use, of their libraries, and of every
# symbolic link on the way to them. The host runs it, because its root is the machine's: here it takes a moment, there a minute.
PATH=$PATH:/usr/sbin:/sbin
programs=("$@")
for name in bash sh cat dd sleep sync date rm mkdir touch chrt ip mount umount exportfs rpc.nfsd rpc.mountd dmsetup \
  pkill fsfreeze mount.nfs umount.nfs mountpoint modprobe nsenter timeout grep sed awk tr sort head tail wc seq stat find \
  xargs ls cp mv ln chmod chown truncate kill id env setsid; do
  path=$(type -P "$name") || continue
  programs+=("$path")
done
# ldd prints no libraries for static programs.
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
