//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "clock_state.hpp"

#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/manual_clock.hpp>

#include <stdexcept>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

void clock_state::add(shard& s) {
  const std::lock_guard<std::mutex> lock(mutex_);
  shards_.push_back(&s);
}

void clock_state::remove(shard& s) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  shards_.erase(std::remove(shards_.begin(), shards_.end(), &s), shards_.end());
}

void clock_state::set(time_point t) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (t < now())
    throw std::invalid_argument(
        "asio_wheel: a manual_clock cannot be set back");
  now_.store(t.time_since_epoch().count(), std::memory_order_release);
  for (shard* s : shards_)
    s->time_changed();
}

} // namespace detail

manual_clock::hold_token::hold_token(
    std::shared_ptr<detail::clock_state> s) noexcept
    : state_(std::move(s)) {
  state_->add_hold();
}

manual_clock::hold_token&
manual_clock::hold_token::operator=(hold_token&& other) noexcept {
  if (this != &other) {
    release();
    state_ = std::move(other.state_);
  }
  return *this;
}

manual_clock::hold_token::~hold_token() { release(); }

void manual_clock::hold_token::release() noexcept {
  if (state_) {
    state_->remove_hold();
    state_.reset();
  }
}

manual_clock::manual_clock(time_point start)
    : state_(std::make_shared<detail::clock_state>(start)) {}

manual_clock::time_point manual_clock::now() const noexcept {
  return state_->now();
}

void manual_clock::advance(duration d) {
  if (d < duration::zero())
    throw std::invalid_argument(
        "asio_wheel: a manual_clock cannot be set back");
  state_->set(detail::time_scale::add(now(), d));
}

void manual_clock::advance_to(time_point t) { state_->set(t); }

std::optional<manual_clock::time_point> manual_clock::next_deadline() const {
  std::optional<time_point> next;
  state_->for_each([&](detail::shard& s) {
    if (const auto t = s.next_expiry(); t && (!next || *t < *next))
      next = t;
  });
  return next;
}

std::size_t manual_clock::pending() const {
  std::size_t n = 0;
  state_->for_each([&](detail::shard& s) { n += s.pending(); });
  return n;
}

manual_clock::hold_token manual_clock::hold() { return hold_token(state_); }

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
