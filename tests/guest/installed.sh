#!/bin/bash
# Runs inside a Debian with systemd: installs the package, checks the service, and purges it. Then Ansible's role does the same on
# this very host. The console gets a line for each check.

failed=0
say() { echo "$*" >"${CONSOLE:-/dev/ttyS0}"; }
check() { # check <name> <command...>
  local name=$1 output began=$SECONDS
  shift
  if output=$("$@" 2>&1); then
    say "check installed $name ... ok ($((SECONDS - began)) s)"
  else
    say "check installed $name ... FAILED ($((SECONDS - began)) s)"
    say "$(tail -n 40 <<<"$output")"
    failed=1
  fi
}
is() { [ "$1" = "$2" ] || { echo "it is '$1', not '$2'"; return 1; }; }
property() { systemctl show --value -p "$1" nfscope; }
metrics() { curl -sf http://127.0.0.1:9943/metrics; }
eventually() { # eventually <seconds> <command...>
  local left=$1
  shift
  until "$@"; do
    [ $((left -= 1)) -gt 0 ] || return 1
    sleep 1
  done
}

units() { systemctl list-unit-files --no-legend --no-pager >/root/units; }
# Files, users and units, without those that dpkg, systemd and the kernel keep for every package and service.
state() {
  find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \
    -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/nfs -o -path /root -o -path /mnt -o -path /srv -o -path /etc/ld.so.cache \) -prune -o -print | sort
  getent passwd
  getent group
  # systemd may not answer in time while it boots on a busy host.
  eventually 10 units && awk '{ print "unit", $1, $2 }' /root/units
}

