#!/usr/bin/env bash
#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#
# Installs what building asio_wheel needs, on Debian and Ubuntu: a compiler,
# CMake, Ninja, and the newest packaged Boost of 1.81 or newer; for the servers
# among the examples OpenSSL and curl. Does nothing when all is there. Without
# apt, or without the right to use it, says what is missing and exits with 1.
#
#   tools/setup.sh          what the tests, the examples and the bench need
#   tools/setup.sh --bench  also what bench/run.sh and bench/plot make use of:
#                           libuv, libevent, libev, wrk, gnuplot, Python 3
#   tools/setup.sh --ci     also what .ci/run needs: those, clang and b2
#
# A Boost of your own: set BOOST_ROOT, which CMake goes by as well.

set -euo pipefail

needed_boost=108100                                        # as BOOST_VERSION
boost_libraries=(unit_test_framework program_options json) # to link with
boost_packages=(test program-options json)                 # libboost-X1.81-dev

ci=no
bench=no
case "$*" in
'') ;;
--bench) bench=yes ;;
--ci) ci=yes bench=yes ;;
*)
  echo "usage: tools/setup.sh [--bench | --ci]" >&2
  exit 2
  ;;
esac

have() { command -v "$1" >/dev/null; }

say() { echo "setup: $*" >&2; }

# The Boost that the compiler finds: "VERSION FILE", or nothing.
find_boost() {
  printf '#include <boost/version.hpp>\nBOOST_VERSION\n' |
    g++ -E -x c++ ${BOOST_ROOT:+-I"$BOOST_ROOT/include"} - 2>/dev/null |
    awk -F'"' '/^#.*boost\/version.hpp/ { file = $2 }
               /^ *[0-9]+ *$/ { print $1 + 0, file }'
}

# Whether the compiler finds a header.
find_header() { echo "#include <$1>" | g++ -E -x c++ - >/dev/null 2>&1; }

# 108100 as packages have it: 1.81
dotted() { echo "$(($1 / 100000)).$(($1 / 100 % 1000))"; }

boost_version=0
boost_file=
missing=()

