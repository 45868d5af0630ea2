#!/usr/bin/env bash
# require_device_code.sh ROOT FOLDER: fails unless FOLDER has a fatbin for every kernel source of the library's modules,
# real ones, and those over NVSHMEM.
set -euo pipefail
root=$1 folder=$2
missing=0
for source in "$root"/{native,kernels-normal,kernels-lowlatency}/src/main/{cuda,cuda-nvshmem}/*/*.cu \
    "$root"/{native,kernels-normal,kernels-lowlatency}/src/main/{cuda,cuda-nvshmem}/*.cu; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .cu).fatbin
    found=$(find "$folder" -name "$name" -print -quit)
    # The first bytes of NVIDIA's container for device code; the emulator's files have the same names.
    if [ -z "$found" ] || [ "$(od -An -tx1 -N4 "$found" | tr -d ' ')" != 50ed55ba ]; then
        echo "no device code of ${source#"$root"/}: a release needs nvcc (CUDA 13) and NVSHMEM 3.4.5 (NVSHMEM_HOME)" >&2
        missing=1
    fi
done
exit $missing
