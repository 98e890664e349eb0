#!/bin/sh
# The journal in /var/lib/berth stays, also when a deb is purged: it has what is promised. The account stays with it.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
fi
