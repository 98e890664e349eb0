#!/bin/sh
# As root: tries the container image of out/packages without a container program: every blob has the digest and the size that names it,
# and the program runs from the unpacked layer by chroot as the image's user, answers on the loopback, and ends when told to.
# Usage: packaging/try-image.sh
set -eu
image=$(ls "$PWD"/out/packages/berth_*_"$(dpkg --print-architecture)".oci.tar)
at=127.0.0.1:7197
dir=$(mktemp -d /var/tmp/berth-image-XXXXXX)
service=
trap 'umount -l "$dir/root/proc" 2>/dev/null || true; [ -z "$service" ] || kill -9 "$service" 2>/dev/null || true; rm -rf --one-file-system "$dir"' EXIT
trap 'exit 1' INT TERM
fail() { echo "FAILED: image: $*" >&2; [ ! -e "$dir/log" ] || cat "$dir/log" >&2; exit 1; }
chmod 755 "$dir"
mkdir "$dir/image" "$dir/root"
tar -xf "$image" -C "$dir/image"

# blobs FILE: what a document names is there, with these bytes and sizes.
blobs() {
	grep -o '"digest":"sha256:[0-9a-f]*","size":[0-9]*' "$1" | sed 's/.*sha256:\([0-9a-f]*\)","size":/\1 /' >"$dir/named"
	[ -s "$dir/named" ] || fail "$1 names no blob"
	while read -r sum size; do
		file=$dir/image/blobs/sha256/$sum
		[ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$sum" ] || fail "blob $sum has other bytes"
		[ "$(stat -c %s "$file")" = "$size" ] || fail "blob $sum has another size"
	done <"$dir/named"
}
blobs "$dir/image/index.json"
read -r manifest size <"$dir/named"
blobs "$dir/image/blobs/sha256/$manifest"
{ read -r config size; read -r layer size; } <"$dir/named"
config=$dir/image/blobs/sha256/$config layer=$dir/image/blobs/sha256/$layer
grep -q "\"diff_ids\":\[\"sha256:$(gzip -dc "$layer" | sha256sum | cut -d' ' -f1)\"\]" "$config" || fail "the configuration names another layer"
grep -q '"User":"65532:65532"' "$config" || fail "the user is another"
grep -q '"Entrypoint":\["/usr/bin/berth","serve"\]' "$config" || fail "the program is another"

tar -xzf "$layer" -C "$dir/root" --numeric-owner -p
mkdir "$dir/root/proc" # as container programs do
mount -t proc proc "$dir/root/proc"
printf 'service: {listen: %s}\nsites: [{name: cm5, pes: 64}]\n' $at >"$dir/root/etc/berth/berth.yaml"
inside() { exec env -i PATH=/usr/bin HOME=/var/lib/berth STATE_DIRECTORY=/var/lib/berth "$(command -v chroot)" --userspec=65532:65532 "$dir/root" /usr/bin/berth "$@"; }
version=$(inside version) || fail "version"
inside serve --config /etc/berth/berth.yaml >"$dir/log" 2>&1 &
service=$!
tries=0
until answer=$(curl -fsS "http://$at/readyz" 2>&1); do
	tries=$((tries + 1))
	[ $tries -lt 300 ] && kill -0 $service || fail "/readyz: $answer"
	sleep 0.1
done
[ -s "$dir/root/var/lib/berth/journal.db" ] || fail "no journal in /var/lib/berth"
kill $service
wait $service || fail "the service ended with $?"
service=
echo "image: blobs have their digests; $version as uid 65532; /readyz: $answer; ended cleanly"
