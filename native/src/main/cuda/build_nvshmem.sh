#!/usr/bin/env bash
# Compiles every .cu of one module that uses NVSHMEM's device API, linked with its device library, into a fatbin: SASS
# for sm_90 and sm_100. Only where NVSHMEM is found; without it nothing is compiled, in peace.
#
#   build_nvshmem.sh SOURCE_DIR OUTPUT_DIR WORK_DIR [NVCC]
#
# SOURCE_DIR  the module's src/main/cuda-nvshmem; headers also from the src/main/cuda beside it
# OUTPUT_DIR  receives NAME.fatbin for each NAME.cu
# WORK_DIR    keeps what is linked
# NVCC        as for build.sh
#
# NVSHMEM is looked for in NVSHMEM_HOME, in Python's package nvidia-nvshmem-cu13, and in /usr/local/nvshmem.
set -euo pipefail

source_dir=$1 output_dir=$2 work_dir=$3 nvcc=${4:-auto}
here=$(cd "$(dirname "$0")" && pwd)
include_dir=$here/include
. "$here/find_nvcc.sh"
module=$(basename "$(cd "$source_dir/../../.." 2>/dev/null && pwd || echo "$source_dir")")
[ -d "$source_dir" ] || exit 0

find_nvshmem() {
    local candidate
    for candidate in "${NVSHMEM_HOME:-}" \
        "$(python3 -c 'import nvidia.nvshmem as n; print(list(n.__path__)[0])' 2>/dev/null || true)" \
        /usr/local/nvshmem; do
        if [ -e "$candidate/lib/libnvshmem_device.a" ]; then
            echo "$candidate"
            return
        fi
    done
}

is_current() { # NAME: its fatbin has a source, and is newer than that and every header
    local source=$source_dir/$1.cu newest
    [ -e "$source" ] || return 1
    newest=$(find "$source" "$source_dir/../cuda" "$include_dir/deepep" "$0" -type f -printf '%T@ %p\n' |
        sort -nr | sed -n '1s/^[^ ]* //p')
    [ ! "$newest" -nt "$output_dir/$1.fatbin" ]
}

# What the emulator's profile has left is for no GPU, and what is older than its source would be packaged with newer Java.
for fatbin in "$output_dir"/*.fatbin; do
    [ -e "$fatbin" ] || continue
    if [ "$(head -c 4 "$fatbin" | tail -c 3)" = ELF ] || ! is_current "$(basename "$fatbin" .fatbin)"; then rm "$fatbin"; fi
done

case $nvcc in
    none) exit 0 ;;
    auto) nvcc=$(find_nvcc) ;;
esac
nvshmem=$([ -z "$nvcc" ] || find_nvshmem)
if [ -z "$nvcc" ] || [ -z "$nvshmem" ]; then
    echo "[cuda] $module: built without kernels over NVSHMEM (give NVSHMEM_HOME, and nvcc of CUDA 13)"
    exit 0
fi
tools=$(dirname "$(readlink -f "$nvcc")")

mkdir -p "$output_dir" "$work_dir"
for source in "$source_dir"/*.cu; do
    name=$(basename "$source" .cu)
    fatbin=$output_dir/$name.fatbin
    [ ! -e "$fatbin" ] || continue
    echo "[cuda] $module: compiling $name with NVSHMEM of $nvshmem"
    images=()
    for arch in 90 100; do
        # Device code alone: relocatable, then linked, because one step leaves it unlinked without a word. By its
        # name nvlink knows what a file is: of one that does not end in .cubin it takes nothing, without a word.
        # Static variables are named after the path of the source: the same one wherever this is built.
        "$nvcc" -cubin -rdc=true -Xcicc --orig_src_path_name="$name.cu" -std=c++17 -O3 -Werror all-warnings -arch="sm_$arch" -I "$include_dir" \
            -I "$source_dir/../cuda" -I "$nvshmem/include" -o "$work_dir/$name.$arch.cubin" "$source"
        linked=$work_dir/$name.$arch.linked.cubin
        "$tools/nvlink" -arch="sm_$arch" "$work_dir/$name.$arch.cubin" "$nvshmem/lib/libnvshmem_device.a" -o "$linked"
        if ! grep -qa "\.text\.deepep_" "$linked" || ! grep -qa nvshmemi_device_state_d "$linked"; then
            echo "[cuda] $module: $linked lacks kernels or NVSHMEM's state" >&2
            exit 1
        fi
        images+=("--image3=kind=elf,sm=$arch,file=$linked")
    done
    "$tools/fatbinary" -64 --create="$fatbin.part" "${images[@]}"
    mv "$fatbin.part" "$fatbin"
done
