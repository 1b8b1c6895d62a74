#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Builds the benchmarks, runs one after another, and writes what all of them
# measured to one file, which bench/plot turns into plots and tables:
#
#   bench/run.sh [quick|full] [--only NAME]... [OUTPUT.json]
#
# Default: quick, a few minutes, all of them, build/results.json; full takes
# under half an hour. Sets up what is needed on a fresh Debian or Ubuntu machine.
# With BUILD set, to a directory like build/release, nothing is set up or built.
#
# The exit status is 1 if a program found that a library did not do what was
# measured, or could not run; 0 if all went well, whatever the figures. What is
# not there is skipped.

set -euo pipefail

all=(timers growth threads storm precision silent streams scheduler http.sh)

usage() {
  echo "usage: bench/run.sh [quick|full] [--only NAME]... [OUTPUT.json]" >&2
  echo "NAME: ${all[*]}" >&2
  exit 2
}

fail() {
  echo "run.sh: $*" >&2
  exit 1
}

mode=
output=
only=()
while (($# != 0)); do
  case $1 in
  quick | full)
    [[ -z $mode ]] || usage
    mode=$1
    ;;
  --only)
    (($# >= 2)) && [[ " ${all[*]} " == *" $2 "* ]] || usage
    only+=("$2")
    shift
    ;;
  *.json)
    [[ -z $output ]] || usage
    output=$(realpath -m "$1")
    ;;
  *) usage ;;
  esac
  shift
done
mode=${mode:-quick}
if ((${#only[@]} == 0)); then
  only=("${all[@]}")
fi

cd "$(dirname "${BASH_SOURCE[0]}")/.."
output=${output:-$PWD/build/results.json}
mkdir -p "$(dirname "$output")" && : >>"$output" || exit 2 # bash says why

work=$(mktemp -d)
program= # process id
clean_up() {
  [[ -z $program ]] || kill -TERM "$program" 2>/dev/null || true
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

quietly() {
  "$@" >"$work/log" 2>&1 || {
    cat "$work/log" >&2
    fail "failed: $*"
  }
}

if [[ -z ${BUILD-} ]]; then
  # The peers can be done without.
  tools/setup.sh --bench || tools/setup.sh
  echo "building (some minutes, the first time) ..."
  quietly cmake --preset release
  quietly cmake --build --preset release --parallel "$(nproc)" \
    --target bench/all
fi
export BUILD=${BUILD:-build/release} # also for http.sh
command -v python3 >/dev/null || fail "needs Python 3"
# Sets missing to what a program lacks, if anything.
find_missing() {
  local file files=("$BUILD/bench/$1")
  missing=
  if [[ $1 == http.sh ]]; then
    files=("$BUILD/example/http_server" "$BUILD/bench/beast_http_server")
    command -v wrk >/dev/null || missing="no wrk here"
  fi
  for file in "${files[@]}"; do
    [[ -x $file ]] || missing="$file is not built"
  done
}

# so_far: 1:05
so_far() { printf '%d:%02d' $((SECONDS / 60)) $((SECONDS % 60)); }

SECONDS=0
status=0
n=0
records=()
options=()
if [[ $mode == quick ]]; then
  options=(--quick)
fi
for name in "${only[@]}"; do
  n=$((n + 1))
  where="[$n of ${#only[@]}, $(so_far)] $name"
  find_missing "$name"
  if [[ -n $missing ]]; then
    echo "$where: skipped, $missing"
    records+=("$name" "" "$missing")
    continue
  fi
  echo "$where"
  if [[ $name == http.sh ]]; then
    command=(bench/http.sh "${options[@]}")
  else
    command=("$BUILD/bench/$name" "${options[@]}")
  fi
  start=$SECONDS
  ended=0
  # In the background, so that a signal ends it at once.
  "${command[@]}" --json "$work/$name" >"$work/log" &
  program=$!
  wait "$program" || ended=$?
  program=
  if ((ended != 0)); then
    status=1
    tail -n 20 "$work/log" >&2
    echo "run.sh: $name FAILED, exit status $ended" >&2
  fi
  records+=("$name" "${command[*]}" "$ended $((SECONDS - start))")
done

# One record is three words: name, command, exit status and seconds; or name,
# nothing, why it was skipped.
commit=$(git describe --always --dirty --exclude '*' 2>/dev/null || echo unknown)
python3 - "$work" "$output" "$mode" "$commit" "${records[@]}" <<'END'
import datetime
import json
import sys

work, output, mode, commit, *records = sys.argv[1:]
now = datetime.datetime.now(datetime.timezone.utc)
machine, programs, skipped = {}, [], []
for name, command, rest in zip(records[::3], records[1::3], records[2::3]):
    if not command:
        skipped.append({"program": name, "why": rest})
        continue
    status, seconds = map(int, rest.split())
    try:
        with open(f"{work}/{name}", encoding="utf-8") as file:
            told = json.load(file)
    except (OSError, ValueError):
        told = {}  # it could not run to its end
    for key, value in told.get("machine", {}).items():
        machine.setdefault(key, value)
    programs.append({"program": name, "command": command, "exit": status,
                     "seconds": seconds,
                     "settings": told.get("settings", {}),
                     "figures": told.get("figures", []),
                     "failures": told.get("failures", [])})
with open(output, "w", encoding="utf-8") as file:
    json.dump({"date": now.strftime("%Y-%m-%d"), "mode": mode,
               "commit": commit, "machine": machine, "programs": programs,
               "skipped": skipped}, file)
    file.write("\n")
met = [f["met"] for p in programs for f in p["figures"] if "met" in f]
print(f"{sum(met)} of {len(met)} targets met; all figures: {output}")
END
echo "took $(so_far)"
exit "$status"
