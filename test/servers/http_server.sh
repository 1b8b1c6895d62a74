#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Checks example/http_server with curl, with wrk if there is one, and with bad
# clients (example/http_load, beside the server), which are to be thrown off
# while the others do not notice: http_server.sh PATH_OF_HTTP_SERVER

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

binary=$1
load=$(dirname "$binary")/http_load

# expect WHAT ACTUAL EXPECTED
expect() {
  [[ $2 == "$3" ]] || fail "$1: '$2' instead of '$3'"
  passed "$1"
}

# code [CURL OPTION ...] PATH: the status of the answer, which is in
# $work/answer.
code() {
  curl -s -S -m 5 -o "$work/answer" -w '%{http_code}' "${@:1:$#-1}" \
    "http://127.0.0.1:$port${!#}" || true
}

same() { cmp -s "$1" "$2" && echo same || echo different; }

root=$work/root
mkdir "$root" "$root/sub"
head -c 1048576 /dev/urandom >"$root/random.bin"
truncate -s 64M "$root/large"
echo '<p>index</p>' >"$root/sub/index.html"
echo secret >"$work/secret"
ln -s ../secret "$root/link"
head -c 100000 /dev/urandom >"$work/body"
head -c 100001 /dev/urandom >"$work/too_large"

for wrong in --idle=0 --header-timeout=-1 --write-timeout=nan --grace=1e9 \
  --minimum-rate=x --max-header=1 --port=70000 --root="$work/secret" \
  --prot=1 surplus; do
  if timeout 5 "$binary" "$wrong" >"$work/wrong" 2>&1; then
    fail "$wrong is taken"
  fi
  grep -q '^http_server: ' "$work/wrong" || fail "$wrong: no clear message"
done
passed "wrong options are refused"

start_server server "$binary" --root "$root" --max-header 2000 \
  --max-body 100000 --idle 2 --header-timeout 1 --write-timeout 1.5 --grace 2
port=${port_of[server]}
url=http://127.0.0.1:$port

# --- curl

expect "GET a file" "$(code /random.bin)" 200
expect "its 1 MiB, byte by byte" \
  "$(same "$work/answer" "$root/random.bin")" same
expect "the type of another" \
  "$(curl -s -m 5 -o /dev/null -w '%{content_type}' "$url/sub/")" text/html
expect "HEAD" \
  "$(curl -s -m 5 -I "$url/random.bin" | tr -d '\r' |
    sed -n '1p; s/^Content-Length: //p' | paste -sd ' ')" \
  "HTTP/1.1 200 OK 1048576"
expect "two requests on one connection" \
  "$(curl -s -m 5 -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "$url/random.bin" "$url/hello")" "1 0 "
expect "HTTP/1.0 is not kept alive" \
  "$(curl -s -m 5 -0 -o /dev/null -o /dev/null -w '%{num_connects} ' \
    "$url/hello" "$url/hello")" "1 1 "
expect "/hello" "$(code /hello) $(<"$work/answer")" '200 {"hello":"world"}'
expect "/status" "$(code /status) $(grep -o '"open":[0-9]*' "$work/answer")" \
  '200 "open":1'
expect "no such file" "$(code /nothing)" 404
expect "no such method here" "$(code -X DELETE /hello)" 405
expect "POST" \
  "$(code --data-binary "@$work/body" /echo)\
 $(same "$work/body" "$work/answer")" "200 same"
expect "POST in chunks" \
  "$(code -H 'Transfer-Encoding: chunked' --data-binary "@$work/body" /echo)\
 $(same "$work/body" "$work/answer")" "200 same"
expect "POST after 100 Continue" \
  "$(code -H 'Expect: 100-continue' --expect100-timeout 4 -m 3 \
    --data-binary "@$work/body" /echo)\
 $(same "$work/body" "$work/answer")" "200 same"
expect "a body too large" "$(code --data-binary "@$work/too_large" /echo)" 413
expect "a body too large, in chunks" \
  "$(code -H 'Transfer-Encoding: chunked' --data-binary "@$work/too_large" \
    /echo)" 413
expect "a header too large" \
  "$(code -H "X-Padding: $(printf '%03000d' 0)" /hello)" 431
for path in /../secret /sub/../../secret /%2e%2e/secret //etc/passwd /link \
  /sub/%00 /%; do
  expect "not to be had: $path" "$(code --path-as-is "$path")" 404
done

exec 3<>"/dev/tcp/127.0.0.1/$port"
printf 'this is not HTTP\r\n\r\n' >&3
expect "garbage" "$(timeout 5 cat <&3 | sed -n '1s/\r//p')" \
  "HTTP/1.1 400 Bad Request"
exec 3>&-

# --- Bad clients, and whether the others notice

wrk=
if command -v wrk >/dev/null; then
  start wrk wrk -t 1 -c 20 -d 3s --latency "$url/hello"
  wrk=$pid
else
  echo "skipped: wrk is not here"
fi
if [[ -x $load ]]; then
  "$load" --port "$port" --duration 4.5 --busy 20 --rate 500 --silent 20 \
    --drips-header 20 --drips-body 20 --not-reading 5 --half-closed 20 \
    --idle 2 --header-timeout 1 --write-timeout 1.5 --grace 2 ||
    fail "bad clients are thrown off in time, and no others"
  passed "bad clients are thrown off in time, and no others"
else
  echo "skipped: there is no $load"
fi
if [[ -n $wrk ]]; then
  wait "$wrk" || fail "wrk ended with status $?"
  sed -n 's/^ *\(50%\|99%\|Requests\/sec:\) */wrk: \1 /p' "$work/wrk"
  expect "wrk meanwhile: no errors" \
    "$(grep -E 'Socket errors|Non-2xx' "$work/wrk" || true)" ""
fi
expect "a file still comes" \
  "$(code /random.bin) $(same "$work/answer" "$root/random.bin")" "200 same"

stop_server server

# --- A graceful stop

start_server stopping "$binary" --drain 2
port=${port_of[stopping]}
exec 3<>"/dev/tcp/127.0.0.1/$port" 4<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /hello HTTP/1.1\r\n\r\n' >&3 # then it is idle
printf 'POST /echo HTTP/1.1\r\nContent-Length: 10\r\n\r\nhello' >&4
sleep 0.2
begun=$(now_ms)
kill -TERM "${pid_of[stopping]}"
sleep 0.3
printf 'world' >&4
expect "a request under way is answered" \
  "$(timeout 5 cat <&4 | tr -d '\r' | sed -n '1p; /^Connection/p; $p' |
    paste -sd ' ')" "HTTP/1.1 200 OK Connection: close helloworld"
exec 4>&-
to_the_end 3
within 0 5000 $(($(now_ms) - begun)) "an idle connection is closed"
exec 3>&-
status=0
wait "${pid_of[stopping]}" || status=$?
cat "$work/stopping"
expect "stops with status" "$status" 0
