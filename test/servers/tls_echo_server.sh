#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Checks example/tls_echo_server against the openssl command:
# tls_echo_server.sh PATH_OF_TLS_ECHO_SERVER

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

binary=$1

for wrong in --idle=0 --cert=x "--cert=$work/no --key=$work/no" --prot=1; do
  # shellcheck disable=SC2086 # options, to be split
  if timeout 5 "$binary" $wrong >"$work/wrong" 2>&1; then
    fail "$wrong is taken"
  fi
  grep -q '^tls_echo_server: ' "$work/wrong" || fail "$wrong: no clear message"
done
passed "wrong options are refused"

start_server server "$binary" --handshake 1 --idle 1 --shutdown 0.5
port=${port_of[server]}

# A peer that is stopped in the middle of the connection: its kernel takes what
# the server says, and nobody ever answers. The server goes on to its own idle
# timeout, says goodbye, and waits for the answer.
mkfifo "$work/in"
exec 5<>"$work/in"
start stopped timeout 10 openssl s_client -quiet -connect "127.0.0.1:$port" \
  <&5
echo "hello" >&5
for ((i = 0; i < 100; ++i)); do
  grep -q hello "$work/stopped" && break
  sleep 0.05
done
grep -q hello "$work/stopped" || fail "no echo"
client=$(pgrep -P "${pid_of[stopped]}" openssl)
started+=("$client")
kill -STOP "$client"

# One that never says anything; one that says a byte now and then.
(
  begun=$(now_ms)
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  to_the_end 4
  within 1000 5000 $(($(now_ms) - begun)) "a TCP client without TLS is closed"
) &
silent=$!
(
  begun=$(now_ms)
  exec 4<>"/dev/tcp/127.0.0.1/$port"
  printf '\x16\x03\x01\x02\x00\x01\x00\x01\xfc' >&4
  for ((i = 0; i < 20; ++i)); do # the next one fails when it is thrown off
    printf '\x03' >&4
    sleep 0.2
  done 2>/dev/null &
  to_the_end 4
  within 1000 5000 $(($(now_ms) - begun)) "a client that drips is closed"
) &
dripping=$!
started+=("$silent" "$dripping")

# 1 MiB comes back as it was. The end is the server's idle timeout, and its
# goodbye, which the client answers.
head -c $((768 * 1024)) /dev/urandom | base64 >"$work/sent"
timeout 10 openssl s_client -quiet -connect "127.0.0.1:$port" \
  <"$work/sent" >"$work/received" 2>/dev/null || true
cmp "$work/sent" "$work/received" || fail "what came back is not what was sent"
passed "$(stat -c %s "$work/sent") bytes are echoed exactly"

wait "$silent" || exit 1
wait "$dripping" || exit 1

stop_server server
ended server 1 'idle timeout: no bytes moved; in the shutdown: operation timeout'
ended server 2 'in the handshake: operation timeout'
ended server 1 'idle timeout: no bytes moved'

# A certificate of one's own; a client that trusts it; and one that is there,
# and silent, when the server is told to stop.
openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost \
  -keyout "$work/key" -out "$work/cert" 2>/dev/null
start_server own "$binary" --cert "$work/cert" --key "$work/key"
port=${port_of[own]}
mkfifo "$work/in2"
exec 6<>"$work/in2"
start client timeout 10 openssl s_client -CAfile "$work/cert" \
  -verify_return_error -connect "127.0.0.1:$port" <&6
for ((i = 0; i < 100; ++i)); do
  grep -q 'Verify return code' "$work/client" && break
  sleep 0.05
done
grep -q 'Verify return code: 0 (ok)' "$work/client" ||
  fail "the certificate is not the one given"
passed "--cert and --key are used"
stop_server own
ended own 1 'idle timeout: no bytes moved'
