#!/bin/bash
# Tests the results of `make packages`: the deb in a Debian with systemd as its first process, in a virtual machine; the rpm, the
# image and the tar by their content. Ends with the number of checks that failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cache=${NFSCOPE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/nfscope}
lab=$cache/lab
out=target/packages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

suite=packages
. tests/check.sh

deb=$(ls $out/nfscope_*_amd64.deb) rpm=$(ls $out/nfscope-*.x86_64.rpm) || exit 1

# The initramfs has the kernel of Debian 12's backports, the modules that a server needs, the tree and the package: all in memory.
initramfs() {
  local kernel=$lab/kernels/6.12 release file
  release=$(<"$kernel/release")
  mkdir -p "$work/add/lib/modules/$release" "$work/add/root" "$work/add/etc/systemd/system/multi-user.target.wants"
  for module in overlay nfsd nfsv3 nfsv4 ext4 xfs btrfs virtio_blk virtio_pci 9p 9pnet_virtio; do
    modprobe -d "$kernel" -S "$release" --show-depends $module | awk '$1 == "insmod" { print $2 }'
  done | sort -u | while read -r file; do
    file=${file#"$kernel"/}
    mkdir -p "$work/add/usr/$(dirname "$file")"
    cp "$kernel/$file" "$work/add/usr/$file"
  done
  # /lib is a link to usr/lib in the tree.
  rm -r "$work/add/lib"
  cp "$kernel/lib/modules/$release"/modules.{builtin,order} "$work/add/usr/lib/modules/$release/"
  mkdir -p "$work/add/lib" && ln -s ../usr/lib/modules "$work/add/lib/modules" && depmod -b "$work/add" "$release" && rm -r "$work/add/lib"
  cp "$deb" "$work/add/root/"
  cp -r tests/guest/installed.sh tests/guest/docs.py deploy/ansible "$work/add/root/"
  # Programs of Ansible have the directory of their installation in them.
  echo "$cache/packages/deploy" >"$work/add/root/ansible/programs"
  cat >"$work/add/etc/systemd/system/packages-test.service" <<'END'
[Unit]
After=basic.target
[Service]
Type=idle
ExecStart=/bin/bash /root/installed.sh
END
  ln -s ../packages-test.service "$work/add/etc/systemd/system/multi-user.target.wants/"
  # Services get a file system of their own by pivot_root(2), which fails on the kernel's initial root: an overlay becomes the root.
  cat >"$work/add/init" <<'END'
#!/bin/sh
mount -t proc proc /proc
modprobe overlay
mount -t tmpfs -o mode=755 memory /mnt
mkdir /mnt/upper /mnt/work /mnt/root
mount -t overlay -o lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work root /mnt/root
umount /proc
cd /mnt/root
mount --move . /
exec chroot . /lib/systemd/systemd
END
  chmod 755 "$work/add/init"
  (cd "$work/add" && find . -mindepth 1 -printf '%P\n' | cpio --quiet -o -H newc --owner 0:0) >"$work/add.cpio"
  cat "$cache/packages/tree.cpio" "$work/add.cpio" >"$work/initramfs"
  rm -r "$work/add" "$work/add.cpio"
}

# Holds one of the lab's slots for machines while it runs.
machine() {
  local emulator=(qemu-system-x86_64) accel=(-accel tcg,thread=single -cpu max)
  if [ -e "$lab/qemu/release" ]; then
    emulator=("$lab/qemu/usr/bin/qemu-system-x86_64" -L "$lab/qemu/usr/share/seabios" -L "$lab/qemu/usr/share/qemu")
  fi
  if grep -q works "$lab/kvm" 2>/dev/null; then accel=(-accel kvm -cpu host); fi
  mkdir -p "$lab/slots"
  exec 8>"$lab/slots/0.lock"
  # Two disks for exports below /home: btrfs, whose files have a device number that no disk has, and ext4.
  truncate -s 256M "$work/btrfs.img" "$work/ext4.img"
  mkfs.btrfs -q -K "$work/btrfs.img" && mkfs.ext4 -q -F "$work/ext4.img" || return
  flock -n 8 || { exec 8>"$lab/slots/1.lock" && flock -w 1200 8; } || return
  timeout 2400 "${emulator[@]}" -nodefaults -no-reboot -display none "${accel[@]}" -smp 2 -m 2G \
    -kernel "$lab/kernels/6.12/boot/vmlinuz-$(<"$lab/kernels/6.12/release")" -initrd "$work/initramfs" \
    -append "rdinit=/init console=ttyS0 quiet mitigations=off systemd.log_target=journal systemd.show_status=0" \
    -drive "file=$work/btrfs.img,if=virtio,format=raw,cache=unsafe" -drive "file=$work/ext4.img,if=virtio,format=raw,cache=unsafe" \
    -virtfs "local,path=$cache/packages/deploy,mount_tag=programs,security_model=none,readonly=on" \
    -serial "file:$work/console" 8>&8
  exec 8>&-
}

installed() {
  initramfs || return
  machine
  tr -d '\r' <"$work/console" | sed 's/\x1b\[[0-9;?]*[a-zA-Z]//g' >"$work/said"
  grep -E '^(check|  )' "$work/said" >&3
  grep -q '^installed: done, failed 0' "$work/said" || {
    mkdir -p target/lab && cp "$work/said" target/lab/packages-console.log
    tail -n 80 "$work/said"
    return 1
  }
}

rpm_content() {
  local root=$work/rpm
  mkdir -p "$root"
  # rpm2cpio exits with 1, because cargo-generate-rpm does not write the size that it compares with. Digests and files are compared
  # instead.
  rpm -K "$rpm" || return
  rpm2cpio "$rpm" >"$work/rpm.cpio"
  (cd "$root" && cpio --quiet -idm <"$work/rpm.cpio") || return
  diff <(rpm -qpl "$rpm" 2>/dev/null | sort) <(cd "$root" && find . -type f -printf '/%P\n' | sort) || return
  cmp "$root/usr/bin/nfscope" <(dpkg-deb --fsys-tarfile "$deb" | tar -xO ./usr/bin/nfscope) || return
  for unit in service socket; do
    cmp "$root/usr/lib/systemd/system/nfscope.$unit" deploy/systemd/nfscope.$unit || return
  done
  "$root/usr/bin/nfscope" --version || return
  [ "$(rpm -qp --configfiles "$rpm" 2>/dev/null | sort | tr '\n' ' ')" = "/etc/default/nfscope /etc/nfscope/nfscope.toml " ] || return
  [ -z "$(rpm -qp --requires "$rpm" 2>/dev/null | grep -v '^rpmlib(\|^/bin/sh$\|^config(nfscope)')" ] || { rpm -qp --requires "$rpm"; return 1; }
}
# Runs each scriptlet with a systemctl that logs its arguments.
rpm_scripts() {
  local bin=$work/bin scripts part
  mkdir -p "$bin"
  printf '#!/bin/sh\necho "$*" >>"%s/asked"\n' "$work" >"$bin/systemctl"
  chmod 755 "$bin/systemctl"
  scripts=$(rpm -qp --scripts "$rpm" 2>/dev/null)
  run_scriptlet() { # run_scriptlet <name> <argument>
    part=$(awk -v name="$1 scriptlet" 'index($0, name) == 1 { on = 1; next } / scriptlet:/ || / scriptlet \(using/ { on = 0 } on' <<<"$scripts")
    [ -n "$part" ] || { echo "there is no $1"; return 1; }
    : >"$work/asked"
    # This host may run no systemd, and the scriptlets test for its directory.
    PATH=$bin:$PATH sh -eu -c "${part//\/run\/systemd\/system//}" sh "$2" && cat "$work/asked"
  }
  [ "$(run_scriptlet postinstall 1)" = "--no-reload preset nfscope.service" ] && [ -z "$(run_scriptlet postinstall 2)" ] &&
    [ "$(run_scriptlet preuninstall 0)" = "--no-reload disable --now nfscope.socket nfscope.service" ] && [ -z "$(run_scriptlet preuninstall 1)" ] &&
    [ "$(run_scriptlet postuninstall 1)" = "daemon-reload
try-restart nfscope.service" ] && [ "$(run_scriptlet postuninstall 0)" = daemon-reload ]
}

# An OCI runtime starts the image with three capabilities only: as many probes are attached as for root with all of them.
image_runs() {
  local bundle=$work/bundle inside outside
  mkdir -p "$work/oci" "$bundle/rootfs"
  tar -xf $out/nfscope-*-image-x86_64.tar -C "$work/oci" && (cd "$bundle" && runc spec) || return
  python3 - "$work/oci" "$bundle" <<'END' || return
import hashlib, json, subprocess, sys
oci, bundle = sys.argv[1:]
def blob(at):
    path = f"{oci}/blobs/sha256/{at['digest'][7:]}"
    data = open(path, "rb").read()
    assert hashlib.sha256(data).hexdigest() == at["digest"][7:] and len(data) == at["size"], path
    return path
[manifest] = json.load(open(f"{oci}/index.json"))["manifests"]
manifest = json.load(open(blob(manifest)))
image = json.load(open(blob(manifest["config"])))["config"]
for layer in manifest["layers"]:
    subprocess.run(["tar", "-xzf", blob(layer), "-C", f"{bundle}/rootfs"], check=True)
spec = json.load(open(f"{bundle}/config.json"))
three = ["CAP_BPF", "CAP_PERFMON", "CAP_SYS_ADMIN"]
spec["process"].update(terminal=False, noNewPrivileges=True, user={"uid": 0, "gid": 0},
                       args=image["Entrypoint"] + image["Cmd"] + ["--web.listen-address", "127.0.0.1:0"],
                       capabilities={kind: three for kind in ("bounding", "effective", "permitted")})
spec["root"]["readonly"] = True
spec["linux"]["namespaces"] = [n for n in spec["linux"]["namespaces"] if n["type"] in ("mount", "ipc", "uts")]
spec["linux"].pop("resources", None)
json.dump(spec, open(f"{bundle}/config.json", "w"))
END
  attached_by() { timeout 15 "$@" 2>&1 | tee /dev/fd/4 | grep -oE 'attached [0-9]+ of [0-9]+' | head -n 1; }
  inside=$(attached_by runc run --bundle "$bundle" "nfscope-test-$$" 4>"$work/inside")
  outside=$(attached_by "$bundle/rootfs/usr/bin/nfscope" agent --web.listen-address 127.0.0.1:0 4>/dev/null)
  runc delete -f "nfscope-test-$$" 2>/dev/null
  cat "$work/inside"
  [ -n "$inside" ] && [ "$inside" = "$outside" ] && grep -q 'kept CAP_BPF, CAP_PERFMON and CAP_SYS_ADMIN' "$work/inside"
}

tools=$cache/packages/deploy/bin
PATH=$cache/packages/tools/bin:$PATH
chart() {
  local version values said
  helm lint --quiet deploy/helm/nfscope || return
  for version in 1.25.0 1.37.0; do
    for values in "--set nodeSelector.nfs=yes" "--set webConfigSecret=s,priorityClassName=c,nodeSelector.nfs=yes,imagePullSecrets[0].name=n,tolerations[0].operator=Exists"; do
      # shellcheck disable=SC2086 # words
      helm template t deploy/helm/nfscope --kube-version $version $values >"$work/chart.yaml" &&
        grep -q DaemonSet "$work/chart.yaml" && "$tools/kubernetes-validate" --strict -k ${version%.0} "$work/chart.yaml" || return
    done
  done
  # The chart needs a node selector. A PodMonitor has the job name that the rules use, replaces the annotations, and logs in.
  ! said=$(helm template t deploy/helm/nfscope --kube-version 1.37.0 2>&1) && [[ $said == *"nodeSelector is empty"* ]] || return
  helm template t deploy/helm/nfscope --kube-version 1.37.0 --set nodeSelector.nfs=yes,webConfigSecret=s,podMonitor.enabled=true,podMonitor.scheme=https \
    --set podMonitor.tlsConfig.serverName=nfs,podMonitor.basicAuth.username.name=u >"$work/chart.yaml" &&
    grep -q 'jobLabel: app.kubernetes.io/name' "$work/chart.yaml" && grep -q 'scheme: https' "$work/chart.yaml" &&
    grep -q 'serverName: nfs' "$work/chart.yaml" && grep -q 'basicAuth:' "$work/chart.yaml" &&
    ! grep -q 'prometheus.io/scrape' "$work/chart.yaml" || return
  # A ServiceMonitor does the same by a service. Both together would scrape each agent twice.
  helm template t deploy/helm/nfscope --kube-version 1.37.0 --set nodeSelector.nfs=yes,serviceMonitor.enabled=true,serviceMonitor.scheme=https \
    >"$work/chart.yaml" && grep -q 'clusterIP: None' "$work/chart.yaml" && grep -q 'scheme: https' "$work/chart.yaml" &&
    ! grep -q 'prometheus.io/scrape' "$work/chart.yaml" || return
  ! said=$(helm template t deploy/helm/nfscope --set nodeSelector.nfs=yes,serviceMonitor.enabled=true,podMonitor.enabled=true 2>&1) &&
    [[ $said == *"enable one of them"* ]] || return
  # Each dashboard and each file of rules arrives as it is in the folder dashboards.
  helm template t deploy/helm/nfscope --kube-version 1.37.0 --set nodeSelector.nfs=yes,prometheusRule.enabled=true,dashboards.enabled=true \
    >"$work/chart.yaml" && /usr/bin/python3 - "$work/chart.yaml" <<'END'
import json, pathlib, sys, yaml
dashboards, rules = {}, {}
for item in yaml.safe_load_all(open(sys.argv[1], encoding="utf-8")):
    if item and item["kind"] == "PrometheusRule":
        rules[item["metadata"]["name"].rsplit("-", 1)[1]] = item["spec"]
    if item and "grafana_dashboard" in item["metadata"]["labels"]:
        [(name, text)] = item["data"].items()
        dashboards[name.removeprefix("nfscope-")] = json.loads(text)
folder = pathlib.Path("dashboards")
assert dashboards == {f.name: json.loads(f.read_text()) for f in (folder / "grafana").glob("*.json")}
assert rules == {f.stem: yaml.safe_load(f.read_text()) for f in (folder / "rules").glob("*.yml")}
END
}
role() {
  PATH=$tools:$PATH "$tools/ansible-lint" --offline -q deploy/ansible && cd deploy/ansible && "$tools/ansible-playbook" --syntax-check -i localhost, playbook.yml
}

exec 3>&1
check "the deb and the role in a Debian with systemd" installed
check "the rpm's content" rpm_content
check "the rpm's scripts" rpm_scripts
check "the image under runc with three capabilities" image_runs
check "the Ansible role by its linter" role
if command -v helm >/dev/null; then
  check "the chart against the schemas of Kubernetes 1.25 and 1.37" chart
else
  echo "check packages the chart ... skipped: helm is missing: install Go and run tests/setup/setup.sh packages"
fi
exit $failed
