#!/bin/sh
# As root: tries the image (try-image.sh), and the packages of out/packages in clean chroots of Debian, as an administrator would: installs the deb, starts the
# service as its account with the unit's command, makes a promise over the socket as another user, installs it again over
# the running service, removes it, and looks at what stays; then the same with the rpm, by rpm --root with its scriptlets. Where a systemd can be
# booted, what goes wrong with upgrades and units (try-systemd.sh), and the commands of docs/first-promise.md (try-docs.sh), whose log is left in
# out/packages. Needs mmdebstrap, rpm and curl, which it installs if CI is true. Usage: packaging/try.sh SUITE...
set -eu
deb=$(ls "$PWD"/out/packages/berth_*_"$(dpkg --print-architecture)".deb)
rpm=$(ls "$PWD"/out/packages/berth-*."$(uname -m)".rpm)
for tool in mmdebstrap rpm curl; do
	command -v $tool >/dev/null && continue
	[ "${CI-}" = true ] || { echo "try.sh: $tool is missing; apt-get install $tool" >&2; exit 2; }
	apt="flock --no-fork ${TMPDIR:-/tmp}/berth-apt.lock apt-get" # of all tests that install something
	{ $apt update && DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends $tool; } >&2
done
packaging/try-image.sh
. packaging/systemd.sh
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/*$')
for suite; do
	root=$(mktemp -d /var/tmp/berth-package-XXXXXX)
	trap 'umount "$root/proc" 2>/dev/null || true; rm -rf --one-file-system "$root" "$root.log"' EXIT INT TERM
	chmod 755 "$root"
	mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "3"' --variant=minbase --include=systemd,passwd,man-db,bash-completion "$suite" "$root" "$mirror"
	mount -t proc proc "$root/proc"
	cp "$deb" "$root/berth.deb"
	cat >"$root/try" <<'END'
set -eu
kind=$1
say() { echo "  $kind: $*"; }
must() { "$@" || { echo "FAILED: $*" >&2; exit 1; }; }
[ "$kind" = rpm ] || dpkg -i /berth.deb >/dev/null
say "installed: $(berth version)"
must getent passwd berth >/dev/null
must test -s /usr/share/man/man1/berth-reserve.1.gz
must test -s /usr/share/berth/cli_filter.lua
must grep -q bomFormat /usr/share/doc/berth/sbom.cdx.json
unit=/usr/lib/systemd/system/berth.service
[ -e "$unit" ] || unit=/lib/systemd/system/berth.service
verified=$(systemd-analyze verify "$unit" 2>&1 | grep berth || true)
[ -z "$verified" ] || { echo "FAILED: systemd-analyze verify: $verified" >&2; exit 1; }
say "the unit verifies; $(systemd-analyze security --offline=true "$unit" 2>/dev/null | grep Overall | tr -s ' ')"
printf 'sites: [{name: cm5, pes: 64}]\n' >/etc/berth/berth.yaml
# What systemd does for the unit, whose folders it makes.
install -d -o berth -g berth -m 700 /var/lib/berth
install -d -o berth -g berth -m 755 /run/berth
start() {
	setpriv --reuid=berth --regid=berth --init-groups env -i PATH="$PATH" STATE_DIRECTORY=/var/lib/berth RUNTIME_DIRECTORY=/run/berth \
		$(sed -n 's/^ExecStart=//p' "$unit") >>/tmp/log 2>&1 &
	service=$!
	tries=0
	until berth whoami >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] && kill -0 $service || { cat /tmp/log >&2; exit 1; }
		sleep 0.1
	done
}
must setpriv --reuid=berth --regid=berth --init-groups env STATE_DIRECTORY=/var/lib/berth $(sed -n 's/^ExecStartPre=//p' "$unit") >/dev/null
start
[ "$kind" = rpm ] || useradd -m alice
alice() { setpriv --reuid=alice --regid=alice --init-groups env -i HOME=/home/alice PATH="$PATH" berth "$@"; }
say "alice, without a token: $(alice whoami)"
alice reserve -n 4 -t 1h --start now+1h >/tmp/promise 2>&1 || { cat /tmp/promise >&2; exit 1; }
id=$(sed -n 's/^reservation \([^ ]*\) .*/\1/p' /tmp/promise)
if [ "$kind" = rpm ]; then
	kill $service; wait $service
	echo "$id" >/promised
	exit 0
fi
dpkg -i /berth.deb >/dev/null
must kill -0 $service
kill $service; wait $service
start
must alice show "$id" >/dev/null
say "installed over a running service: the promise $id is there after a restart"
kill $service; wait $service
dpkg -r berth >/dev/null
must test -e /var/lib/berth/journal.db
must test -e /etc/berth/berth.yaml
must test ! -e /usr/bin/berth
dpkg -P berth
must test -e /var/lib/berth/journal.db
dpkg -i /berth.deb >/dev/null
start
must alice show "$id" >/dev/null
kill $service; wait $service
dpkg -P berth
say "removed, purged and installed again: journal and configuration stay, and the promise"
END
	echo "$suite"
	chroot "$root" /bin/sh /try deb
	rm -rf "$root/var/lib/berth" "$root/etc/berth"
	chroot "$root" userdel berth
	# Its requirements are those of a distribution of rpm, and its database knows none of this one.
	rpm --root "$root" --nodeps --quiet -i "$rpm"
	chroot "$root" /bin/sh /try rpm
	rpm --root "$root" --nodeps --quiet -U --replacepkgs "$rpm"
	rpm --root "$root" --nodeps -e berth
	for kept in /var/lib/berth/journal.db /etc/berth/berth.yaml; do
		[ -e "$root$kept" ] || { echo "FAILED: $kept is gone with the rpm" >&2; exit 1; }
	done
	[ ! -e "$root/usr/bin/berth" ] || { echo "FAILED: the rpm leaves /usr/bin/berth" >&2; exit 1; }
	echo "  rpm: installed, upgraded and removed: journal and configuration stay"
	umount "$root/proc"
	if can_boot; then
		rm -rf "$root/var/lib/berth" "$root/etc/berth"
		chroot "$root" userdel berth
		packaging/try-systemd.sh "$root" "$deb"
	else
		echo "  systemd: not tried: it needs cgroup2, unshare, nsenter and ip"
	fi
	rm -rf --one-file-system "$root" "$root.log"
	trap - EXIT INT TERM
done
if can_boot; then
	packaging/try-docs.sh "$deb" "$@" >out/packages/first-promise-log.md
	grep -E '^(## |Together)' out/packages/first-promise-log.md
else
	echo "docs/first-promise.md: not tried: it needs cgroup2, unshare, nsenter and ip"
fi