# Sets the three above; an empty "missing" means that all is there.
look() {
  local file library
  missing=()
  boost_version=0
  boost_file=
  have g++ || missing+=("a C++17 compiler (g++)")
  have cmake || missing+=("CMake 3.21 or newer")
  have ninja || missing+=("Ninja")
  have curl || missing+=("curl")
  have openssl || missing+=("openssl")
  find_header openssl/ssl.h || missing+=("the headers of OpenSSL")
  if have g++; then
    read -r boost_version boost_file < <(find_boost || true; echo 0)
  fi
  if ((boost_version == 0)); then
    missing+=("Boost $(dotted $needed_boost) or newer")
  elif ((boost_version < needed_boost)); then
    missing+=("Boost $(dotted $needed_boost) or newer instead of\
 $(dotted "$boost_version") ($boost_file)")
  else
    for library in "${boost_libraries[@]}"; do
      file=libboost_$library.so
      [[ $(g++ -print-file-name="$file") == /* ]] ||
        [[ -n ${BOOST_ROOT-} && -e $BOOST_ROOT/lib/$file ]] ||
        missing+=("Boost's library $library, version $(dotted "$boost_version")")
    done
  fi
  if [[ $bench == yes ]]; then
    find_header uv.h || missing+=("libuv and its headers")
    find_header event2/event.h || missing+=("libevent and its headers")
    find_header ev.h || missing+=("libev and its headers")
    have wrk || missing+=("wrk")
    have gnuplot || missing+=("gnuplot")
    have python3 || missing+=("Python 3")
  fi
  if [[ $ci == yes ]]; then
    have clang++ || missing+=("clang++")
    have b2 || missing+=("Boost's b2")
  fi
}

# Says what is missing and why it stays so, and gives up.
give_up() {
  say "this is missing:"
  printf '  - %s\n' "${missing[@]}" >&2
  say "cannot install it: $*"
  exit 1
}

look
if ((${#missing[@]} == 0)); then
  exit 0
fi

have apt-get || give_up "no apt-get here. Please do it your way."
if ((boost_version != 0)) && [[ -n ${BOOST_ROOT-} ]]; then
  give_up "BOOST_ROOT is set, to $BOOST_ROOT; no other Boost is looked for."
fi

# The Boost whose packages to take: the one that is there, if it is new enough
# and a package; else the newest one. Prints 1.81, say, or nothing.
choose_boost() {
  local version
  if ((boost_version >= needed_boost)); then
    dotted "$boost_version"
    return
  fi
  version=$(apt-cache search --names-only '^libboost1\.[0-9]+-dev$' |
    sed 's/^libboost\(1\.[0-9]*\)-dev .*/\1/' | sort -V | tail -n 1)
  if [[ -n $version ]] && ((${version#1.} >= needed_boost / 100 % 1000)); then
    echo "$version"
  fi
}

# Prints the packages to install, given the version of Boost.
choose_packages() {
  local library
  have g++ || echo g++
  have cmake || echo cmake
  have ninja || echo ninja-build
  have curl || echo curl
  have openssl || echo openssl
  find_header openssl/ssl.h || echo libssl-dev
  if ((boost_version < needed_boost)); then
    echo "libboost$1-dev"
  fi
  for library in "${boost_packages[@]}"; do
    echo "libboost-${library}$1-dev"
  done
  if [[ $bench == yes ]]; then
    find_header uv.h || echo libuv1-dev
    find_header event2/event.h || echo libevent-dev
    find_header ev.h || echo libev-dev
    have wrk || echo wrk
    have gnuplot || echo gnuplot-nox
    have python3 || echo python3
  fi
  if [[ $ci == yes ]]; then
    have clang++ || echo clang
    have b2 || echo "libboost$1-tools-dev"
  fi
}

known() { apt-cache show "$1" >/dev/null 2>&1; }

as_root=()
if ((EUID != 0)); then
  if have sudo && { sudo -n true 2>/dev/null || [[ -t 0 ]]; }; then
    as_root=(sudo)
  else
    boost=$(choose_boost)
    if [[ -n $boost ]]; then
      mapfile -t packages < <(choose_packages "$boost")
      give_up "not root, and no sudo. To be run as root:
  apt-get install --no-install-recommends ${packages[*]}"
    fi
    give_up "not root, and no sudo"
  fi
fi

apt() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq -o Dpkg::Use-Pty=0 "$@" >/dev/null
}

# A fresh machine has no package lists, or old ones.
say "missing: $(printf '%s, ' "${missing[@]}" | sed 's/, $//')"
apt update

boost=$(choose_boost)
if [[ -z $boost ]]; then
  give_up "no Boost of $(dotted $needed_boost) or newer is packaged here."
fi
mapfile -t packages < <(choose_packages "$boost")
for package in "${packages[@]}"; do
  known "$package" || give_up "there is no package $package here."
done

# Two versions of Boost cannot be installed together on Debian 12: the old one
# has to go, with the packages that need it. Boost's own may go, no others.
removed=$(apt-get -s install --no-install-recommends "${packages[@]}" |
  sed -n 's/^Remv \([^ ]*\).*/\1/p')
others=$(grep -v '^libboost' <<<"$removed" || true)
if [[ -n $others ]]; then
  give_up "the packages of Boost $boost would remove others:" $others
fi
if [[ -n $removed ]]; then
  say "Boost $boost takes the place of" $removed
fi

say "installing ${packages[*]}"
apt install -y --no-install-recommends "${packages[@]}"

hash -r
look
if ((${#missing[@]} != 0)); then
  give_up "its packages are installed, yet it is not found."
fi
say "ready: Boost $(dotted "$boost_version")"
