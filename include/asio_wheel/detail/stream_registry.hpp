//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_STREAM_REGISTRY_HPP
#define ASIO_WHEEL_DETAIL_STREAM_REGISTRY_HPP

#include <asio_wheel/detail/config.hpp>

#include <boost/intrusive/list.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// What a bounded stream is to the registry.
using registered_stream = boost::intrusive::list_base_hook<
    boost::intrusive::link_mode<boost::intrusive::safe_link>>;

// Which part of the time that a drain takes may be a stream's idle time, in
// 65536ths less one. The streams keep it; guarded by the registry's lock.
using drain_share = std::uint16_t;

// What waits for the last stream to go.
class drain_end_base
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
  virtual void hasten() noexcept = 0;

protected:
  ~drain_end_base() = default;
};

// All open bounded streams of a context, for the graceful drain. Shared by the
// service's shards, so that it outlives the streams.
//
// Ground rules: the lock is taken when a stream is made and destroyed, and
// while a context drains; it comes before a shard's.
class stream_registry {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  void add(registered_stream& s, drain_share& share) noexcept;
  void remove(registered_stream& s) noexcept;
  std::size_t size() const noexcept;

  // True from the first drain on.
  bool draining() const noexcept {
    return draining_.load(std::memory_order_relaxed);
  }

  // Until when a stream that was last active at `since` may stay idle. One at
  // work has at least half of the time.
  time_point idle_end(const registered_stream& s, const drain_share& share,
                      bool at_work, time_point since) const;

  // Let each stream have its share of the time from `start` to `end`. Calls
  // tell(stream, share) for each, under the lock.
  template <typename Tell>
  void drain(time_point start, time_point end, Tell tell) {
    const std::lock_guard<std::mutex> lock(mutex_);
    start_ = start;
    end_ = end;
    draining_.store(true, std::memory_order_relaxed);
    std::uint64_t n = 0;
    for (registered_stream& s : streams_)
      tell(s, share_of(++n));
  }

  // Told when the last stream has gone.
  void await_end(drain_end_base& e);
  void forget(drain_end_base& e) noexcept;

private:
  // The last one has not all of it: what ends a connection, a closing handshake
  // say, takes time too.
  drain_share share_of(std::uint64_t n) const noexcept {
    return static_cast<drain_share>(n * 65535 / (size_ + 1));
  }

  mutable std::mutex mutex_;
  std::atomic<bool> draining_{false};
  boost::intrusive::list<registered_stream,
                         boost::intrusive::constant_time_size<false>>
      streams_;
  std::size_t size_ = 0;
  time_point start_, end_;
  boost::intrusive::list<drain_end_base,
                         boost::intrusive::constant_time_size<false>>
      ends_;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_STREAM_REGISTRY_HPP
