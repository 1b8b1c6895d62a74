#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#

# Sets ASIO_WHEEL_HAS_COROUTINES: whether Asio has co_await with this compiler
# and standard library.

include(CheckCXXSourceCompiles)

function(asio_wheel_check_coroutines)
  if(NOT "cxx_std_20" IN_LIST CMAKE_CXX_COMPILE_FEATURES)
    set(ASIO_WHEEL_HAS_COROUTINES OFF CACHE INTERNAL "")
    return()
  endif()
  set(CMAKE_CXX_STANDARD 20)
  set(CMAKE_CXX_STANDARD_REQUIRED ON)
  set(CMAKE_REQUIRED_LIBRARIES Boost::headers Threads::Threads)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  check_cxx_source_compiles(
    "
    #include <boost/asio/awaitable.hpp>
    #if !defined(BOOST_ASIO_HAS_CO_AWAIT)
    #error no coroutines
    #endif
    boost::asio::awaitable<int> f() { co_return 1; }
    "
    ASIO_WHEEL_HAS_COROUTINES
  )
endfunction()

asio_wheel_check_coroutines()
if(NOT ASIO_WHEEL_HAS_COROUTINES)
  message(STATUS "asio_wheel: no C++20 coroutines here, skipping what needs them")
endif()
