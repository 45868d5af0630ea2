#!/usr/bin/env bash
# check.sh FOLDER: unpacks the archive that pack.sh made of it elsewhere and tries it as a machine without Java would.
set -euo pipefail
folder=$1
max_mib=60

archive=$(ls "$folder".tar.*)
size=$(stat -c %s "$archive")
if [ "$size" -gt $((max_mib << 20)) ]; then
    echo "$archive has $size bytes, more than $max_mib MiB" >&2
    exit 1
fi

elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
tar -C "$elsewhere" -xf "$archive"
command=$elsewhere/$(basename "$folder")/bin/deepep

# No JAVA_HOME, and no java on the path.
mkdir "$elsewhere/path"
for tool in sh readlink dirname; do
    ln -s "$(command -v "$tool")" "$elsewhere/path/$tool"
done
run() { # EXPECTED COMMAND...: the output must contain the expected text
    local expected=$1 output
    shift
    if ! output=$(env -i PATH="$elsewhere/path" HOME="$elsewhere" "$command" "$@" 2>&1) ||
        ! grep -qF -- "$expected" <<<"$output"; then
        printf 'the bundle failed: deepep %s\n%s\n' "$*" "$output" >&2
        exit 1
    fi
}
run "test-intranode" --help
run " passed, 0 failed" test-intranode --backend host --ranks 2 --num-tokens 4 --hidden 256 --num-experts 8 --num-topk 2
run " passed, 0 failed" test-low-latency --backend host --ranks 2 --num-tokens 4 --hidden 256 --num-experts 8 --num-topk 2

# NAME-VERSION is ":NAME:VERSION" in the list.
named=$(sed -n 's/^[^ ]*:\([^:]*\):\([^:]*\)$/\1-\2/p' "$folder/THIRD-PARTY.txt")
for jar in "$folder"/lib/*.jar; do
    name=$(basename "$jar" .jar)
    case $name in deepep-*) continue ;; esac
    if ! grep -qxF "$name" <<<"$named"; then
        echo "THIRD-PARTY.txt does not name lib/$name.jar" >&2
        exit 1
    fi
done

echo "$archive works without Java installed"
# File names stand uncompressed in a jar.
if ! grep -aq '\.fatbin' "$folder"/lib/deepep-*-cuda13*.jar; then
    echo "WARNING: $archive has no device code (built without nvcc): it runs the host backend alone; install CUDA 13 for GPUs" >&2
fi
