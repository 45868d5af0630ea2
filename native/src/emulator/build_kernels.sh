#!/usr/bin/env bash
# Compiles every .cu of one module for the host, as code that the emulated driver loads in place of a fatbin.
#
#   build_kernels.sh SOURCE_DIR OUTPUT_DIR WORK_DIR
#
# SOURCE_DIR  as for native/src/main/cuda/build.sh or build_nvshmem.sh
# OUTPUT_DIR  receives NAME.fatbin for each NAME.cu: a shared library
# WORK_DIR    receives what the compiler is given
set -euo pipefail
export LC_ALL=C # [a-z] is not each letter everywhere: in Turkish there is no q, w, or x

source_dir=$1 output_dir=$2 work_dir=$3 cxx=${CXX:-g++}
here=$(cd "$(dirname "$0")" && pwd)
include_dir=$here/../main/cuda/include
driver_dir=$here/../../target/emulator
. "$here/../main/cuda/in_parallel.sh"

[ -d "$source_dir" ] || exit 0
source_dir=$(cd "$source_dir" && pwd)
code_dir=${source_dir%-nvshmem} # where headers are
mapfile -t sources < <(find "$source_dir" -name '*.cu' | sort)
[ ${#sources[@]} -gt 0 ] || exit 0
mkdir -p "$output_dir" "$work_dir"
rm -f "$work_dir/settings" # so that the build for GPUs replaces what this one leaves

# The kernels of a source and of the sources it includes, each with its namespace.
kernels_of() {
    local included
    tr '\n' ' ' <"$1" |
        { grep -oE 'namespace [a-z_:]+ \{|__global__ void( *__launch_bounds__\([^)]*\))? *[a-z_0-9]+\(' || true; } |
        sed -E 's/ *\{$//; s/\($//; s/__global__ void( *__launch_bounds__\([^)]*\))? */kernel /' |
        awk '$1 == "namespace" { ns = $2 "::" } $1 == "kernel" { print $2, "::" ns $2 }'
    for included in $(sed -nE 's/^#include "(.*\.cu)"$/\1/p' "$1"); do
        kernels_of "$code_dir/$included"
    done
}

# No -Wall: what is a warning on a GPU, nvcc says.
language=(-std=c++17 -w -fpermissive -include cuda_on_host.h -I "$here/device" -I "$here/driver" -I "$here/nvshmem" -I "$include_dir" -I "$code_dir")

races=() # has the compiler tell of each access
[ -z "${DEEPEP_EMULATOR_RACES:-}" ] || races=(-g -fsanitize=thread --param tsan-distinguish-volatile=1)

compile() {
    local source=$1 name unit
    name=$(basename "$source" .cu)
    unit=$work_dir/$name.cpp
    {
        echo "#include \"$source\""
        kernels_of "$source" | while read -r kernel function; do
            echo "DEEPEP_EMULATED_KERNEL($kernel, $function)"
        done
    } >"$unit"
    # Products are not fused, as __fmul_rn promises.
    "$cxx" "${language[@]}" -O2 -fPIC -fno-gnu-unique -ffp-contract=off -U_FORTIFY_SOURCE ${races[@]+"${races[@]}"} \
        -c -o "$work_dir/$name.o" "$unit"
    "$cxx" -shared -Wl,-Bsymbolic -o "$output_dir/$name.fatbin.part.$$" "$work_dir/$name.o" "$driver_dir/libcuda.so.1"
    echo "${DEEPEP_EMULATOR_RACES:-}" >"$work_dir/$name.races"
    mv "$output_dir/$name.fatbin.part.$$" "$output_dir/$name.fatbin"
}

is_current() { # nothing that it may include is newer, and it tells of its accesses if it should
    local fatbin=$output_dir/$1.fatbin
    [ -e "$fatbin" ] && [ "$(cat "$work_dir/$1.races" 2>/dev/null)" = "${DEEPEP_EMULATOR_RACES:-}" ] &&
        [ -z "$(find "$source_dir" "$code_dir" "$include_dir" "$here" -newer "$fatbin" -type f | head -1)" ] &&
        [ "$(head -c 4 "$fatbin" | tail -c 3)" = ELF ]
}

stale=()
for source in "${sources[@]}"; do
    is_current "$(basename "$source" .cu)" || stale+=("$source")
done
in_parallel compile ${stale[@]+"${stale[@]}"}
