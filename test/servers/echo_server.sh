#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Checks example/echo_server: echo_server.sh PATH_OF_ECHO_SERVER

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

binary=$1

"$binary" --help >/dev/null || fail "--help"
for wrong in --idle=0 --idle=-1 --idle=nan --port=70000 --prot=1 surplus; do
  if timeout 5 "$binary" "$wrong" >"$work/wrong" 2>&1; then
    fail "$wrong is taken"
  fi
  grep -q '^echo_server: ' "$work/wrong" || fail "$wrong: no clear message"
done
passed "wrong options are refused"

start_server server "$binary" --idle 1 --write 0.5 --read 60
port=${port_of[server]}
timeout 5 "$binary" --port "$port" >"$work/wrong" 2>&1 && fail "listens on a port in use"
passed "a port in use is refused: $(<"$work/wrong")"

# A busy connection goes on for 3 s, three times what silence is allowed.
busy() {
  local i line
  exec 3<>"/dev/tcp/127.0.0.1/$port"
  for ((i = 0; i < 15; ++i)); do
    echo "message $i" >&3
    IFS= read -r -t 5 line <&3 || return 1
    [[ $line == "message $i" ]] || return 1
    sleep 0.2
  done
}
busy &
busy_pid=$!
started+=("$busy_pid")

# 4 MiB come back as they were.
head -c $((4 * 1024 * 1024)) /dev/urandom >"$work/sent"
exec 4<>"/dev/tcp/127.0.0.1/$port"
timeout 10 cat "$work/sent" >&4 &
started+=("$!")
timeout 10 head -c $((4 * 1024 * 1024)) <&4 | cmp - "$work/sent" ||
  fail "what came back is not what was sent"
exec 4>&-
passed "4 MiB are echoed exactly"

# A silent connection: at its limit, not before.
begun=$(now_ms)
exec 4<>"/dev/tcp/127.0.0.1/$port"
to_the_end 4
within 1000 5000 $(($(now_ms) - begun)) "a silent connection is closed"
exec 4>&-

# One that only sends is thrown off when no more goes into its buffers.
exec 4<>"/dev/tcp/127.0.0.1/$port"
timeout 10 cat /dev/zero >&4 2>/dev/null && fail "cat ended well"
[[ $? != 124 ]] || fail "a peer that does not read is not thrown off"
exec 4>&-
passed "a peer that does not read is thrown off"

wait "$busy_pid" || fail "the busy connection was disturbed"
passed "the busy connection was not disturbed"

# One is open, and silent, when the server is told to stop.
exec 4<>"/dev/tcp/127.0.0.1/$port"
stop_server server
ended server '[12]' 'End of file'
ended server 2 'idle timeout: .*'
ended server 1 'write timeout: .*'
