#!/bin/sh
# As root: runs the commands of docs/first-promise.md as they stand there, in folders with fresh Debians under a real systemd, once in front
# of a Slurm of Debian's and once on a single machine, and prints a page with what they printed and how long each step took. A step that
# fails ends it. Usage: packaging/try-docs.sh DEB SUITE...
set -eu
page=docs/first-promise.md deb=$1
shift
. packaging/systemd.sh
root=
trap 'halt; [ -z "$root" ] || rm -rf --one-file-system "$root" "$root.log"' EXIT
trap 'exit 1' INT TERM
mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/*$')

# blocks SECTION: the blocks of commands of a section, each in a file of its own, STEPS/N.
blocks() {
	awk -v section="## $1" -v steps="$steps" '
		/^## / { in_section = $0 == section }
		/^```sh$/ { if (in_section) { n++; printing = 1 }; next }
		/^```$/ { printing = 0; next }
		printing { print > (steps "/" n) }
	' "$page"
	[ -s "$steps/1" ] || { echo "FAILED: $page has no commands under $1" >&2; exit 1; }
}

# run SECTION...: runs the commands of sections.
run() {
	for section; do
		steps=$(mktemp -d)
		blocks "$section"
		for step in "$steps"/*; do
			case $(head -n 1 "$step") in
			"# As root") as='setpriv --reuid=root' home=/srv ;;
			"# As a user") as='setpriv --reuid=alice --regid=alice --init-groups' home=/home/alice ;;
			*) echo "FAILED: $page, $section: who runs these commands?" >&2; exit 1 ;;
			esac
			sed 1d "$step" >"$root/step"
			began=$(date +%s%N)
			inside $as env HOME=$home sh -c "cd $home && exec sh -e /step" </dev/null >"$steps/out" 2>&1 || { cat "$step" "$steps/out" >&2; echo "FAILED: $page, $section" >&2; exit 1; }
			took=$((($(date +%s%N) - began) / 1000000))
			total=$((total + took))
			printf '\n%s, %d.%03d s:\n\n```text\n' "$section" $((took / 1000)) $((took % 1000))
			sed -e "s/^/$ /" "$root/step"
			sed -e "s/[[:space:]]*$//" -e "s/.*\r//" "$steps/out" # of progress the last
			printf '```\n'
		done
		rm -rf "$steps"
	done
}

# site: the cluster of one node that the administrator has already.
site() {
	cat >"$root/etc/slurm/slurm.conf" <<'END'
ClusterName=lab
SlurmctldHost=head
SlurmUser=slurm
AuthType=auth/munge
StateSaveLocation=/var/lib/slurm/slurmctld
SlurmdSpoolDir=/var/lib/slurm/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
ReturnToService=2
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=128
SlurmdParameters=config_overrides
NodeName=head CPUs=4 RealMemory=1024
PartitionName=main Nodes=ALL Default=YES MaxTime=1-00:00:00 State=UP
END
	# Nothing here manages cgroups. Slurm 22.05 has no word for that, and does not start where it finds those of both versions unless it is told
	# which one to take.
	case $(chroot "$root" slurmd -V) in
	*" 22."*) plugin=cgroup/v1 ;;
	*) plugin=disabled ;;
	esac
	echo "CgroupPlugin=$plugin" >"$root/etc/slurm/cgroup.conf"
}

# idle: waits until its node is there.
idle() {
	tries=0
	until inside sinfo --noheader --format=%T 2>/dev/null | grep -q idle; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || { inside systemctl status --no-pager munge slurmctld slurmd >&2 || true; echo "FAILED: no idle node" >&2; exit 1; }
		sleep 0.1
	done
}

cat <<'END'
# The log of a first promise

What [the commands](first-promise.md) printed, and how long each step took, on installations of Debian, each under its systemd. Made by `packaging/try-docs.sh`. Fetching and unpacking Debian is not counted, nor is starting Slurm.
END
for suite; do
	for kind in "In front of Slurm" "On a single machine"; do
		root=$(mktemp -d /var/tmp/berth-docs-XXXXXX)
		chmod 755 "$root"
		mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "3"' --variant=minbase \
			--include=systemd,passwd,man-db,bash-completion,munge"$([ "$kind" != "In front of Slurm" ] || echo ,slurm-wlm)" "$suite" "$root" "$mirror"
		chroot "$root" useradd --create-home alice
		cp "$deb" "$root/srv/"
		[ "$kind" != "In front of Slurm" ] || site
		boot "$root"
		[ "$kind" != "In front of Slurm" ] || idle
		total=0
		printf '\n## Debian %s: %s\n' "$(cat "$root/etc/debian_version")" "$kind"
		run Install "$kind" Start "First promise" "First job"
		printf '\nTogether %d.%03d s.\n' $((total / 1000)) $((total % 1000))
		halt
		rm -rf --one-file-system "$root" "$root.log"
		root=
	done
done
