#!/usr/bin/env bash
# pack.sh FOLDER: packs it beside itself as FOLDER.tar.xz, or as FOLDER.tar.gz where there is no xz, and says how large it is.
set -euo pipefail
folder=$1
parent=$(dirname "$folder")
name=$(basename "$folder")
rm -f "$folder".tar.*
if command -v xz >/dev/null; then
    archive=$folder.tar.xz
    tar -C "$parent" -cf - "$name" | xz -T0 -6 >"$archive"
else
    archive=$folder.tar.gz
    tar -C "$parent" -czf "$archive" "$name"
fi
echo "$archive: $(du -h "$archive" | cut -f1), unpacked $(du -sh "$folder" | cut -f1)"
