#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Checks example/line_proxy in front of example/echo_server, which answers; when
# stopped, hangs: its kernel accepts connections and requests; and when it is
# not there, is refused: line_proxy.sh PATH_OF_LINE_PROXY. The echo server is
# beside it.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

binary=$1
echo_server=$(dirname "$binary")/echo_server

for wrong in '' --upstream=x --upstream=localhost:nothing \
  '--upstream=127.0.0.1:1 --attempts=0' --prot=1; do
  # shellcheck disable=SC2086 # options, to be split
  if timeout 5 "$binary" $wrong >"$work/wrong" 2>&1; then
    fail "$wrong is taken"
  fi
  grep -q '^line_proxy: ' "$work/wrong" || fail "$wrong: no clear message"
done
passed "wrong options are refused"

start_server upstream "$echo_server"
upstream=${port_of[upstream]}
start_server proxy "$binary" --upstream "127.0.0.1:$upstream" --deadline 1 \
  --attempts 4 --read 3
port=${port_of[proxy]}

# ask REQUEST ANSWER: on descriptor 3; sets took, in ms
ask() {
  local answer=none begun
  begun=$(now_ms)
  echo "$1" >&3
  IFS= read -r -t 5 answer <&3 || true
  took=$(($(now_ms) - begun))
  [[ $answer == "$2" ]] || fail "the answer to '$1' is '$answer', not '$2'"
}

exec 3<>"/dev/tcp/127.0.0.1/$port"
for ((i = 0; i < 20; ++i)); do
  ask "request $i" "request $i"
done
printf 'one\ntwo\n' >&3 # at once
ask three one
IFS= read -r -t 5 line <&3 && [[ $line == two ]] || fail "no second answer"
IFS= read -r -t 5 line <&3 && [[ $line == three ]] || fail "no third answer"
passed "an upstream that answers: right answers"

kill -STOP "${pid_of[upstream]}"
for ((i = 0; i < 2; ++i)); do
  ask "hangs" "ERROR timeout"
  within 1000 5000 "$took" "an upstream that hangs: an error"
done
kill -CONT "${pid_of[upstream]}"
ask "awake" "awake" # and not what came too late
passed "the upstream goes on: right answers"

kill -KILL "${pid_of[upstream]}"
wait "${pid_of[upstream]}" 2>/dev/null || true
ask "nobody" "ERROR refused"
within 350 5000 "$took" "no upstream: an error after 4 attempts" # 50+100+200

# The upstream comes up while the proxy tries to connect.
(
  sleep 0.1
  exec "$echo_server" --port "$upstream"
) >"$work/late" 2>&1 3>&- &
started+=("$!")
ask "late" "late"
within 50 5000 "$took" "an upstream that comes up meanwhile: an answer"

# Hundred clients at once, each with a deadline of its own.
kill -STOP "$!"
begun=$(now_ms)
for ((i = 0; i < 100; ++i)); do
  (
    exec 4<>"/dev/tcp/127.0.0.1/$port"
    echo "$i" >&4
    IFS= read -r -t 5 line <&4 && [[ $line == "ERROR timeout" ]]
  ) &
  clients[i]=$!
done
for ((i = 0; i < 100; ++i)); do
  wait "${clients[i]}" || fail "one of many clients has no answer"
done
within 1000 5000 $(($(now_ms) - begun)) "100 clients at once have their errors"

# A request is under way when the proxy is told to stop: it has its answer.
echo "last" >&3
sleep 0.2
stop_server proxy
IFS= read -r -t 5 line <&3 && [[ $line == "ERROR timeout" ]] ||
  fail "a request under way has no answer"
passed "a request under way has its answer"
ended proxy 103 'deadline exceeded'
ended proxy 1 'Connection refused'
ended proxy 25 'answered'
ended proxy 100 'End of file'
# Its answer came so late that its share of the drain ends with the drain: either
# may close it.
ended proxy 1 '(idle timeout: no bytes moved|Operation canceled)'
