#!/usr/bin/env bash
# Compiles every .cu of one module into a fatbin: SASS for some GPUs, and PTX that the driver compiles for all others.
#
#   build.sh SOURCE_DIR OUTPUT_DIR WORK_DIR [NVCC [SASS]]
#
# SOURCE_DIR  the module's src/main/cuda; all .cu below it, whose names must differ
# OUTPUT_DIR  receives NAME.fatbin for each NAME.cu
# WORK_DIR    keeps dependency lists and NAME.ptxas, what ptxas said of registers and spills
# NVCC        a path, "auto" (the default) to look for one, "none" to compile nothing
# SASS        90,100 (the default), one of them, or "local": for the GPUs of this machine; if it has none of these, 90
#             for the kernels that must not spill, to see that they do not
#
# A fatbin newer than its source and all that this includes is kept. Code that spills registers is an error, but for
# the kernels named below. Without nvcc nothing is compiled, in peace, unless NVCC named one.
set -euo pipefail

source_dir=$1 output_dir=$2 work_dir=$3 nvcc=${4:-auto} sass=${5:-90,100}
here=$(cd "$(dirname "$0")" && pwd)
include_dir=$here/include
. "$here/find_nvcc.sh"
. "$here/in_parallel.sh"
module=$(basename "$(cd "$source_dir/../../.." 2>/dev/null && pwd || echo "$source_dir")")

[ -d "$source_dir" ] || exit 0
# In a loop, because the bash of macOS has no mapfile.
sources=()
while read -r source; do
    sources+=("$source")
done < <(find "$source_dir" -name '*.cu' | LC_ALL=C sort)

drop_orphans() { # the outputs of sources that are gone, and those of native/src/emulator
    local output name names
    names=$(printf '%s\n' "${sources[@]+"${sources[@]##*/}"}")
    for output in "$output_dir"/*.fatbin; do
        [ -e "$output" ] || continue
        name=$(basename "$output" .fatbin)
        grep -qxF "$name.cu" <<<"$names" || rm -f "$output" "$work_dir/$name".{d,ptxas}
        [ ! -e "$output" ] || [ "$(head -c 4 "$output" | tail -c 3)" != ELF ] || rm -f "$output"
    done
}
drop_orphans

[ ${#sources[@]} -gt 0 ] || exit 0
duplicates=$(printf '%s\n' "${sources[@]##*/}" | sort | uniq -d | tr '\n' ' ')
if [ -n "$duplicates" ]; then
    echo "[cuda] $module: more than one source is called $duplicates: fatbins share one folder, rename one" >&2
    exit 1
fi

is_current() { # NAME: its fatbin is newer than its source and every header, none of which is gone
    local fatbin=$output_dir/$1.fatbin list=$work_dir/$1.d file
    [ -e "$fatbin" ] && [ -e "$list" ] || return 1
    # "target : source header \", one file a line: system headers change only with nvcc, whose version is in the settings
    while read -r file; do
        [ -e "$file" ] && [ ! "$file" -nt "$fatbin" ] || return 1
    done < <(tr ' \\' '\n\n' <"$list" | grep -F -e "$include_dir/" -e "$source_dir/")
}

drop_stale() { # where nothing compiles: a fatbin that is older than its source would be packaged with newer Java
    local source
    for source in "${sources[@]}"; do
        is_current "$(basename "$source" .cu)" || rm -f "$output_dir/$(basename "$source" .cu).fatbin"
    done
}

case $nvcc in
    none)
        drop_stale
        echo "[cuda] $module: device code not compiled (-Dnvcc=none)"
        exit 0
        ;;
    auto)
        nvcc=$(find_nvcc)
        if [ -z "$nvcc" ]; then
            drop_stale
            echo "[cuda] $module: no nvcc found, built without device code (install CUDA 13, or give -Dnvcc=/path/to/nvcc)"
            exit 0
        fi
        ;;
    *)
        if [ ! -x "$nvcc" ]; then
            echo "[cuda] $module: -Dnvcc=$nvcc is no program" >&2
            exit 1
        fi
        ;;
esac

if [ "$sass" = local ]; then
    sass=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null |
        sed -n -e 's/^9\.0$/90/p' -e 's/^10\.0$/100/p' | sort -un | paste -sd, || true)
fi
flags=(-fatbin -std=c++17 -O3 -Werror all-warnings -Xptxas -v -I "$include_dir" -I "$source_dir")

# Kernels that write a card's queues save registers around that, once for each message; those that run while ranks are
# masked look up who stands in for whom.
may_spill() {
    [[ $1 == *_ibgda_* || $1 == *_masked_* ]]
}

targets() { # NAME: one PTX for all, as the kernels have nothing for sm_100 alone: half of the compiling is to make it
    local code=sm_${sass:-90}
    [ -n "$sass" ] || ! may_spill "$1" || code=
    echo "arch=compute_90,code=[${code//,/,sm_}${code:+,}compute_90]"
}

mkdir -p "$output_dir" "$work_dir"
settings="$("$nvcc" --version | tail -1) ${flags[*]} SASS $sass"
if [ "$(cat "$work_dir/settings" 2>/dev/null)" != "$settings" ]; then
    rm -f "$output_dir"/*.fatbin
    printf '%s\n' "$settings" >"$work_dir/settings"
fi

compile() { # SOURCE: writes the fatbin in one step, so that a build that was cut short leaves none
    local source=$1 name part
    name=$(basename "$source" .cu)
    part=$output_dir/$name.fatbin.part.$$
    # A fatbin is as old as the moment its compilation began: what is saved meanwhile is compiled next time.
    touch "$work_dir/$name.began"
    # The preprocessor lists what it reads: nvcc's own -MD would run it again for that.
    if ! "$nvcc" "${flags[@]}" -gencode "$(targets "$name")" -Xcompiler -MMD,-MF,/dev/fd/3 -o "$part" "$source" \
        3>"$work_dir/$name.d" >"$work_dir/$name.ptxas" 2>&1; then
        grep -v '^ptxas info' "$work_dir/$name.ptxas" >&2 || true
        rm -f "$part" "$work_dir/$name.began"
        return 1
    fi
    if ! may_spill "$name" && grep -q '[1-9][0-9]* bytes spill' "$work_dir/$name.ptxas"; then
        echo "[cuda] $module: $name spills registers, which its copy loops cannot afford: see $work_dir/$name.ptxas" >&2
        rm -f "$part" "$work_dir/$name.began"
        return 1
    fi
    touch -r "$work_dir/$name.began" "$part"
    rm -f "$work_dir/$name.began"
    mv "$part" "$output_dir/$name.fatbin"
}

stale=()
for source in "${sources[@]}"; do
    is_current "$(basename "$source" .cu)" || stale+=("$source")
done
[ ${#stale[@]} -gt 0 ] || exit 0

echo "[cuda] $module: compiling ${#stale[@]} of ${#sources[@]} sources with $nvcc"
in_parallel compile "${stale[@]}"
