#!/bin/sh
# On removal, and not on an upgrade: dpkg says "remove", rpm says how many versions are left. What is promised
# stays promised, which is told while the service can still be asked.
set -e
case "$1" in
remove | 0) ;;
*) exit 0 ;;
esac
if live=$(timeout 10 berth list --output csv --server unix:///run/berth/berth.sock 2>/dev/null) && [ "$(echo "$live" | wc -l)" -gt 1 ]; then
	cat >&2 <<END_OF_TEXT
berth: $(echo "$live" | tail -n +2 | wc -l) reservations are not over. Removing the package ends none of them: reservations in Slurm stay until they end,
with the jobs in them, tasks of a local site go on, and the journal stays in /var/lib/berth. A package that is installed
later goes on from there. To take down what is in Slurm see "Taking it away" in docs/sites/slurm.md.
END_OF_TEXT
fi
if [ -d /run/systemd/system ]; then
	systemctl disable --now berth.service || true
fi
