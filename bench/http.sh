#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Requests per second of example/http_server under wrk, with all its timeouts
# and with none: both servers up, rounds in turn, medians and their ratio. Wants
# wrk, and the examples built: cmake --build --preset release
#
#   bench/http.sh [ROUNDS [SECONDS [CONNECTIONS]]]      default: 9 3 100

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

rounds=${1:-9}
seconds=${2:-3}
connections=${3:-100}
server=build/release/example/http_server

command -v wrk >/dev/null || { echo "http.sh: needs wrk" >&2; exit 1; }
[[ -x $server ]] || { echo "http.sh: $server is not built" >&2; exit 1; }

work=$(mktemp -d)
pids=()
clean_up() {
  kill -KILL "${pids[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT

# Sets `port`.
start() {
  local name=$1
  shift
  "$server" "$@" >"$work/$name" 2>&1 &
  pids+=($!)
  port=
  for ((i = 0; i < 100 && ${#port} == 0; ++i)); do
    sleep 0.05
    port=$(sed -n 's/^listening on .*:\([0-9]*\).*$/\1/p' "$work/$name")
  done
  [[ -n $port ]] || { cat "$work/$name" >&2; exit 1; }
}

# Prints requests per second; errors end it.
measure() {
  local log=$work/wrk
  wrk -t 1 -c "$connections" -d "${seconds}s" --latency \
    "http://127.0.0.1:$1/hello" >"$log"
  if grep -q 'Socket errors\|Non-2xx' "$log"; then
    cat "$log" >&2
    exit 1
  fi
  awk '/Requests\/sec/ { r = $2 } / 99%/ { l = $2 } END { print r, l }' "$log"
}

median() { sort -g | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'; }
range() { sort -g | awk 'NR == 1 { l = $1 } END { print l "-" $1 }'; }

start with
with=$port
start without --no-timeouts
without=$port
measure "$with" >/dev/null
measure "$without" >/dev/null
echo "round   with timeouts (p99)      without (p99)   requests per second"
for ((r = 1; r <= rounds; ++r)); do
  a=$(measure "$with")
  b=$(measure "$without")
  echo "${a% *}" >>"$work/a"
  echo "${b% *}" >>"$work/b"
  printf '%5d   %13s (%s)   %12s (%s)\n' "$r" $a $b
done
a=$(median <"$work/a")
b=$(median <"$work/b")
echo "median  with $a ($(range <"$work/a")), without $b ($(range <"$work/b")), ratio $(awk "BEGIN { printf \"%.3f\", $a / $b }")"
