#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# What timeouts cost an HTTP server, under wrk: example/http_server with none
# and with all of its own, and the same on Beast's stream with its own. All are
# up, and measured in turn, another one first in each round; medians over the
# rounds, with least and most.
#
#   bench/http.sh [--quick] [--json FILE] [ROUNDS [SECONDS [CONNECTIONS]]]
#
# Default: 15 rounds of 2 s each, 100 connections; quick: 5 of 1 s. Wants wrk,
# and the preset release built, or what is built in the directory $BUILD. wrk
# and the server compete for the processor, so that requests per second are
# noisy: the server's own CPU time for a request, as the kernel accounts it, is
# the steadier figure.
#
# The exit status is 0 if all was served, whatever the figures.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=${BUILD:-build/release}
rounds=15
seconds=2
json=
arguments=()

fail() {
  echo "http.sh: $*" >&2
  exit 1
}

usage() {
  echo "usage: bench/http.sh [--quick] [--json FILE]\
 [ROUNDS [SECONDS [CONNECTIONS]]]" >&2
  exit 2
}

while (($# != 0)); do
  case $1 in
  --quick)
    rounds=5
    seconds=1
    ;;
  --json)
    (($# >= 2)) || usage
    json=$2
    shift
    ;;
  [1-9] | [1-9]*[0-9]) arguments+=("$1") ;;
  *) usage ;;
  esac
  shift
