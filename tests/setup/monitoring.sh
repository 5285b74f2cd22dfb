# What the dashboards and rules are tested with: two releases of Prometheus, and the library that writes the dashboards.
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

set_up_monitoring() {
  step "What tests dashboards and rules (in $lab)"
  install_packages "monitoring" python3 python3-venv
  set_up_python "$lab/dashboards" grafana-foundation-sdk "$grafana_sdk" python
  set_up_unpacked prometheus Prometheus unpack_prometheus "${prometheus_releases[@]}"
}

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

# They run on the host's own C library, which a newer release of Debian may one day not do: better said here.
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
