//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/scheduler.hpp>

#include <algorithm>
#include <memory>
#include <ostream>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

const char* to_string(task_state s) noexcept {
  switch (s) {
  case task_state::pending:
    return "pending";
  case task_state::running:
    return "running";
  case task_state::done:
    return "done";
  case task_state::cancelled:
    return "cancelled";
  case task_state::failed:
    return "failed";
  case task_state::rejected:
    return "rejected";
  }
  return "?";
}

std::ostream& operator<<(std::ostream& o, task_state s) {
  return o << to_string(s);
}

// ---------------------------------------------------------------------------
// task_handle

task_handle::task_handle(const task_handle& other) noexcept
    : task_(other.task_) {
  if (task_)
    task_->add_reference();
}

bool task_handle::cancel() const noexcept {
  return task_ && task_->owner().cancel(*task_);
}

bool task_handle::reschedule_after(const duration& delay) const {
  return task_ &&
         reschedule_at(detail::time_scale::add(task_->owner().now(), delay));
}

bool task_handle::reschedule_at(const time_point& expiry) const {
  return task_ && task_->owner().reschedule(*task_, expiry);
}

task_state task_handle::state() const noexcept {
  return task_ ? task_->state() : task_state::rejected;
}

error_code task_handle::error() const noexcept {
  return task_ ? detail::error_of(task_->rejection()) : error_code();
}

task_handle::time_point task_handle::expiry() const noexcept {
  return task_ ? task_->owner().expiry(*task_) : time_point();
}

task_handle::duration task_handle::remaining() const noexcept {
  if (state() != task_state::pending)
    return duration::zero();
  const time_point t = expiry();
  if (t == time_point::max())
    return duration::max();
  return std::max(detail::time_scale::subtract(t, task_->owner().now()),
                  duration::zero());
}

std::uintptr_t task_handle::tag() const noexcept {
  return task_ ? task_->tag() : 0;
}

void task_handle::tag(std::uintptr_t value) const noexcept {
  if (task_)
    task_->tag(value);
}

// ---------------------------------------------------------------------------
// scheduler

scheduler::scheduler(const executor_type& ex,
                     const scheduler_options& options) {
  const std::size_t shards = asio::use_service<wheel_service>(
                                 asio::query(ex, asio::execution::context))
                                 .options()
                                 .shards;
  const std::size_t max_pending =
      options.max_pending / shards + (options.max_pending % shards != 0);
  const auto on_error =
      std::make_shared<const detail::task_error_hook>(options.on_error);
  shards_.reserve(shards);
  for (std::size_t i = 0; i != shards; ++i)
    shards_.emplace_back(new detail::task_shard(ex, max_pending, on_error));
}

scheduler::~scheduler() {
  for (const auto& s : shards_)
    s->close();
}

scheduler::executor_type scheduler::get_executor() const noexcept {
  return shards_.front()->get_executor();
}

scheduler::time_point scheduler::now() const noexcept {
  return shards_.front()->now();
}

detail::task_shard& scheduler::shard() const noexcept {
  return *shards_[shards_.size() == 1
                      ? 0
                      : detail::thread_number() % shards_.size()];
}

std::vector<task_handle> scheduler::stop() {
  std::vector<task_handle> stopped;
  for (const auto& s : shards_)
    s->stop(stopped);
  std::stable_sort(stopped.begin(), stopped.end(),
                   [](const task_handle& a, const task_handle& b) {
                     return a.expiry() < b.expiry();
                   });
  return stopped;
}

void scheduler::start_drain(detail::task_drain& d) {
  for (std::size_t i = 0; i != shards_.size(); ++i)
    shards_[i]->drain(d.of_shard(i));
}

std::size_t scheduler::pending() const {
  std::size_t n = 0;
  for (const auto& s : shards_)
    n += s->pending();
  return n;
}

task_counts scheduler::counts() const {
  task_counts c;
  for (const auto& s : shards_)
    s->add_counts(c);
  return c;
}

std::vector<task_handle> scheduler::pending_tasks() const {
  std::vector<task_handle> handles;
  for (const auto& s : shards_)
    s->add_pending(handles);
  return handles;
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
