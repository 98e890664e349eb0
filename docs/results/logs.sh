#!/bin/sh
# Says where each log and series comes from that docs/results rests on, and compares what is in
# a folder with what was used: sh docs/results/logs.sh DIR, the folder that --data names. A file
# that is absent is no failure; one with another content is. It fetches nothing, for each archive
# asks to be acknowledged, and the copyright of SDSC-DS travels with its header.
set -eu
[ $# = 1 ] && [ -d "$1" ] || { echo "usage: $0 DIR   (the folder of logs, as --data names it)" >&2; exit 2; }
other=0
while read -r sum file source; do
	found=
	for folder in "$1" "$1/swf" "$1/bandwidth" "$1/gwf"; do
		[ -z "$found" ] && [ -f "$folder/$file" ] && found=$folder/$file
	done
	if [ -z "$found" ]; then
		echo "absent         $file   from $source"
	elif [ "$(sha256sum "$found" | cut -d' ' -f1)" = "$sum" ]; then
		echo "as used here   $file"
	else
		echo "OTHER CONTENT  $found   want SHA-256 $sum; from $source"
		other=1
	fi
done <<'LOGS'
71ff3dfa301b3ee1bd30ebc63c5363b5e8ec488e75f1f9398aa46d485ef23c3c LANL-CM5-1994-4.1-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to Curt Canada)
9fa28ac16c4386fb81b72a91d8bd8888281df2948a9d912769d387c5ee285bb4 CTC-SP2-1996-3.1-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to Dan Dwyer and Steve Hotovy)
f2d762130a55ab26cfedc37a9f4ab55923dd07bf185912ded67628f14dbf09ab OSC-Clust-2000-3.1-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to the Supercluster repository)
9aab21f3cfa108f3ecefa52391b384d996dcf4216f920186f47a734646b2c658 SDSC-BLUE-2000-4.2-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to Travis Earheart and Nancy Wilkins-Diehr)
0ddb885a96a7f5ee9009d8a36ef350b1d1c451044c205811938995aac80fcc36 SDSC-DS-2004-2.1-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to Victor Hazlewood)
3c534857d6065cfd9cc35aac8d064c9c17172be7acf336de835006f43a626e64 HPC2N-2002-2.2-cln.swf.gz https://www.cs.huji.ac.il/labs/parallel/workload/logs.html (thanks to Ake Sandgren)
e2e77aeced05f0929261376cb07ff0b34c1a92c16dbcd9e20c4d423c41572a27 cloudpilot_wan_iperf3.csv.gz the measurements of CloudPilot, iperf3 between cloud sites
LOGS
echo "Grid'5000 (GWA-T-2, http://gwa.ewi.tudelft.nl/datasets/gwa-t-2-grid5000) is read as NAME.gwf; no result here uses it."
exit $other
