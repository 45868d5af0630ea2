#!/usr/bin/env bash
# Makes a folder that shows a host's devices as the kernel does: the card in software, and GPUs as the emulated driver
# numbers them.
#
#   sysfs.sh FOLDER [DEVICES [PORTS [infiniband|ethernet [GPUS]]]]
set -euo pipefail

folder=$1 devices=${2:-1} ports=${3:-1} link=${4:-infiniband} gpus=${5:-0}
rm -rf "$folder"
mkdir -p "$folder/bus/pci/devices" "$folder/bus/pci/drivers/mlx5_core" "$folder/class/infiniband"
for ((g = 1; g <= gpus; g++)); do
    address=$(printf '0000:%02x:00.0' "$g")
    slot=$folder/devices/pci0000:00/$address
    mkdir -p "$slot"
    echo 0x10de > "$slot/vendor"
    echo 0x030200 > "$slot/class"
    ln -s "$slot" "$folder/bus/pci/devices/$address"
done
for ((d = 0; d < devices; d++)); do
    slot=$folder/devices/pci0000:f0/0000:f0:0$((d + 1)).0/0000:f$((d + 1)):00.0
    card=$folder/class/infiniband/mlx5_$d
    mkdir -p "$slot" "$card"
    ln -s "$slot" "$card/device"
    ln -s "$folder/bus/pci/drivers/mlx5_core" "$slot/driver"
    for ((p = 1; p <= ports; p++)); do
        port=$card/ports/$p
        mkdir -p "$port/gid_attrs/types"
        echo '4: ACTIVE' > "$port/state"
        echo '5: LinkUp' > "$port/phys_state"
        echo '400 Gb/sec (4X NDR)' > "$port/rate"
        if [ "$link" = ethernet ]; then echo Ethernet; else echo InfiniBand; fi > "$port/link_layer"
        echo 'RoCE v2' | tee "$port/gid_attrs/types/0" > "$port/gid_attrs/types/1"
    done
done
