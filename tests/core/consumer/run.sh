#!/bin/sh
# Installs the library to an empty place and uses it from there, as a stranger would: by CMake, by pkg-config.
set -eu
source=$1 work=$2
rm -rf "$work"
# As with a compiler that makes position-dependent code unless it is told otherwise. Not optimised: how it is
# installed is tried here.
cmake -S "$source" -B "$work/build" -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_C_FLAGS=-fno-pie -DCMAKE_EXE_LINKER_FLAGS=-no-pie >"$work.log"
cmake --build "$work/build" -j >>"$work.log"
cmake --install "$work/build" --prefix "$work/prefix" >>"$work.log"
here=$source/tests/core/consumer
cmake -S "$here" -B "$work/use" -DCMAKE_PREFIX_PATH="$work/prefix" >>"$work.log"
cmake --build "$work/use" >>"$work.log"
"$work/use/use"
cmake -S "$source/demo/examples/native" -B "$work/native" -DCMAKE_PREFIX_PATH="$work/prefix" >>"$work.log"
cmake --build "$work/native" >>"$work.log"
"$work/native/app_lines" </dev/null
"$work/native/acp_agent" </dev/null
"$work/prefix/bin/abp-replay" "$here/../recordings/session.jsonl"
PKG_CONFIG_PATH=$(dirname "$(find "$work/prefix" -name abp.pc)")
export PKG_CONFIG_PATH
# shellcheck disable=SC2046
cc "$here/use.c" -o "$work/use-pc" $(pkg-config --cflags --libs abp)
"$work/use-pc"
# What is installed can be moved.
mv "$work/prefix" "$work/moved"
PKG_CONFIG_PATH=$(dirname "$(find "$work/moved" -name abp.pc)")
# shellcheck disable=SC2046
cc "$here/use.c" -o "$work/use-moved" $(pkg-config --cflags --libs abp)
"$work/use-moved"
