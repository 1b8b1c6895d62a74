//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_DETAIL_DEADLINE_CORE_HPP
#define ASIO_WHEEL_DETAIL_DEADLINE_CORE_HPP

#include <asio_wheel/detail/alarm.hpp>
#include <asio_wheel/detail/config.hpp>
#include <asio_wheel/error.hpp>

#include <boost/intrusive/list.hpp>
#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

class deadline_core;

void intrusive_ptr_add_ref(const deadline_core* c) noexcept;
void intrusive_ptr_release(const deadline_core* c) noexcept;

using deadline_core_ptr = boost::intrusive_ptr<deadline_core>;

// Who was the first to end an operation, or why it is to end: nobody, the user
// (which is operation_aborted), or else the value of an enum error.
inline constexpr int by_nobody = 0;
inline constexpr int by_user = -1;
constexpr int by(error e) noexcept { return static_cast<int>(e); }

// An operation under a deadline.
class deadline_entry
    : public boost::intrusive::list_base_hook<
          boost::intrusive::link_mode<boost::intrusive::safe_link>> {
public:
  // Keep the operation until ring() has been called. Called under the lock.
  virtual void hold() noexcept = 0;
  // End the operation: the deadline, which was at `expiry`, says why.
  virtual void ring(int why, std::chrono::steady_clock::time_point expiry) = 0;

protected:
  ~deadline_entry() = default;

private:
  friend class deadline_core;
  bool waiting_ = false; // in deadline_core::entries_
};

// A deadline and the operations under it; kept by the deadline object, by each
// operation, and by who was told of it (deadline_ref).
//
// Ground rules. Everything is guarded by mutex_: the operations may run on
// executors of different threads. Neither an operation nor its cancellation is
// called under it. The shard's lock may be taken under it, never the other way
// round: the drain calls due() without. The alarm has a wait only while
// operations wait for the deadline, so that it does not hold run() otherwise.
class deadline_core {
public:
  using duration = std::chrono::steady_clock::duration;
  using time_point = std::chrono::steady_clock::time_point;

  static deadline_core_ptr make(shard& s, time_point expiry);

  deadline_core(const deadline_core&) = delete;
  deadline_core& operator=(const deadline_core&) = delete;

  // The clock's time, and a time from it.
  time_point now() const noexcept;
  time_point after(duration d) const noexcept;

  time_point expiry() const noexcept;
  duration remaining() const noexcept;
  bool expired() const noexcept { return expiry() <= now(); }
  void expires_at(time_point t);

  // Why an operation may not be started any more; by_nobody: it may.
  int refusal() const noexcept;

  // For an operation: from now on it is ended with the deadline, unless it is
  // refused.
  int join(deadline_entry& e);
  void leave(deadline_entry& e) noexcept;

  // End all operations. Returns how many.
  std::size_t end_all(int why);
  std::size_t pending() const noexcept;

  // The deadline object has gone: end all operations, take no new ones.
  void close() noexcept;

private:
  friend void intrusive_ptr_add_ref(const deadline_core* c) noexcept;
  friend void intrusive_ptr_release(const deadline_core* c) noexcept;

  using entry_list =
      boost::intrusive::list<deadline_entry,
                             boost::intrusive::constant_time_size<false>>;
  class due_check;

  deadline_core(shard& s, time_point expiry) noexcept
      : alarm_(s, true), expiry_(expiry) {}

  int refusal_locked() const noexcept;
  void arm();
  void disarm() noexcept;
  void due(const error_code& ec, std::uint64_t round);

  mutable std::atomic<std::size_t> references_{0};
  mutable std::mutex mutex_;
  alarm alarm_;
  time_point expiry_;
  entry_list entries_; // the latest first: an inner operation before an outer
  std::size_t count_ = 0;
  std::uint64_t round_ = 0; // of the alarm's wait; those before are stale
  bool armed_ = false;
  bool closed_ = false;
};

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_DETAIL_DEADLINE_CORE_HPP
