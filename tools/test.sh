#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Builds and runs the tests, with assertions on. Arguments go to ctest:
#
#   tools/test.sh -L unit        those with a label
#   tools/test.sh -R watchdog    those with a name

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tools/setup.sh

# The preset dev is a Debug build: the assertions are on, which they are not in a
# release.
cmake --preset dev
cmake --build --preset dev --target asio_wheel_tests --parallel "$(nproc)"
ctest --preset dev --parallel "$(nproc)" "$@"
