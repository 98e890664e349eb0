#!/bin/sh
# Makes packages of the working tree in out/packages: deb, rpm, tar and a container image, with an SBOM. The same commit gives the same
# bytes. Usage: packaging/build.sh NFPM [ARCH]
set -eu
nfpm=$1 arch=${2:-$(go env GOARCH)}
out=out/packages stage=out/packages/stage
version=$(git describe --tags --match 'v[0-9]*' 2>/dev/null || true)
version=${version#v}
version=${version:-0.0.0~devel.$(git rev-parse --short=12 HEAD)}
revision=$(git rev-parse HEAD)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
MTIME=$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export SOURCE_DATE_EPOCH
umask 022
rm -rf $out
mkdir -p $stage/usr/bin $stage/usr/lib/systemd/system $stage/usr/lib/sysusers.d $stage/usr/share/man/man1 $stage/usr/share/berth $stage/usr/share/doc/berth \
	$stage/usr/share/bash-completion/completions $stage/usr/share/zsh/site-functions $stage/usr/share/fish/vendor_completions.d

CGO_ENABLED=0 GOARCH=$arch GOOS=linux go build -trimpath -buildvcs=auto -ldflags '-s -w -buildid=' -o $stage/usr/bin/berth ./cmd/berth
berth=$stage/usr/bin/berth
if [ "$arch" != "$(go env GOHOSTARCH)" ]; then
	berth=$out/berth
	CGO_ENABLED=0 GOARCH= GOOS= go build -trimpath -o $berth ./cmd/berth
fi
$berth man $stage/usr/share/man/man1
gzip -9n $stage/usr/share/man/man1/*.1
$berth completion bash >$stage/usr/share/bash-completion/completions/berth
$berth completion zsh >$stage/usr/share/zsh/site-functions/_berth
$berth completion fish >$stage/usr/share/fish/vendor_completions.d/berth.fish
# The account and the paths of a package; what an administrator sets is in a drop-in.
sed -e '1d' -e 's|/usr/local/bin/|/usr/bin/|' -e 's|^User=slurm$|User=berth|' \
	-e 's|^# SlurmUser of the clusters, or another user.*|# An operator of the clusters: sacctmgr add user berth account=ACCOUNT adminlevel=operator. Without slurmdbd\n# SlurmUser, by a drop-in (systemctl edit berth).|' \
	-e 's|^StartLimitIntervalSec=0$|&\nConditionPathExists=/etc/berth/berth.yaml|' examples/berth.service >$stage/usr/lib/systemd/system/berth.service
cp examples/cli_filter.lua $stage/usr/share/berth/ # for a site that enables it
cp packaging/berth.sysusers $stage/usr/lib/sysusers.d/berth.conf
cp examples/berth.yaml LICENSE NOTICE CHANGELOG.md $stage/usr/share/doc/berth/
go run ./internal/sbom $stage/usr/bin/berth >$stage/usr/share/doc/berth/sbom.cdx.json
cp $stage/usr/share/doc/berth/sbom.cdx.json $out/berth_${version}_$arch.cdx.json
find $stage -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

for kind in deb rpm; do
	ARCH=$arch VERSION=$version MTIME=$MTIME STAGE=$stage envsubst '$ARCH $VERSION $MTIME $STAGE' <packaging/nfpm.yaml >$out/nfpm.yaml
	"$nfpm" package --config $out/nfpm.yaml --packager $kind --target $out/
done
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -C $stage --transform "s|^\./|berth-$version/|" -cf - . |
	gzip -9n >$out/berth_${version}_$arch.tar.gz
go run ./internal/image -arch $arch -version $version -revision $revision -created $SOURCE_DATE_EPOCH $stage >$out/berth_${version}_$arch.oci.tar
rm -rf $stage $out/nfpm.yaml $out/berth
(cd $out && sha256sum berth* >SHA256SUMS && cat SHA256SUMS)
