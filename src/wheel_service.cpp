//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/stream_bounds.hpp>
#include <asio_wheel/detail/time_scale.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <algorithm>

#include <stdexcept>
#include <string>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace {

void check(const wheel_options& o) {
  if (o.tick < std::chrono::microseconds(1) || o.tick > std::chrono::hours(1))
    throw std::invalid_argument(
        "asio_wheel: wheel_options::tick must be from 1 us to 1 h");
  if (o.shards < 1 || o.shards > 1024)
    throw std::invalid_argument(
        "asio_wheel: wheel_options::shards must be from 1 to 1024");
  if (o.expiry_batch < 1 || o.expiry_batch > wheel_options::max_expiry_batch)
    throw std::invalid_argument(
        "asio_wheel: wheel_options::expiry_batch must be from 1 to " +
        std::to_string(wheel_options::max_expiry_batch));
  // slots and levels: timing_wheel's constructor
}

} // namespace

std::size_t detail::thread_number() noexcept {
  static std::atomic<std::size_t> next{0};
  thread_local const std::size_t number =
      next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

asio::execution_context::id wheel_service::id;

wheel_service::wheel_service(asio::execution_context& context)
    : wheel_service(context, wheel_options()) {}

wheel_service::wheel_service(asio::execution_context& context,
                             const wheel_options& options)
    : asio::execution_context::service(context), options_(options),
      streams_(std::make_shared<detail::stream_registry>()) {
  check(options);
  const std::size_t max_pending =
      options.max_pending / options.shards +
      (options.max_pending % options.shards != 0 ? 1 : 0);
  shards_.reserve(options.shards);
  for (std::size_t i = 0; i != options.shards; ++i)
    shards_.push_back(
        new detail::shard(context, options, max_pending, streams_));
}

wheel_service::~wheel_service() = default;

void wheel_service::shutdown() {
  for (const auto& s : shards_)
    s->shut_down();
}

wheel_service::time_point wheel_service::now() const noexcept {
  return shards_.front()->now();
}

std::size_t wheel_service::pending() const {
  std::size_t n = 0;
  for (const auto& s : shards_)
    n += s->pending();
  return n;
}

std::optional<wheel_service::time_point> wheel_service::next_expiry() const {
  std::optional<time_point> next;
  for (const auto& s : shards_)
    if (const auto t = s->next_expiry(); t && (!next || *t < *next))
      next = t;
  return next;
}

wheel_stats wheel_service::stats() const {
  wheel_stats total;
  for (const auto& s : shards_)
    s->add_stats(total);
  return total;
}

std::size_t wheel_service::stop() {
  std::size_t n = 0;
  for (const auto& s : shards_)
    n += s->stop();
  return n;
}

std::size_t wheel_service::streams() const noexcept { return streams_->size(); }

std::shared_ptr<detail::drain_end>
wheel_service::begin_drain(const duration& d) {
  auto end = std::make_shared<detail::drain_end>(local_shard(), streams_);
  const time_point start = now();
  const time_point last = std::max(start, detail::time_scale::add(start, d));
  end->begin(last);
  streams_->drain(start, last,
                  [](detail::registered_stream& s, detail::drain_share share) {
                    static_cast<detail::stream_bounds&>(s).drain(share);
                  });
  return end;
}

bool wheel_service::stopped() const { return shards_.front()->stopped(); }

detail::shard& wheel_service::local_shard() const noexcept {
  return *shards_[shards_.size() == 1
                      ? 0
                      : detail::thread_number() % shards_.size()];
}

void wheel_service::learn_native(
    const detail::native_executor& native) noexcept {
  if (!native || native_known_.load(std::memory_order_relaxed))
    return;
  for (const auto& s : shards_)
    s->learn_native(native);
  native_known_.store(true, std::memory_order_relaxed);
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
