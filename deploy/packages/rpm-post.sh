# As Fedora and RHEL have it, the preset of the distribution decides whether the service is enabled.
if [ "$1" -eq 1 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload preset nfscope.service >/dev/null 2>&1 || :
fi
