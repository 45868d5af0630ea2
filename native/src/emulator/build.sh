#!/usr/bin/env bash
# Builds the emulated driver, OUTPUT_DIR/libcuda.so.1, and an NVSHMEM for it, in OUTPUT_DIR/nvshmem/lib.
#
#   build.sh OUTPUT_DIR [CXX]
set -euo pipefail

output_dir=$1 cxx=${2:-g++}
here=$(cd "$(dirname "$0")" && pwd)
library=$output_dir/libcuda.so.1
[ -e "$library" ] && [ -z "$(find "$here" -newer "$library" -type f | head -1)" ] && exit 0
mkdir -p "$output_dir"
language=(-std=c++20 -O2 -g -fPIC -shared -Wall -Wextra -Werror -Wno-missing-field-initializers)
mkdir -p "$output_dir/nvshmem/lib"
# longjmp leaves one stack for another, which the checks of _FORTIFY_SOURCE take for an error.
"$cxx" "${language[@]}" -U_FORTIFY_SOURCE -Wl,-soname,libcuda.so.1 -o "$library.part" "$here"/driver/*.cpp -pthread -ldl
"$cxx" "${language[@]}" -I "$here/driver" -Wl,-soname,libnvshmem_host.so.3 -o "$output_dir/nvshmem/lib/libnvshmem_host.so.3" \
    "$here"/nvshmem/host/*.cpp "$library.part" -pthread -ldl
# What NVSHMEM loads for its start and as a transport: here the host library does their work.
for plugin in bootstrap_uid transport_ibrc transport_ibgda; do
    "$cxx" "${language[@]}" -x c++ -o "$output_dir/nvshmem/lib/nvshmem_$plugin.so.3" /dev/null
done
mv "$library.part" "$library"
