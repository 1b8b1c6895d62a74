#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Checks example/websocket_chat:
# WEBSOCKET_CLIENT=PATH_OF_WEBSOCKET_CLIENT websocket_chat.sh PATH_OF_WEBSOCKET_CHAT

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

binary=$1
client=$WEBSOCKET_CLIENT

for wrong in --idle=0 --queue=0 --queue=x --prot=1; do
  if timeout 5 "$binary" "$wrong" >"$work/wrong" 2>&1; then
    fail "$wrong is taken"
  fi
  grep -q '^websocket_chat: ' "$work/wrong" || fail "$wrong: no clear message"
done
passed "wrong options are refused"

# join NAME SERVER FD: a client, what is written to FD is what it says
join() {
  mkfifo "$work/$1.in"
  eval "exec $3<>\"$work/$1.in\""
  start "$1" "$client" "${port_of[$2]}" <"$work/$1.in"
  heard "$1" '[joined]'
}

# heard NAME LINE: the client has printed that, or will within 5 seconds
heard() {
  local i
  for ((i = 0; i < 100; ++i)); do
    grep -Fxq -- "$2" "$work/$1" && return
    sleep 0.05
  done
  cat "$work/$1" "$work/$1.err" >&2
  fail "$1 did not hear: $2"
}

start_server server "$binary" --handshake 0.3 --idle 0.6
port=${port_of[server]}

# One that connects, and says nothing.
(
  begun=$(now_ms)
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  to_the_end 4
  within 300 5000 $(($(now_ms) - begun)) "a client without handshake is closed"
) &
no_handshake=$!
started+=("$no_handshake")

join ann server 5
join bob server 6
join eve server 7

echo "hello, it is Ann" >&5
heard bob "hello, it is Ann"
heard eve "hello, it is Ann"
echo "Bob here" >&6
heard ann "Bob here"
heard eve "Bob here"
! grep -Fq "it is Ann" "$work/ann" || fail "Ann hears herself"
passed "what one says, all others hear"

# Eve's kernel stays, and takes the ping; nobody answers it. Silence, a ping,
# silence again: she is gone. The others, silent as well, answer their pings,
# and stay.
kill -STOP "${pid_of[eve]}"
sleep 2.2
(($(grep -Fxc '[ping]' "$work/bob") >= 2)) || fail "Bob is not sent pings"
! grep -q ended "$work/ann" "$work/bob" || fail "one that answers is let go"
echo "still there?" >&5
heard bob "still there?"
passed "those that answer pings stay"
kill -CONT "${pid_of[eve]}"
for ((i = 0; i < 100; ++i)); do
  grep -q ended "$work/eve" && break
  sleep 0.05
done
grep -q ended "$work/eve" || fail "one that does not answer stays"
! grep -Fxq "still there?" "$work/eve" || fail "Eve hears what came too late"
passed "one that does not answer a ping is let go"
wait "$no_handshake" || exit 1

# A graceful stop takes leave of its members, by a close frame.
stop_server server
heard ann "[ended: $(sed -n 's/^\[ended: \(.*\), code .*/\1/p' "$work/ann"), code 1001]"
heard bob "[ended: $(sed -n 's/^\[ended: \(.*\), code .*/\1/p' "$work/bob"), code 1001]"
passed "members are told that the server goes away"
ended server 2 'The WebSocket stream was gracefully closed at both endpoints'
ended server 1 'idle timeout: no bytes moved'
ended server 1 'deadline exceeded'

# Slow readers: what waits for them is bounded, in messages and in time.
start_server small "$binary" --queue 20 --idle 10
start_server large "$binary" --queue 100000 --write 0.5 --idle 10
printf -v long '%060000d' 0 # a message of 60,000 bytes
for server in small large; do
  join "talker-$server" "$server" 5
  join "reader-$server" "$server" 6
  join "stopped-$server" "$server" 7
  kill -STOP "${pid_of[stopped-$server]}"
  for ((i = 0; i < 50; ++i)); do
    echo "$long"$'\n'"$long"$'\n'"$long"$'\n'"$long"$'\n'"$long" >&5
    sleep 0.02
  done
  sleep 1
  echo "that was all" >&5
  heard "reader-$server" "that was all"
  (($(grep -Fxc "$long" "$work/reader-$server") == 250)) ||
    fail "the one that reads did not get all"
done
stop_server small
ended small 1 'No buffer space available'
stop_server large
ended large 1 'write timeout: .*'
passed "one that does not read is let go, and the others hear all"
