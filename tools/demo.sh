#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Starts example/http_server with timeouts of a few seconds, and opens thousands
# of connections to it on loopback: busy ones, silent ones, some that drip, some
# that read nothing, some half closed. Then compares the requests per second
# with timeouts and without. Takes about 20 seconds after the build. Arguments go
# to example/http_load:
#
#   tools/demo.sh --busy 2000 --silent 5000
#
# The exit status is 0 if each bad connection was thrown off, none early and none
# more than a second late, no good one was, and the servers stopped gracefully.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# The server's, in seconds, and the load's, which checks them.
timeouts=(--idle 3 --header-timeout 3 --write-timeout 3 --grace 4)
rounds=7 # of the comparison
build=build/release
work=$(mktemp -d)
servers=() # process ids
load=

# All run in the background, so that a signal to this script ends them at once.
clean_up() {
  local pid
  for pid in $load "${servers[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
  echo "demo: $*" >&2
  exit 1
}

quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "failed: $*"
  }
}

# start_server NAME [OPTION ...]: sets port
start_server() {
  local i
  "$build/example/http_server" --root "$work/www" "${@:2}" >"$work/$1" &
  servers+=($!)
  port=
  for ((i = 0; i < 100 && ${#port} == 0; ++i)); do
    kill -0 $! 2>/dev/null || fail "the server does not start"
    sleep 0.05
    port=$(sed -n 's/^listening on .*://p' "$work/$1")
  done
  [[ -n $port ]] || fail "the server does not start"
}

# run_load [OPTION ...]: in the background, waited for; sets status
run_load() {
  "$build/example/http_load" --port "$port" "$@" &
  load=$!
  status=0
  wait "$load" || status=$?
  load=
}

# A graceful stop of all servers: each says what it did, and ends with 0.
stop_servers() {
  local pid ended
  for pid in "${servers[@]}"; do
    kill -TERM "$pid" || true
  done
  for pid in "${servers[@]}"; do
    ended=0
    wait "$pid" || ended=$?
    ((ended == 0)) || fail "a server ended with status $ended"
  done
  servers=()
}

# median FILE, of numbers
median() { sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"; }

tools/setup.sh

echo "building (a minute or two, the first time) ..."
quietly cmake --preset release
quietly cmake --build --preset release --parallel "$(nproc)" \
  --target asio_wheel_example_http_server asio_wheel_example_http_load

mkdir "$work/www"
truncate -s 64M "$work/www/large" # for those that will not read it

start_server mixed "${timeouts[@]}" --minimum-rate 500
echo "http_server on port $port: a request within 3 s, its header within 3 s,"
echo "500 bytes per second after 4 s, and no answer may stall for more than 3 s"
echo
run_load --duration 8.5 "${timeouts[@]}" "$@"
mixed_status=$status
stop_servers
echo
sed 1d "$work/mixed"

# One connection's requests follow each other without a pause.
echo
echo "requests per second of 64 busy connections, $rounds rounds each"
declare -A port_of
start_server with
port_of[with]=$port
start_server without --no-timeouts
port_of[without]=$port
nobody=(--silent 0 --drips-header 0 --drips-body 0 --not-reading 0
  --half-closed 0)
for ((round = 0; round < rounds; ++round)); do
  for each in with without; do
    port=${port_of[$each]}
    run_load --brief --busy 64 "${nobody[@]}" --rate 0 --duration 0.6 \
      >>"$work/$each.rates"
    ((status == 0)) || fail "busy connections were not served"
  done
done
stop_servers

for each in with without; do
  printf '%8s timeouts: %s; median %d; the server took %s us of CPU for each\n' \
    "$each" "$(paste -sd ' ' "$work/$each.rates")" \
    "$(median "$work/$each.rates")" \
    "$(sed -n 's/.* \([0-9.]*\) us per request$/\1/p' "$work/$each")"
done
awk -v with="$(median "$work/with.rates")" \
  -v without="$(median "$work/without.rates")" \
  'BEGIN { printf "%17s: %.1f %%\n", "ratio", 100 * with / without }'

exit "$mixed_status"
