#!/bin/sh
# A service that runs goes on with the new program: what is promised is in its journal, and tasks of a local
# site and jobs in Slurm are no children of it. One that does not run is not started, since it has no
# configuration yet. Where the new program refuses the configuration, the old one goes on until it is restarted.
set -e
[ -d /run/systemd/system ] || exit 0
systemctl daemon-reload
systemctl is-active --quiet berth.service || exit 0

# What the unit runs before it starts, as its account, here while the old service serves.
check=$(systemctl show --property=ExecStartPre --value berth.service | sed -n 's/.*argv\[\]=\([^;]*--check\) ;.*/\1/p' | head -n 1)
account=$(systemctl show --property=User --value berth.service)
if [ -n "$check" ] && ! said=$(runuser -u "${account:-root}" -- env STATE_DIRECTORY=/var/lib/berth RUNTIME_DIRECTORY=/run/berth $check 2>&1); then
	cat >&2 <<END_OF_TEXT
berth: the new version refuses what is configured, so the service was not restarted; the version before it still serves:
$said
berth: correct that, and run: systemctl restart berth
END_OF_TEXT
	exit 0
fi
# A start that is refused later, as where something promised has no place any more, does not fail the package either.
systemctl try-restart berth.service || true
tries=0
while [ $tries -lt 10 ] && ! systemctl is-failed --quiet berth.service; do
	tries=$((tries + 1))
	sleep 0.2
done
if systemctl is-failed --quiet berth.service; then
	cat >&2 <<'END_OF_TEXT'
berth: the new version does not start; no promise is lost. journalctl --unit berth says why. Correct that, and run: systemctl restart berth
END_OF_TEXT
fi
