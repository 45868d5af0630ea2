#!/bin/bash
# 2 hosts of 8 GPUs, with the bundle in a folder that all hosts see:
#
#   sbatch deploy/slurm.sh FOLDER [COMMAND...]
#
# One launcher on each host starts its ranks. srun can start the ranks itself, too: see docs/guides/several-nodes.md.
#SBATCH --job-name=deepep
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --exclusive
#SBATCH --time=00:30:00
set -euo pipefail
bundle=${1:?the folder of the unpacked bundle}
shift
[ $# -gt 0 ] || set -- "$bundle/bin/deepep" test-internode --backend cuda --nodes "$SLURM_NNODES" --ranks-per-node 8

# One secret for the job, in a file that only its user reads.
secret=$HOME/.deepep-secret-$SLURM_JOB_ID
(umask 077 && openssl rand -hex 32 >"$secret")
trap 'rm -f "$secret"' EXIT
DEEPEP_SECRET_FILE=$secret
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 10000))
export DEEPEP_SECRET_FILE MASTER_ADDR MASTER_PORT

# SLURM_NODEID is each task's own, so it is the task's shell that reads it.
# shellcheck disable=SC2016
srun --kill-on-bad-exit=1 bash -c '
    bundle=$1
    shift
    exec "$bundle/bin/deepep" launch --nproc-per-node 8 --nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" \
        --log-dir "deepep-$SLURM_JOB_ID" --numa-binding -- "$@"
' launch "$bundle" "$@"
