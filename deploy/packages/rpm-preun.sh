if [ "$1" -eq 0 ] && [ -d /run/systemd/system ]; then
  systemctl --no-reload disable --now nfscope.socket nfscope.service >/dev/null 2>&1 || :
fi
