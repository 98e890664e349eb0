#!/bin/sh
# The account of the service, as packaging/berth.sysusers has it, where systemd-sysusers is not there.
set -e
if ! getent passwd berth >/dev/null; then
	useradd --system --user-group --home-dir /var/lib/berth --no-create-home --shell /usr/sbin/nologin --comment Berth berth
fi
