#!/usr/bin/env bash
# Builds the emulated driver: OUTPUT_DIR/libcuda.so.1.
#
#   build.sh OUTPUT_DIR [CXX]
set -euo pipefail

output_dir=$1 cxx=${2:-g++}
here=$(cd "$(dirname "$0")" && pwd)
library=$output_dir/libcuda.so.1
[ -e "$library" ] && [ -z "$(find "$here" -newer "$library" -type f | head -1)" ] && exit 0
mkdir -p "$output_dir"
# longjmp leaves one stack for another, which the checks of _FORTIFY_SOURCE take for an error.
"$cxx" -std=c++20 -O2 -g -fPIC -shared -Wall -Wextra -Werror -Wno-missing-field-initializers -U_FORTIFY_SOURCE \
    -Wl,-soname,libcuda.so.1 -o "$library.part" "$here"/driver/*.cpp -pthread -ldl
mv "$library.part" "$library"