done
((${#arguments[@]} <= 3)) || usage
rounds=${arguments[0]:-$rounds}
seconds=${arguments[1]:-$seconds}
connections=${arguments[2]:-100}

command -v wrk >/dev/null || fail "needs wrk"

work=$(mktemp -d)
pids=()
clean_up() {
  local pid
  for pid in "${pids[@]}"; do
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true # or bash reports it
  done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

# In this order; the first is what the others are compared with.
contestants=("no timeouts" "timeout_stream" "beast::tcp_stream")
declare -A pid_of port_of

# start CONTESTANT SERVER [OPTION ...]
start() {
  local i who=$1 log=$work/server${#pids[@]}
  [[ -x $2 ]] || fail "$2 is not built"
  : >"$log" # it is there before the server is
  "${@:2}" >"$log" 2>&1 &
  pids+=($!)
  pid_of[$who]=$!
  for ((i = 0; i < 100; ++i)); do
    port_of[$who]=$(sed -n 's/^listening on .*://p' "$log")
    [[ -z ${port_of[$who]} ]] || return 0
    sleep 0.05
  done
  cat "$log" >&2
  fail "$2 does not start"
}

# CPU time that a process has had, user and system, in clock ticks. (A process's
# name, in brackets, may have blanks.)
cpu_ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

ticks_per_second=$(getconf CLK_TCK)

# measure CONTESTANT: prints requests per second, the 99th percentile of their
# latency in ms, and the server's CPU time for one in us. Errors end it.
measure() {
  local before after log=$work/wrk
  before=$(cpu_ticks "${pid_of[$1]}")
  wrk -t 1 -c "$connections" -d "${seconds}s" --latency \
    "http://127.0.0.1:${port_of[$1]}/hello" >"$log"
  after=$(cpu_ticks "${pid_of[$1]}")
  if grep -q 'Socket errors\|Non-2xx' "$log"; then
    cat "$log" >&2
    fail "$1: not all was served"
  fi
  awk -v cpu="$((after - before))" -v per_second="$ticks_per_second" '
    function milliseconds(text) {
      return text * (text ~ /us$/ ? 1e-3 : text ~ /ms$/ ? 1 : 1e3)
    }
    $1 == "99%" { p99 = milliseconds($2) }
    $2 == "requests" && $3 == "in" { requests = $1 }
    $1 == "Requests/sec:" { rate = $2 }
    END { print rate, p99, 1e6 * cpu / per_second / requests }
  ' "$log"
}

# The figures of all rounds, a line each "CONTESTANT<tab>RATE P99 CPU", as a
# table and, if a file is named, as JSON like that of the programs in bench/.
report() {
  awk -F'\t' -v json="$json" -v rounds="$rounds" -v seconds="$seconds" \
    -v connections="$connections" \
    -v order="$(IFS=';' && echo "${contestants[*]}")" \
    -v tool="$(wrk -v 2>&1 | sed -n 's/ \[.*//p')" \
    -v cores="$(nproc)" -v kernel="$(uname -srm)" \
    -v processor="$(sed -n 's/^model name.*: //p' /proc/cpuinfo | sed -n 1p)" '
    function quoted(text) {
      gsub(/["\\]/, "\\\\&", text)
      return "\"" text "\""
    }
    BEGIN { contestants = split(order, names, ";") }
    # Sorts the samples of one figure into sorted[1] to sorted[n].
    function sort_samples(key,   i, j, x) {
      for (i = 1; i <= n; ++i) {
        x = sample[key, i]
        for (j = i; j > 1 && sorted[j - 1] > x; --j)
          sorted[j] = sorted[j - 1]
        sorted[j] = x
      }
    }
    function middle() {
      return (sorted[int((n + 1) / 2)] + sorted[int(n / 2) + 1]) / 2
    }
    function emit(text) { if (json) print text >json }

    {
      n = ++count[$1]
      split($2, values, " ")
      for (u = 1; u <= 3; ++u)
        sample[$1, u, n] = values[u] + 0
    }
    END {
      split("requests/s;ms, p99;us of CPU per request", unit, ";")
      digits[1] = "%.0f"; digits[2] = "%.2f"; digits[3] = "%.2f"
      emit("{\"program\": \"http.sh\",")
      emit(" \"machine\": {\"processor\": " quoted(processor) \
           ", \"cores\": \"" cores "\", \"kernel\": " quoted(kernel) \
           ", \"client\": " quoted(tool) "},")
      emit(" \"settings\": {\"rounds\": " rounds ", \"seconds\": " seconds \
           ", \"connections\": " connections "},")
      emit(" \"figures\": [")
      for (u = 1; u <= 3; ++u) {
        printf "\nGET /hello, %d connections, %s\n", connections, unit[u]
        for (c = 1; c <= contestants; ++c) {
          for (i = 1; i <= n; ++i)
            sample["now", i] = sample[names[c], u, i]
          sort_samples("now")
          median = middle()
          if (c == 1)
            base = median
          # Above 1 is better than without timeouts, whatever the unit.
          ratio = u == 1 ? median / base : median ? base / median : 0
          aim = u == 1 && names[c] == "timeout_stream"
          verdict = ""
          if (aim)
            verdict = ratio >= 0.97 ? "0.97x met" : "0.97x MISSED"
          line = sprintf("  %-18s %8s  %-15s %6s  %s", names[c],
                         sprintf(digits[u], median),
                         sprintf(digits[u] "-" digits[u], sorted[1], sorted[n]),
                         c == 1 ? "" : sprintf("%.3fx", ratio), verdict)
          sub(/ +$/, "", line)
          print line

          samples = ""
          for (i = 1; i <= n; ++i)
            samples = samples (i > 1 ? ", " : "") sample["now", i]
          emit((u > 1 || c > 1 ? "  ," : "   ") \
               "{\"workload\": \"GET /hello\", \"timers\": " connections \
               ", \"who\": " quoted(names[c]) ", \"fenced\": false" \
               ", \"unit\": " quoted(unit[u]) ", \"median\": " median \
               ", \"min\": " sorted[1] ", \"max\": " sorted[n] \
               ", \"samples\": [" samples "]" \
               (c > 1 ? ", \"ratio\": " ratio : "") \
               (aim ? ", \"target_at_least_ratio\": 0.97, \"met\": " \
                      (ratio >= 0.97 ? "true" : "false") : "") "}")
        }
      }
      emit(" ],")
      emit(" \"failures\": []}")
    }' "$work/samples"
}

start "no timeouts" "$build/example/http_server" --no-timeouts
start "timeout_stream" "$build/example/http_server"
start "beast::tcp_stream" "$build/bench/beast_http_server"
for who in "${contestants[@]}"; do
  measure "$who" >/dev/null # to warm up
done
printf 'round  contestant         requests/s   p99, ms   us of CPU per request\n'
for ((r = 1; r <= rounds; ++r)); do
  for ((i = 0; i < ${#contestants[@]}; ++i)); do
    who=${contestants[(r + i) % ${#contestants[@]}]}
    figures=$(measure "$who")
    printf '%s\t%s\n' "$who" "$figures" >>"$work/samples"
    read -r rate p99 cpu <<<"$figures"
    printf '%5d  %-18s %10.0f %9.2f %10.2f\n' "$r" "$who" "$rate" "$p99" "$cpu"
  done
done
report
