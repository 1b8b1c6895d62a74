#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Builds asio_wheel as its users do and runs a program with it: installed,
# static and shared, and as a part of the user's own build; and asks for what
# tools/setup.sh says where there is nothing. Everything goes under build/install.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

root=$PWD
work=$root/build/install
passed=0

if command -v ccache >/dev/null; then
  export CMAKE_CXX_COMPILER_LAUNCHER=ccache
fi

# configure SOURCE BUILD [OPTION ...]
configure() {
  cmake -S "$1" -B "$2" -G Ninja -DCMAKE_BUILD_TYPE=Release "${@:3}" >/dev/null
}

# consume NAME PROJECT [OPTION ...]
consume() {
  local name=$1 build=$work/$1/consumer
  rm -rf "$build"
  configure "test/install/$2" "$build" "${@:3}"
  cmake --build "$build"
  local output
  output=$("$build/consumer")
  echo "$name: $output"
  [[ $output == "fired 1, aborted 1" ]]
  passed=$((passed + 1))
}

# installed NAME SHARED
installed() {
  local name=$1 build=$work/$1/build prefix=$work/$1/prefix
  rm -rf "$build" "$prefix"
  configure "$root" "$build" "-DBUILD_SHARED_LIBS=$2" \
    "-DCMAKE_INSTALL_PREFIX=$prefix" -DASIO_WHEEL_BUILD_TESTS=OFF \
    -DASIO_WHEEL_BUILD_EXAMPLES=OFF -DASIO_WHEEL_BUILD_BENCH=OFF
  cmake --build "$build" --target install >/dev/null
  consume "$name" find_package "-DCMAKE_PREFIX_PATH=$prefix"
}

# A machine with a compiler that finds no header, and neither Boost nor apt.
bare_machine() {
  local bin=$work/bare/bin tool output
  rm -rf "$bin"
  mkdir -p "$bin"
  for tool in bash awk dirname env; do
    ln -s "$(command -v "$tool")" "$bin/$tool"
  done
  printf '#!/bin/sh\nexit 1\n' >"$bin/g++"
  chmod +x "$bin/g++"
  if output=$(PATH=$bin tools/setup.sh 2>&1); then
    echo "setup on a bare machine: no failure"
    exit 1
  fi
  echo "setup on a bare machine: $output"
  [[ $output == *"Boost 1.81 or newer"*"no apt-get here"* ]]
  passed=$((passed + 1))
}

bare_machine
installed static OFF
installed shared ON
consume add_subdirectory add_subdirectory
consume fetch_content fetch_content

echo "consumers: $passed passed, 0 failed"
