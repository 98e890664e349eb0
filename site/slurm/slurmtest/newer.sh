#!/usr/bin/env bash
# newer.sh SUITE [ROOT]: gets Slurm as another Debian release has it (trixie: 24.11, forky: 26.05) into a folder of its own, beside the Slurm of
# this machine, and writes on its last line what BERTH_SLURM has to be for tests to run on it:
#
#   BERTH_SLURM=$(site/slurm/slurmtest/newer.sh trixie | tail -n 1) go test ./site/slurm/
#
# ROOT is /var/tmp/berth-slurm-SUITE by default, must not lie below /tmp, and is made once (about 30 s, 190 MB). Needs root, mmdebstrap (which it
# installs if CI is true) and a Debian mirror. The commands in BERTH_SLURM run in ROOT, for root, which sees /tmp, /proc, /dev, /sys and the users of this
# machine; so tests keep their clusters below /tmp. `newer.sh --remove ROOT` takes it away again.
set -eu

unmount() { for d in proc dev sys tmp; do if mountpoint -q "$1/$d"; then umount -R "$1/$d"; fi; done; }

if [ "${1-}" = --remove ]; then
  [ -x "${2:?want the folder}/usr/sbin/slurmctld" ] || { echo "newer.sh: $2: no Slurm that this script has got" >&2; exit 2; }
  unmount "$2"
  exec rm -rf --one-file-system "$2"
fi

suite=${1:?want a suite of Debian, such as trixie}
root=${2:-/var/tmp/berth-slurm-$suite}
case $root in
  /tmp | /tmp/*) echo "newer.sh: $root: want a folder that is not below /tmp, which ROOT is to see" >&2; exit 2 ;;
esac
[ "$(id -u)" = 0 ] || { echo "newer.sh: want root, to change the root of commands" >&2; exit 2; }
mkdir -p "$root"
root=$(cd "$root" && pwd -P)

# Tests of several packages may come here at once.
exec 9>"$root.lock"
flock 9

if [ ! -e "$root/.complete" ] || [ ! -e "$root/usr/sbin/slurmdbd" ] || [ ! -e "$root/usr/sbin/slurmrestd" ]; then
  if ! command -v mmdebstrap >/dev/null; then
    [ "${CI-}" = true ] || { echo "newer.sh: mmdebstrap is missing; apt-get install mmdebstrap" >&2; exit 2; }
    # The lock of all tests that install something: apt-get update does not wait for another one.
    apt="flock --no-fork ${TMPDIR:-/tmp}/berth-apt.lock apt-get"
    { $apt update && DEBIAN_FRONTEND=noninteractive $apt install -y --no-install-recommends mmdebstrap; } >&2
  fi
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep -m 1 '/debian/*$')
  # A mirror that is days behind is as good as any, and one that does not answer may do so in a while.
  for try in 1 2 3; do
    unmount "$root"
    rm -rf --one-file-system "$root"
    mmdebstrap --quiet --aptopt='Acquire::Check-Valid-Until "false"' --aptopt='Acquire::Retries "3"' --variant=minbase \
      --include=slurmctld,slurmd,slurmdbd,slurmrestd,slurm-wlm-jwt-plugin,slurm-client,munge "$suite" "$root" "$mirror" >&2 && break
    [ "$try" -lt 3 ] || exit 1
  done
  touch "$root/.complete"
fi
# Slaves, so that what is unmounted here stays mounted there.
for d in proc dev sys tmp; do mountpoint -q "$root/$d" || mount --rbind --make-rslave "/$d" "$root/$d"; done
# Without the names of this machine slurmctld waits for minutes for one that it cannot resolve.
for f in passwd group hosts; do # in one step, since tests may read them just now
  cmp -s "/etc/$f" "$root/etc/$f" || { cp "/etc/$f" "$root/etc/$f.new" && mv "$root/etc/$f.new" "$root/etc/$f"; }
done
mkdir -p "$root/bin.host"
# Who is not root cannot change it, and runs the programs by the loader of that release. So its libraries and plugins have to be found by the
# same names inside and outside.
[ -e "$root$root" ] || { mkdir -p "$root$(dirname "$root")"; ln -s / "$root$root"; }
id=$(command -v id)
loader=$(ls "$root"/lib64/ld-linux-*.so.* "$root"/lib/ld-linux-*.so.* 2>/dev/null | head -n 1)
plugins=$(dirname "$(ls "$root"/usr/lib/*/slurm*/auth_munge.so | head -n 1)")
libraries=$(dirname "$plugins")
ln -sfn "$plugins" "$root/bin.host/plugins"
for name in munged munge slurmctld slurmd slurmdbd slurmrestd sinfo squeue scontrol sbatch salloc scancel srun sacct sreport sacctmgr sdiag; do
  # Whole paths, since a job or a test may have another PATH. It is replaced in one step, since it may be in use.
  at=$(chroot "$root" /bin/sh -c "PATH=/usr/sbin:/usr/bin command -v $name")
  cat >"$root/bin.host/$name.new" <<END
#!/bin/sh
[ "\$($id -u)" = 0 ] && exec $(command -v chroot) "$root" "$at" "\$@"
exec "$loader" --library-path "$libraries:$plugins" "$root$at" "\$@"
END
  chmod 755 "$root/bin.host/$name.new"
  mv "$root/bin.host/$name.new" "$root/bin.host/$name"
done
chroot "$root" slurmctld -V >&2
echo "$root/bin.host"
