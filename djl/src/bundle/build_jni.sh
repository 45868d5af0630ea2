#!/usr/bin/env bash
# Compiles DJL's JNI against the PyTorch of python3, for CUDA if that is: half a minute on 16 cores.
#
#   build_jni.sh SOURCES OUT   writes OUT/libdjl_torch.so, links PyTorch's libraries beside it, and OUT/env to be sourced
set -euo pipefail
sources=$1
mkdir -p "$2/objects"
out=$(cd "$2" && pwd) # DJL takes no relative path
torch=$(python3 -c 'import os, torch; print(os.path.dirname(torch.__file__))')
version=$(python3 -c 'import torch; print(torch.__version__.split("+")[0])')
ln -sf "$torch"/lib/*.so* "$out/"
flags=() libraries=(-ltorch -ltorch_cpu -lc10) flavor=cpu
if [ -e "$torch/lib/libtorch_cuda.so" ]; then
    flavor=cu$(python3 -c 'import torch; print(torch.version.cuda.replace(".", ""))')
    cuda=${CUDA_HOME:-/usr/local/cuda}
    flags=(-DUSE_CUDA -I"$cuda/include")
    libraries+=(-ltorch_cuda -lc10_cuda)
fi
export sources out torch
find "$sources" -maxdepth 1 -name '*.cc' | xargs -P "$(nproc)" -I{} sh -c '
    source=$1 && shift
    g++ -std=c++17 -O1 -fPIC -w "$@" -I"$sources" -I"$sources/jdk" -I"$sources/jdk/linux" -I"$torch/include" \
        -I"$torch/include/torch/csrc/api/include" -c "$source" -o "$out/objects/$(basename "$source").o"' _ {} "${flags[@]}"
g++ -shared -o "$out/libdjl_torch.so" "$out"/objects/*.o -L"$torch/lib" "${libraries[@]}"

# What PyTorch's libraries need lies in packages beside it.
nvidia=$(python3 - <<'PY'
import glob, os, torch
packages = os.path.dirname(os.path.dirname(torch.__file__))
print(":".join(sorted({os.path.dirname(p) for p in glob.glob(packages + "/nvidia/**/lib*.so*", recursive=True)})))
PY
)
# DJL loads every library of the folder by itself unless told not to; these come by their dependencies.
others=$(ls "$out" | grep -E '\.so' | grep -vE '^lib(c10|c10_cuda|torch|torch_cpu|torch_cuda|djl_torch|caffe2_nvrtc)\.so$' | paste -sd, -)
cat >"$out/env" <<EOF
export PYTORCH_LIBRARY_PATH=$out PYTORCH_VERSION=$version PYTORCH_FLAVOR=$flavor
export LD_LIBRARY_PATH=$torch/lib:$nvidia:\${LD_LIBRARY_PATH:-}
export PYTORCH_LIBRARY_EXCLUSION=$others
EOF
