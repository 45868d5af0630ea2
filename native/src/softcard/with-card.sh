#!/usr/bin/env bash
# Runs a command, and all that it starts, on a host whose RDMA devices are the card in software. Needs root, for a mount
# namespace of its own in which /sys/class/infiniband shows the devices.
#
#   with-card.sh [-l LIBRARIES] [-d DEVICES] [-p PORTS] [-r] [-f FAULTS] [-o FOLDER] -- COMMAND...
#
#   -l  folder of libibverbs.so.1 and libmlx5.so.1 (default: this script's)
#   -d  devices (1), -p  ports of each (1), -r  RoCE instead of InfiniBand
#   -f  faults, separated by semicolons; see README.md
#   -o  where counters and what the processes share go (default: a new folder, removed at the end)
set -euo pipefail

libraries=$(cd "$(dirname "$0")" && pwd) devices=1 ports=1 link=infiniband faults='' folder=''
while getopts l:d:p:rf:o: option; do
    case $option in
        l) libraries=$(cd "$OPTARG" && pwd) ;;
        d) devices=$OPTARG ;;
        p) ports=$OPTARG ;;
        r) link=ethernet ;;
        f) faults=$OPTARG ;;
        o) mkdir -p "$OPTARG" && folder=$(cd "$OPTARG" && pwd) ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export DEEPEP_CARD_FOLDER=${folder:-$work/shared} DEEPEP_CARD_DEVICES=$devices DEEPEP_CARD_PORTS=$ports
export DEEPEP_CARD_LINK=$link DEEPEP_CARD_FAULTS=$faults
export LD_LIBRARY_PATH=$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# A CPU executes the queues, so they have to lie where it can read them.
export NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE=${NVSHMEM_IBGDA_FORCE_NIC_BUF_MEMTYPE:-hostmem}
mkdir -p "$DEEPEP_CARD_FOLDER"
bash "$(dirname "$0")/sysfs.sh" "$work/sys" "$devices" "$ports" "$link"
status=0
unshare --mount bash -c 'mount --bind "$0" /sys/class/infiniband && exec "$@"' "$work/sys/class/infiniband" "$@" || status=$?
exit "$status"
