#!/bin/sh
# On removal, and not on an upgrade: dpkg says "remove", rpm says how many versions are left.
set -e
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now berth.service || true
	fi
	;;
esac
