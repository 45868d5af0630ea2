#!/usr/bin/env bash
# Builds the card: OUTPUT_DIR/libibverbs.so.1 and OUTPUT_DIR/libmlx5.so.1. Needs the headers of rdma-core (libibverbs-dev).
#
#   build.sh [--if-possible] OUTPUT_DIR [CXX]
set -euo pipefail

optional=
[ "${1:-}" = --if-possible ] && optional=yes && shift
output_dir=$1 cxx=${2:-g++}
here=$(cd "$(dirname "$0")" && pwd)
if ! echo '#include <infiniband/mlx5dv.h>' | "$cxx" -E -x c++ - >/dev/null 2>&1; then
    echo "the network card in software needs $cxx and libibverbs-dev" >&2
    [ -n "$optional" ] && exit 0
    exit 1
fi
# The C++ runtime is linked in, so that the libraries run on other distributions too.
flags=(-std=c++20 -O2 -g -fPIC -Wall -Wextra -Werror -Wno-missing-field-initializers -pthread
    -static-libstdc++)
[ -e "$output_dir/libmlx5.so.1" ] && [ -z "$(find "$here" -newer "$output_dir/libmlx5.so.1" -type f | head -1)" ] && exit 0
mkdir -p "$output_dir"
objects=$(mktemp -d)
trap 'rm -rf "$objects"' EXIT
for source in "$here"/card/*.cpp "$here"/libs/*.cpp; do
    "$cxx" "${flags[@]}" -c -o "$objects/$(basename "$source" .cpp).o" "$source" &
done
for job in $(jobs -p); do wait "$job"; done
"$cxx" "${flags[@]}" -shared -Wl,-soname,libibverbs.so.1 -Wl,--version-script="$here/libs/verbs.map" \
    -o "$output_dir/libibverbs.so.1" $(printf '%s\n' "$objects"/*.o | grep -v '/mlx5.o$') -ldl
"$cxx" "${flags[@]}" -shared -Wl,-soname,libmlx5.so.1 -Wl,--version-script="$here/libs/mlx5.map" \
    -o "$output_dir/libmlx5.so.1.part" "$objects/mlx5.o" "$output_dir/libibverbs.so.1"
strip --strip-debug "$output_dir/libibverbs.so.1" "$output_dir/libmlx5.so.1.part"
mv "$output_dir/libmlx5.so.1.part" "$output_dir/libmlx5.so.1"
