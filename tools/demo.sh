#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Starts example/echo_server with an idle timeout of 4 seconds, and opens
# thousands of connections to it on loopback: some go on, some fall silent. Takes
# about 15 seconds after the build. Arguments go to example/load_generator:
#
#   tools/demo.sh --connections 1000
#
# The exit status is 0 if each silent connection was closed, none early and none
# more than a second late, and no other one.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

idle=4 # seconds
build=build/release
work=$(mktemp -d)
server=    # process ids
generator=

# Both run in the background, so that a signal to this script ends them at once.
clean_up() {
  local pid
  for pid in $generator $server; do
    kill -KILL "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    echo "demo: failed: $*" >&2
    exit 1
  }
}

tools/setup.sh

echo "building (a minute, the first time) ..."
quietly cmake --preset release
quietly cmake --build --preset release --parallel "$(nproc)" \
  --target asio_wheel_example_echo_server asio_wheel_example_load_generator

"$build/example/echo_server" --idle "$idle" >"$work/server" &
server=$!
port=
for ((i = 0; i < 100 && ${#port} == 0; ++i)); do
  kill -0 "$server" || exit 1
  sleep 0.05
  port=$(sed -n 's/^listening on .*://p' "$work/server")
done
if [[ -z $port ]]; then
  echo "demo: the server does not start" >&2
  exit 1
fi

echo "echo_server on port $port closes connections after $idle s of silence"
"$build/example/load_generator" --port "$port" --idle "$idle" "$@" &
generator=$!
status=0
wait "$generator" || status=$?
generator=

# A graceful stop: the server says what it did, and ends with 0.
kill -TERM "$server" || true
server_status=0
wait "$server" || server_status=$?
server=
sed 1d "$work/server"
if ((server_status != 0)); then
  echo "demo: the server ended with status $server_status" >&2
  ((status != 0)) || status=1
fi
exit "$status"
