//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_MACHINE_HPP
#define ASIO_WHEEL_BENCH_MACHINE_HPP

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <malloc.h>
#include <sys/resource.h>
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#include <emmintrin.h>
#else
#include <atomic>
#endif

// What the benchmark asks of the machine and its C library (Linux, glibc).

namespace bench {

/// CPU time of this thread: what a neighbour on the same core takes from us is
/// not in it.
inline double cpu_nanoseconds() noexcept {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return 1e9 * static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec);
}

/// How often this thread has gone to sleep.
inline long sleeps() noexcept {
  rusage u;
  getrusage(RUSAGE_THREAD, &u);
  return u.ru_nvcsw;
}

/// Wait until what was loaded before has arrived, and begin nothing meanwhile.
/**
 * Without it the processor runs ahead into the next operations of a loop and
 * waits for the cache misses of several of them at once. A server does other
 * things between two operations, so it waits for each miss by itself.
 *
 * On x86, LFENCE: no later instruction begins before all earlier ones have
 * completed, so that the loads of two operations cannot overlap. Stores may
 * still be on their way to the cache, as they may in a server. (MFENCE waits
 * for stores but lets later instructions begin, where it does not happen to
 * act like LFENCE as well.)
 */
inline void fence() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_lfence();
#elif defined(__aarch64__)
  __asm__ __volatile__("dsb ld\n\tisb" ::: "memory");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

inline const char* fence_name() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  return "lfence";
#elif defined(__aarch64__)
  return "dsb ld; isb";
#else
  return "atomic_thread_fence(seq_cst): may not keep loads apart";
#endif
}

/// Bytes the program holds from malloc, its headers and rounding included.
inline std::size_t heap_in_use() noexcept {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

/// Keep what was freed, so that later rounds need no pages from the kernel.
inline void keep_freed_memory() noexcept {
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, -1);
}

/// Start a thread that sleeps, for good.
/**
 * While a process has one thread only, the C library's mutexes and the standard
 * library's shared pointers do without atomic operations. Servers have threads,
 * if only Asio's resolver.
 */
void start_idle_thread();

/// Names and values that say what the figures were measured on.
std::vector<std::pair<std::string, std::string>> describe_machine();

} // namespace bench

#endif // ASIO_WHEEL_BENCH_MACHINE_HPP
