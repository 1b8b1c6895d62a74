//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_CONFIG_HPP
#define ASIO_WHEEL_DETAIL_CONFIG_HPP

// The one place that asks which Boost, which compiler, which standard.

#include <boost/asio/detail/config.hpp>
#include <boost/config.hpp>
#include <boost/version.hpp>

#include <cassert>

#if BOOST_VERSION < 108100
#error "asio_wheel needs Boost 1.81 or newer"
#endif

#if defined(BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT)
#error                                                                         \
    "asio_wheel needs Asio's standard executors (BOOST_ASIO_USE_TS_EXECUTOR_AS_DEFAULT is defined)"
#endif

// Misuse asserts in debug builds; what happens in release builds is documented
// at each function.
#define ASIO_WHEEL_ASSERT(condition) assert(condition)

#if defined(__GNUC__)
#define ASIO_WHEEL_PREFETCH(address) __builtin_prefetch(address)
#else
#define ASIO_WHEEL_PREFETCH(address) ((void)(address))
#endif

// Tells the processor that this thread waits for another one.
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__i386__))
#define ASIO_WHEEL_PAUSE() __builtin_ia32_pause()
#elif defined(__GNUC__) && defined(__aarch64__)
#define ASIO_WHEEL_PAUSE() __asm__ __volatile__("yield")
#else
#define ASIO_WHEEL_PAUSE() ((void)0)
#endif

// A library and its user must agree on Boost's version and on the macros that
// change the layout of Asio's types. Each combination is a namespace of its
// own, so that a mismatch fails to link instead of going wrong silently (seen:
// two services on one context).
#if defined(BOOST_ASIO_DISABLE_THREADS)
#define ASIO_WHEEL_ABI_THREADS n
#else
#define ASIO_WHEEL_ABI_THREADS t
#endif
#if defined(BOOST_ASIO_HAS_IO_URING_AS_DEFAULT)
#define ASIO_WHEEL_ABI_REACTOR u
#elif defined(BOOST_ASIO_HAS_IO_URING)
#define ASIO_WHEEL_ABI_REACTOR v
#elif defined(BOOST_ASIO_HAS_EPOLL)
#define ASIO_WHEEL_ABI_REACTOR e
#else
#define ASIO_WHEEL_ABI_REACTOR o
#endif
#if defined(BOOST_ASIO_NO_TYPEID)
#define ASIO_WHEEL_ABI_TYPEID n
#else
#define ASIO_WHEEL_ABI_TYPEID r
#endif
#define ASIO_WHEEL_ABI_JOIN(version, threads, reactor, type_id)                \
  boost_##version##_##threads##reactor##type_id
#define ASIO_WHEEL_ABI_EXPAND(version, threads, reactor, type_id)              \
  ASIO_WHEEL_ABI_JOIN(version, threads, reactor, type_id)
#define ASIO_WHEEL_ABI                                                         \
  ASIO_WHEEL_ABI_EXPAND(BOOST_VERSION, ASIO_WHEEL_ABI_THREADS,                 \
                        ASIO_WHEEL_ABI_REACTOR, ASIO_WHEEL_ABI_TYPEID)

namespace boost {
namespace asio {}      // namespace asio
namespace intrusive {} // namespace intrusive
namespace system {}    // namespace system
} // namespace boost

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace asio = boost::asio;
namespace detail {
namespace intrusive = boost::intrusive;
} // namespace detail

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_CONFIG_HPP
