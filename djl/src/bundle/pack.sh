#!/usr/bin/env bash
# Packs the module's suites for GPU hosts that have PyTorch, g++ and no Java: FOLDER.tar.xz, see djl-tests.
#
#   pack.sh FOLDER DJL_SOURCES JAVA_HOME
#
# FOLDER       has lib/ (the jars of the tests' class path, without libtorch and DJL's JNI); the rest comes here
# DJL_SOURCES  a checkout of DJL, of the version in lib/: its JNI is compiled on the host against the PyTorch there
# Run in djl/, with its classes built.
set -euo pipefail
folder=$1 djl=$2 java_home=$3
modules=java.base,java.logging,java.management,java.naming,java.net.http,java.sql,java.xml,jdk.compiler,jdk.httpserver,jdk.incubator.vector,jdk.jfr,jdk.management,jdk.unsupported
engine=$djl/engines/pytorch/pytorch-engine/src/main/java/ai/djl/pytorch/jni
native=$djl/engines/pytorch/pytorch-native/src/main/native
[ -d "$native" ] || { echo "pack.sh: $djl is no checkout of DJL: $native is missing; give -Ddjl.sources" >&2; exit 2; }

rm -rf "$folder/runtime" "$folder/jni" "$folder/bin" "$folder/tests"
"$java_home/bin/jlink" --add-modules "$modules" --strip-debug --no-man-pages --no-header-files --compress zip-0 \
    --output "$folder/runtime"
mkdir -p "$folder/bin" "$folder/jni/jdk" "$folder/tests/djl"
cp src/bundle/djl-tests src/bundle/build_jni.sh "$folder/bin/"
# As in a checkout: the tests find the guide beside the module.
cp -r target/classes target/test-classes "$folder/tests/djl/"
mkdir -p "$folder/tests/docs/guides"
cp ../docs/guides/engines.md ../docs/guides/from-python.md "$folder/tests/docs/guides/"

# The tokenizers of other platforms are most of their jar.
tokenizers=$(echo "$folder"/lib/tokenizers-*.jar) unpacked=$folder/tokenizers
mkdir "$unpacked"
(cd "$unpacked" && "$java_home/bin/jar" xf "$tokenizers" && cd native/lib && find . -mindepth 1 -maxdepth 1 -type d ! -name "linux-$(uname -m)" -exec rm -r {} +)
"$java_home/bin/jar" cfM "$tokenizers" -C "$unpacked" .
rm -r "$unpacked"

cp "$native"/*.cc "$native"/*.h "$folder/jni/"
cp -r "$djl/api/src/main/native/djl" "$folder/jni/"
cp -r "$java_home/include/"* "$folder/jni/jdk/"
"$java_home/bin/javac" -proc:none -nowarn -h "$folder/jni" -d "$folder/jni/classes" -cp "$folder/lib/*" "$engine/PyTorchLibrary.java"
rm -r "$folder/jni/classes"
bash ../bench/src/main/bundle/pack.sh "$folder"
