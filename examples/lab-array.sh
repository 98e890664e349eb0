#!/bin/bash
# A comparison of berth lab as a Slurm job array: each task does one shard, and
# keeps it in part-<task>.jsonl of the folder in which it was submitted.
#
#   sbatch examples/lab-array.sh --workload log.swf.gz --sweep policy=all --replications 30
#   berth lab merge part-*.jsonl --out report
#
# The words behind the script's name are those of berth lab, the same for all. When
# all tasks have ended, merge makes the report, and names what is missing, if any.
#
# A task that was cut short has kept the runs it had finished. Submit it again with
# the number of shards that the first array had, and it goes on from there:
#
#   SHARDS=8 sbatch --array=3,5 examples/lab-array.sh --workload log.swf.gz ...
#
#SBATCH --job-name=berth-lab
#SBATCH --array=1-8
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=2
#SBATCH --mem=4G
#SBATCH --time=04:00:00
#SBATCH --output=lab-%A_%a.log
# A minute before the time is over berth, which takes the place of this shell, is
# told to stop.
#SBATCH --signal=B:TERM@60

set -eu
# As many cores as the task was given, whatever the node has.
export GOMAXPROCS="${SLURM_CPUS_PER_TASK:-1}"
shards="${SHARDS:-$SLURM_ARRAY_TASK_MAX}"
exec "${BERTH:-berth}" lab "$@" --shard "$SLURM_ARRAY_TASK_ID/$shards" --cells "part-$SLURM_ARRAY_TASK_ID.jsonl"
