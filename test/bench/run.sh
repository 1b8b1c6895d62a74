#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# bench/run.sh with programs that measure nothing: what it writes, what it
# skips, and its exit status. Exit status 77 means skipped.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

command -v python3 >/dev/null || {
  echo "skipped: no python3 here"
  exit 77
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# program NAME STATUS JSON
program() {
  printf '%s\n' '#!/bin/sh' 'echo a table' \
    "while [ \"\$1\" != --json ]; do shift; done" \
    "echo '$3' >\"\$2\"" "exit $2" >"$work/bench/$1"
  chmod +x "$work/bench/$1"
}

# run STATUS [ARGUMENT ...]
run() {
  local status=0
  BUILD=$work bench/run.sh "${@:2}" >"$work/log" 2>&1 || status=$?
  ((status == $1)) || {
    cat "$work/log" >&2
    fail "exit status $status of: bench/run.sh ${*:2}"
  }
}

# holds PYTHON: true of the results, r, and the programs in them, p
holds() {
  python3 - "$work/results.json" <<END || fail "not so: $1"
import json
import sys

r = json.load(open(sys.argv[1]))
p = {each["program"]: each for each in r["programs"]}
assert $1, r
END
}

mkdir "$work/bench"
program timers 0 '{"machine": {"cores": "2"}, "settings": {"rounds": 3},
  "figures": [{"met": true}, {"met": false}, {}], "failures": []}'
program storm 0 '{"machine": {"cores": "3", "Boost": "1.81.0"}}'

# A target that is missed is no failure.
run 0 full "$work/results.json"
holds 'r["mode"] == "full" and r["commit"] and r["date"]'
holds 'r["machine"] == {"cores": "2", "Boost": "1.81.0"}'
holds 'list(p) == ["timers", "storm"]'
holds 'p["timers"]["command"].endswith("/bench/timers")'
holds 'p["timers"]["settings"] == {"rounds": 3}'
holds 'len(p["timers"]["figures"]) == 3 and p["timers"]["exit"] == 0'
holds 'len(r["skipped"]) == 7 and "not built" in r["skipped"][0]["why"]'
grep -q '^\[2 of 9, 0:0[0-9]\] growth: skipped, .*is not built$' "$work/log" ||
  fail "the log does not say what was skipped"
grep -q '^1 of 2 targets met' "$work/log" || fail "the log does not count"

# Wrong results are one, and so is a program that cannot run.
program storm 1 '{"machine": {}, "figures": [], "failures": ["early"]}'
run 1 --only storm --only timers "$work/results.json"
holds 'r["mode"] == "quick" and list(p) == ["storm", "timers"]'
holds 'p["storm"]["exit"] == 1 and p["storm"]["failures"] == ["early"]'
holds 'p["storm"]["command"].endswith("/bench/storm --quick")'
program storm 2 'no JSON'
run 1 --only storm "$work/results.json"
holds 'p["storm"]["exit"] == 2 and p["storm"]["figures"] == []'

run 2 quickly
run 2 quick full
run 2 --only
run 2 --only storms
run 2 /dev/null/results.json

echo "run: passed"