serves() {
  mkdir -p /srv/data /mnt/data
  mount -t tmpfs data /srv/data
  # Each of these exports is on a disk of its own.
  mkdir -p /home/btrfs /home/ext4 /mnt/btrfs /mnt/ext4
  modprobe -a virtio_pci virtio_blk btrfs ext4 && mount -t btrfs /dev/vda /home/btrfs && mount -t ext4 /dev/vdb /home/ext4 || return
  printf '%s 127.0.0.1(rw,%sno_root_squash,insecure,no_subtree_check)\n' /srv/data fsid=0, /home/btrfs '' /home/ext4 '' >/etc/exports
  systemctl restart nfs-server && mount -t nfs -o vers=4.2,proto=tcp 127.0.0.1:/ /mnt/data
}
# The watchdog's time is shortened for the test.
installs() {
  mkdir -p /run/systemd/system/nfscope.service.d
  printf '[Service]\nWatchdogSec=30\nRestartSec=1\n' >/run/systemd/system/nfscope.service.d/test.conf
  DEBIAN_FRONTEND=noninteractive dpkg -i /root/nfscope_*.deb
}
runs() {
  is "$(property ActiveState)/$(property SubState)" active/running && is "$(systemctl is-enabled nfscope)" enabled &&
    is "$(property NRestarts)" 0
}
confined() {
  local pid status
  pid=$(property MainPID)
  status=$(cat "/proc/$pid/status")
  # The bounding set has CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN and CAP_DAC_READ_SEARCH alone: bits 39, 38, 21 and 2.
  is "$(awk '/^CapBnd/ { print $2 }' <<<"$status")" 000000c000200004 && is "$(awk '/^NoNewPrivs/ { print $2 }' <<<"$status")" 1 &&
    ! awk '/^Uid/ { exit $2 != 0 }' <<<"$status"
}
healthy() { is "$(curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:9943/healthz)" 200; }
# THP_enabled of /proc/<pid>/status is 0 for both processes.
no_huge_pages() {
  local processes process
  processes=$(pgrep -x 'nfscope|nfscope-http')
  is "$(wc -w <<<"$processes")" 2 || return
  for process in $processes; do
    is "$(sed -n 's/^THP_enabled:\t//p' "/proc/$process/status")" 0 || return
  done
}
# All probes that this server uses are attached by their first choice, as for root.
attached() {
  local count
  count=$(journalctl -u nfscope -o cat | grep -E '^attached|attached [0-9]+ of' | tail -n 1)
  say "  $count"
  [ -n "$count" ] && ! curl -sf http://127.0.0.1:9943/probes | grep -B4 -A2 -E '"state": ?"(unsupported|fallback)"'
}
counts_by_export() {
  for n in 1 2 3; do echo $n >/mnt/data/$n && sync /mnt/data/$n || return; done
  metrics | grep -E '^nfscope_.*export="/srv/data"' || { metrics | grep export= | head; return 1; }
}
# The unit's sandbox hides neither /home nor the disks: exports there have their paths, and their devices have names.
home_is_visible() {
  local name disk export
  for disk in vda:btrfs vdb:ext4; do
    name=${disk#*:} disk=${disk%:*} export=/home/$name
    mountpoint -q "/mnt/$name" || mount -t nfs -o vers=3,nolock,proto=tcp "127.0.0.1:$export" "/mnt/$name" || return
    echo home >"/mnt/$name/file" && sync "/mnt/$name/file" || return
    metrics | grep -F "nfscope_export_ops_total{export=\"$export\"}" &&
      eventually 15 device_is_named "$export" "$disk" || { metrics | grep export; return 1; }
    umount "/mnt/$name"
  done
}
device_is_named() { metrics | grep -F "nfscope_export_device_info{export=\"$1\",device=\"$2\"}"; }
reloads() {
  systemctl reload nfscope && eventually 20 sh -c 'journalctl -u nfscope -o cat | grep -q "SIGHUP: no setting has changed"' &&
    eventually 20 runs
}
reads_its_file() {
  sed -i 's/^#clients = .*/clients = 7/' /etc/nfscope/nfscope.toml && systemctl reload nfscope &&
    eventually 20 sh -c 'journalctl -u nfscope -o cat | grep "SIGHUP: now .*7"' && eventually 20 runs
}
# The agent answers the watchdog for several of its periods, and is restarted once it stops.
watched() {
  # 60 s without a restart are two periods of the watchdog.
  local up
  up=$(($(property ActiveEnterTimestampMonotonic) / 1000000))
  while read -r now _ </proc/uptime && [ $((${now%.*} - up)) -lt 60 ]; do sleep 1; done
  runs || return
  kill -STOP "$(property MainPID)"
  eventually 120 sh -c '[ "$(systemctl show --value -p NRestarts nfscope)" = 1 ]' && eventually 120 healthy &&
    journalctl -u nfscope -o cat | grep -i 'watchdog timeout'
}
# The systemd socket is off by default. With it connections wait while the agent is away, and no other process can take the address.
by_socket() {
  local answer
  is "$(systemctl is-enabled nfscope.socket)/$(systemctl is-active nfscope.socket)" disabled/inactive || return
  sed -i 's/^#systemd_socket = .*/systemd_socket = true/' /etc/nfscope/nfscope.toml
  systemctl stop nfscope && systemctl enable --now nfscope.socket && systemctl start nfscope || return
  eventually 60 healthy && metrics | grep -q ^nfscope_build_info || return
  # A scrape that begins while there is no agent is answered by the next one.
  systemctl stop nfscope && ! systemctl -q is-active nfscope || return
  answer=$(curl -s -m 170 -o /dev/null -w '%{http_code}' http://127.0.0.1:9943/metrics)
  # The agent answers while it attaches, and reports to systemd afterwards that it is ready.
  is "$answer" 200 && eventually 120 runs
}
documented() {
  nfscope --version || return
  [ -s /usr/share/man/man1/nfscope-agent.1.gz ] && bash -n /usr/share/bash-completion/completions/nfscope &&
    [ -s /usr/share/doc/nfscope/copyright ] && [ -s /usr/share/nfscope/rules/alerts.yml ]
}
purges() {
  echo kept >/var/lib/nfscope/baselines.db && touch /var/lib/nfscope/history-0.db-wal
  DEBIAN_FRONTEND=noninteractive dpkg --purge nfscope && systemctl daemon-reload || return
  [ "$(cat /var/lib/nfscope/baselines.db)" = kept ] && [ "$(ls -A /var/lib/nfscope/)" = baselines.db ] || return
  rm -rf /var/lib/private/nfscope /var/lib/nfscope
  state >/root/after && diff /root/before /root/after
}

# Ansible's programs come from the host that made this machine, at the same place.
ansible_is_there() {
  local programs
  programs=$(cat /root/ansible/programs)
  mkdir -p "$programs" && modprobe 9pnet_virtio && modprobe 9p &&
    mount -t 9p -o trans=virtio,version=9p2000.L,ro,cache=loose,msize=512000 programs "$programs" && "$programs/bin/ansible-playbook" --version
}
playbook() {
  local programs
  programs=$(cat /root/ansible/programs)
  cd /root/ansible && HOME=/root LC_ALL=C.UTF-8 ANSIBLE_NOCOLOR=1 "$programs/bin/ansible-playbook" -i localhost, -c local playbook.yml \
    -e ansible_become=false -e ansible_python_interpreter=/usr/bin/python3 -e nfscope_package_dir=/root -e "$1"
}
status_of() { curl -s -o /dev/null -w '%{http_code}' "$@" http://127.0.0.1:9943/metrics; }
# The C library's hash of a password, as a reference for our bcrypt.
hash=$(perl -e 'print crypt("open sesame", q($2y$04$) . "abcdefghijklmnopqrstuu")')
settings="{nfscope_config: {limits: {clients: 7}, log: {level: debug}}, nfscope_web_config: {basic_auth_users: {alice: '$hash'}}}"
role_runs() {
  playbook "$settings" && eventually 60 runs && grep -q '^clients = 7$' /etc/nfscope/nfscope.toml &&
    is "$(status_of)" 401 && is "$(status_of -u 'alice:open sesame')" 200 && is "$(status_of -u alice:other)" 401
}
role_changes_nothing_twice() { playbook "$settings" | tee /dev/stderr | grep -E '^localhost .*changed=0 .*unreachable=0 .*failed=0'; }

check "the server serves" serves
state >/root/before
check "it installs" installs
check "the service runs and is enabled" runs
check "/healthz answers 200" eventually 30 healthy
check "it has the four capabilities and another user than root" confined
check "its processes take no huge pages" no_huge_pages
check "probes are attached" attached
check "operations are counted by export" counts_by_export
check "exports below /home and disks of btrfs and ext4 are seen" home_is_visible
check "it reloads" reloads
check "it reads its settings again" reads_its_file
check "the watchdog is answered, and restarts it" watched
check "it serves on the socket of systemd" by_socket
check "documents, completions and rules are there" documented
# The last one, because recordings are made.
check "commands of the documentation do as written" /usr/bin/python3 /root/docs.py
say "  $(systemd-analyze security --no-pager nfscope.service | tail -n 1)"
[ $failed = 0 ] || say "$(journalctl -u nfscope -o cat --no-pager | tail -n 60)"
check "purged, it leaves recordings, and no other file, user or unit" purges
check "Ansible is there" ansible_is_there
check "the role installs, writes settings and a password, and starts" role_runs
check "the role changes nothing when it runs again" role_changes_nothing_twice
say "installed: done, failed $failed"
systemctl poweroff --force --force
