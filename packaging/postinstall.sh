#!/bin/sh
# A service that runs goes on with the new program: what is promised is in its journal, and tasks of a local
# site and jobs in Slurm are no children of it. One that does not run is not started, since it has no
# configuration yet.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart berth.service
fi
