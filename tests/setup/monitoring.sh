# Two releases of Prometheus, with which dashboards and rules are tested, and the library that writes the dashboards.
# Sourced by setup.sh, after kernels.sh.
#
# $lab/prometheus/<name>/ has prometheus, promtool and, written last, `release`: Debian's packages unpacked, never
# installed, so that no service starts. $lab/dashboards/ is a Python environment of its own.

# Name, Debian's version as an extended regular expression (the newest match is taken), and the packages. The older one is
# what a Debian 12 has and stores classic histograms by default; the newer one stores native ones.
prometheus_releases=(
  "2.42 ^2\.42\. prometheus"
  "3.5 ^3\.5\. prometheus promtool"
)
grafana_sdk='1769699379!11.6.0'
# PyYAML reads dashboards/slo.yml.
pyyaml=6.0.3

set_up_monitoring() {
  step "What tests dashboards and rules (in $lab)"
  install_packages "monitoring" python3 python3-venv jsonnet
  set_up_python "$lab/dashboards" grafana-foundation-sdk "$grafana_sdk" python "PyYAML==$pyyaml"
  set_up_unpacked prometheus Prometheus unpack_prometheus "${prometheus_releases[@]}"
}

# Engines that keep a fleet's history. No release of Debian has Thanos: it is compiled from Go's module proxy, in five minutes.
thanos=v0.42.4

set_up_fleet() {
  step "Engines for make fleet (in $lab)"
  if [ -x "$lab/victoriametrics/1.79/vmalert" ]; then
    have "VictoriaMetrics 1.79 is in $lab/victoriametrics"
  else
    mkdir -p "$lab/victoriametrics/.new"
    read_private_lists
    local version
    version=$(private_apt apt-cache madison victoria-metrics | awk '{ print $3 }' | grep -E '^1\.79\.' | sort -V | tail -n1 || true)
    [ -n "$version" ] || fail "no version 1.79 of victoria-metrics in the Debian suites of the lab" \
      "the archive has moved on: update the version in tests/setup/monitoring.sh and tests/fleet.py"
    run "VictoriaMetrics: downloading" "check the network, then run again" \
      download_into "$lab/victoriametrics/.new" "victoria-metrics=$version"
    run "VictoriaMetrics: unpacking" "check the space left: df -h $lab" keep_victoriametrics
  fi
  if [ "$(cat "$lab/thanos/release" 2>/dev/null)" = "$thanos slicelabels" ]; then
    have "Thanos $thanos is in $lab/thanos"
  elif command -v go >/dev/null; then
    run "Thanos $thanos: compiling" "it needs the Go release that its go.mod names: see $log" build_thanos
  else
    warn "Thanos is missing: there is no Go tool chain" "install one; make fleet leaves Thanos out until then"
  fi
}

keep_victoriametrics() (
  set -e
  cd "$lab/victoriametrics"
  dpkg -x .new/*.deb .new/unpacked
  mkdir -p 1.79
  mv .new/unpacked/usr/bin/victoria-metrics .new/unpacked/usr/bin/vmalert 1.79/
  rm -r .new
)

# A module of our own requires the program and repeats its `replace`, which Go takes from the main module alone. Without the tag
# `slicelabels` Thanos reads another layout of labels than its Prometheus writes, and receive panics.
build_thanos() (
  set -e
  export GOFLAGS=-buildvcs=false
  rm -rf "$lab/thanos/module"
  mkdir -p "$lab/thanos/module"
  cd "$lab/thanos/module"
  module=github.com/thanos-io/thanos
  printf 'module engines\n' >go.mod
  go_mod=$(go mod download -json "$module@$thanos" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
  sed -n '/^replace (/,/^)/p' "$go_mod" >>go.mod
  go mod edit -require="$module@$thanos"
  go build -p 1 -mod=mod -tags netgo,slicelabels -o "$lab/thanos/thanos" $module/cmd/thanos
  rm -r "$lab/thanos/module"
  echo "$thanos slicelabels" >"$lab/thanos/release"
)

unpack_prometheus() {
  local name=$1 pattern=$2 version package packages=() new
  shift 2
  version=$(private_apt apt-cache madison prometheus | awk '{ print $3 }' | grep -E "$pattern" | sort -V | tail -n1 || true)
  [ -n "$version" ] || fail "no version of prometheus matches $pattern in the Debian suites of the lab" \
    "the archive has moved on: update the pattern of Prometheus $name in tests/setup/monitoring.sh"
  for package in "$@"; do packages+=("$package=$version"); done
  new=$lab/prometheus/.$name.new
  rm -rf "$new" "$lab/prometheus/$name"
  mkdir -p "$new/packages"
  run "Prometheus $name: downloading ${packages[*]}" "check the network, then run again" \
    download_into "$new/packages" "${packages[@]}"
  run "Prometheus $name: unpacking" "check the space left: df -h $lab" keep_prometheus "$new" "$version"
  mv "$new" "$lab/prometheus/$name"
}

# These programs run on the host's own C library. A newer Debian may one day need a later one, and the check says so here.
keep_prometheus() (
  set -e
  cd "$1"
  for package in packages/*.deb; do dpkg -x "$package" unpacked; done
  mv unpacked/usr/bin/prometheus unpacked/usr/bin/promtool .
  rm -r packages unpacked
  ./prometheus --version
  ./promtool --version
  echo "$2" >release
)
