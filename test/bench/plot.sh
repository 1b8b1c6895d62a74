#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# bench/plot on made-up results: the same bytes each time, the document's blocks
# filled and the rest kept, and nothing written where the input is bad. Exit
# status 77 means skipped.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

for tool in python3 gnuplot; do
  command -v "$tool" >/dev/null || {
    echo "skipped: no $tool here"
    exit 77
  }
done

plot=../../bench/plot
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
  echo "FAILED: $*" >&2
  exit 1
}

# draw NAME: results.json into the directory NAME, which has a document
draw() {
  "$plot" results.json --plots "$work/$1/plots" --document "$work/$1/document.md"
}

# The same results, the same bytes; also where the blocks were full.
mkdir "$work/one" "$work/two"
cp document.md "$work/one"
cp document.md "$work/two"
draw one
draw two
diff -r "$work/one" "$work/two" || fail "two runs differ"
draw one
diff -r "$work/one" "$work/two" || fail "a run on full blocks differs"

plots=$(cd "$work/one/plots" && echo *)
[[ $plots == "growth.svg precision.svg timers.svg" ]] || fail "plots: $plots"
python3 - "$work"/one/plots/*.svg <<'END'
import sys
import xml.etree.ElementTree

for file in sys.argv[1:]:
    svg = xml.etree.ElementTree.parse(file).getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert svg.tag == name + "svg", file
    background = next(svg.iter(name + "rect"))
    assert background.get("fill") == "#ffffff", file
    assert background.get("width") == svg.get("width"), file
END

# has LINE: it is in the document
has() {
  grep -qxF -- "$1" "$work/one/document.md" || {
    cat "$work/one/document.md"
    fail "this is not in the document: $1"
  }
}
has "# Made up"
has "The end."
has "| processor | A processor |"
has "Measured 2026-01-02 at commit 0123456789 by \`bench/run.sh quick\`:"
has "Skipped: silent (it is not built)."
has "3 of 6 met."
has "| timers | add | 1,000,000 | wheel_timer | 3.5x steady_timer |\
 1.73x: 73.0 ns (65.7-87.6) | **missed** |"
has "| timers | memory, a\\|b | 1,000,000 | wheel_timer | at most 224 bytes |\
 168 bytes | met |"
has "| http.sh | GET /hello | 100 | timeout_stream | 0.97x no timeouts |\
 0.98x: 51,000 requests/s (45,900-61,200) | met |"
has "![ns of CPU time for one operation, 1,000,000 timers pending]\
(plots/timers.svg)"
has "**cancel + add, new random delay**, fenced, ns:"
has "| steady_timer | 1,456 (1,310-1,747) |"
has "| wheel_timer | 445 (400-534), 3.27x; 3.5x **missed** |"
has "**cancel, fenced**, growth since 1,000 timers as a multiple of the array's,\
 fenced:"
has "| 4,000,000 | 4.81 | 1.49 |"
has "**FAILED**, with exit status 1."
has "* 10 handlers ran too early"
has "Not measured in this run: it is not built."
! grep -q "earlier run" "$work/one/document.md" || fail "a block was kept"

# refused MESSAGE RESULTS DOCUMENT: exit status 2, and nothing was written
refused() {
  local status=0
  rm -rf "$work/bad"
  mkdir "$work/bad"
  cp "$3" "$work/bad/document.md" 2>/dev/null || true
  "$plot" "$2" --plots "$work/bad/plots" --document "$work/bad/document.md" \
    2>"$work/said" || status=$?
  grep -qF -- "$1" "$work/said" || {
    cat "$work/said" >&2
    fail "it does not say: $1"
  }
  ((status == 2)) || fail "exit status $status where it says: $1"
  [[ ! -e $work/bad/plots ]] || fail "plots were written, but: $1"
  [[ ! -e $3 ]] || cmp "$3" "$work/bad/document.md"
}

# changed FROM TO: results that have another text in one place
changed() {
  sed "0,/$1/s//$2/" results.json >"$work/changed.json"
  ! cmp -s results.json "$work/changed.json" || fail "nothing to change: $1"
  echo "$work/changed.json"
}

# marked FROM TO: a document with another marker
marked() {
  sed "s/$1/$2/" document.md >"$work/marked.md"
  echo "$work/marked.md"
}

echo '{"machine": {}, "figures": []}' >"$work/other.json"
refused "No such file" "$work/none.json" document.md
refused "No such file" results.json "$work/none.md"
refused "is no JSON" document.md document.md
refused 'no good "date"' "$work/other.json" document.md
refused 'no good "median"' "$(changed '"median": 126' '"median": "126"')" \
  document.md
refused 'no good "max"' "$(changed '"max": [0-9.]*' '"max": NaN')" document.md
refused 'no good "samples"' "$(changed '"samples"' '"sample"')" document.md
refused "target_most" "$(changed target_at_most target_most)" document.md
refused "no such program" "$(changed '"growth"' '"growing"')" document.md
refused "no such program, or twice" "$(changed '"growth"' '"timers"')" \
  document.md
refused "a block reached" results.json "$(marked reach reached)"
refused "block http.sh does not end" results.json \
  "$(marked '^<!-- end http.sh.*' '')"
refused "begins inside another one, or twice" results.json \
  "$(marked '^<!-- end reach.*' '')"
refused "begins inside another one, or twice" results.json \
  "$(marked growth timers)"
refused "ends without having begun" results.json \
  "$(marked '^<!-- begin reach.*' '')"
refused "usage" --unknown document.md

echo "plot: passed"
