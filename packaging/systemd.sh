# Functions to boot a real systemd in a folder with a Debian, as root, with namespaces of its own for processes, mounts, cgroups and
# the network, which has a loopback alone. The machine is called head. For the scripts beside it: . packaging/systemd.sh

# can_boot reports whether there is what boot needs.
can_boot() {
	for tool in findmnt unshare nsenter ip; do command -v $tool >/dev/null || return; done
	probe=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)/berth-probe-$$
	mkdir "$probe" 2>/dev/null && rmdir "$probe" && unshare --pid --mount --cgroup --ipc --uts --net --fork true 2>/dev/null
}

# boot ROOT: starts it, and waits until its units are started. What it prints is in ROOT.log.
boot() {
	group=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)/berth-try-$$
	mkdir "$group"
	(
		echo 0 >"$group/cgroup.procs"
		exec unshare --pid --mount --cgroup --ipc --uts --net --fork --kill-child sh -euc '
			ip link set lo up
			ip address add 192.0.2.1/32 dev lo # without one, names of this machine are not looked up
			mount --make-rprivate /
			mount --bind "$1" "$1"
			cd "$1"
			mount -t proc proc proc
			mount -o ro,bind proc/sys proc/sys
			mount -t sysfs -o ro sysfs sys
			mount -t cgroup2 cgroup2 sys/fs/cgroup 2>/dev/null || { mount -t tmpfs tmpfs sys/fs && mkdir sys/fs/cgroup && mount -t cgroup2 cgroup2 sys/fs/cgroup; }
			mount -t tmpfs -o mode=755 tmpfs run
			mount -t tmpfs -o mode=1777 tmpfs tmp
			mount -t tmpfs -o mode=755 tmpfs dev
			for d in null zero full random urandom tty; do touch dev/$d; mount --bind /dev/$d dev/$d; done
			mkdir dev/pts dev/shm
			mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
			ln -s pts/ptmx dev/ptmx
			ln -s /proc/self/fd dev/fd
			ln -s /proc/self/fd/0 dev/stdin
			ln -s /proc/self/fd/1 dev/stdout
			ln -s /proc/self/fd/2 dev/stderr
			echo head >etc/hostname
			printf "127.0.0.1 localhost\n192.0.2.1 head\n" >etc/hosts
			exec env -i container=berth PATH=/usr/sbin:/usr/bin:/sbin:/bin chroot . /lib/systemd/systemd
		' sh "$1"
	) </dev/null >"$1.log" 2>&1 &
	booted=$!
	tries=0
	until inside systemctl is-system-running 2>/dev/null | grep -qE "^(running|degraded)$"; do # degraded: a unit that needs the kernel
		tries=$((tries + 1))
		[ $tries -lt 1200 ] && kill -0 $booted || { cat "$1.log" >&2; inside systemctl --failed >&2 || true; echo "FAILED: systemd does not start" >&2; exit 1; }
		sleep 0.1
	done
}

# inside COMMAND...: runs it there, as root.
inside() {
	read -r first </proc/$booted/task/$booted/children || true # its line has no end
	nsenter --target "$first" --mount --pid --cgroup --ipc --uts --net --root --wd \
		env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
}

# halt: ends it with all of its processes.
halt() {
	[ -n "${booted-}" ] || return 0
	kill -KILL $booted 2>/dev/null || true # it ignores others while its child runs
	wait $booted 2>/dev/null || true
	booted=
	tries=0
	until ! grep -q . $(find "$group" -name cgroup.procs) 2>/dev/null || [ $tries -eq 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	find "$group" -depth -type d -exec rmdir {} + 2>/dev/null || true
}
