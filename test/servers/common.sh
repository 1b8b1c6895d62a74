# shellcheck shell=bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# For the tests of the example servers, to be sourced: a server to talk to, and
# words to report with. All is on loopback. bash itself is the TCP client, by
# its /dev/tcp; a SIGSTOP makes any other client a silent peer whose kernel
# still accepts what its socket's buffer holds.

work=$(mktemp -d)
started=() # ids of processes to end
clean_up() {
  local pid
  for pid in "${started[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true # or bash reports it
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

passed() { echo "ok: $*"; }

now_ms() { echo $((${EPOCHREALTIME/[^0-9]/} / 1000)); }

# start NAME COMMAND...: in the background; its output is in $work/NAME, and its
# id in pid and pid_of[NAME].
declare -A pid_of port_of
start() {
  : >"$work/$1"
  "${@:2}" <&0 >"$work/$1" 2>"$work/$1.err" & # without <&0: </dev/null
  pid=$!
  pid_of[$1]=$pid
  started+=("$pid")
}

# start_server NAME COMMAND...: and wait until it listens; port_of[NAME] says
# where.
start_server() {
  local i
  start "$@"
  port_of[$1]=
  for ((i = 0; i < 100; ++i)); do
    port_of[$1]=$(sed -n 's/^listening on .*://p' "$work/$1")
    [[ -z ${port_of[$1]} ]] || return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.05
  done
  cat "$work/$1.err" >&2
  fail "$1 does not start"
}

# stop_server NAME: SIGTERM ends it with status 0, within 4 seconds. Prints what
# it says.
stop_server() {
  local status=0 begun
  begun=$(now_ms)
  kill -TERM "${pid_of[$1]}"
  wait "${pid_of[$1]}" || status=$?
  cat "$work/$1" "$work/$1.err"
  ((status == 0)) || fail "$1 ended with status $status after a SIGTERM"
  (($(now_ms) - begun < 4000)) || fail "$1 took more than 4 s to stop"
  passed "$1 stops with status 0 on SIGTERM"
}

# ended NAME COUNT TEXT: the server said that so many connections (a pattern)
# ended by that.
ended() {
  local line
  line=$(grep -Ex " +$2  $3" "$work/$1") ||
    fail "the summary of $1 lacks: $2 connections ended by $3"
  passed "ended by: $line"
}

# within LEAST MOST MS WHAT
within() {
  (($3 >= $1)) || fail "$4 after $3 ms, earlier than $1 ms"
  (($3 <= $2)) || fail "$4 after $3 ms, later than $2 ms"
  passed "$4 after $3 ms"
}

# to_the_end FD: read and drop until the peer ends the connection; 10 seconds at
# most.
to_the_end() {
  local status=0
  timeout 10 cat <&"$1" >/dev/null 2>&1 || status=$?
  ((status != 124)) || fail "a connection that should have been closed is open"
}
