//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include <asio_wheel/detail/reserve_unlocked.hpp>
#include <asio_wheel/detail/task_shard.hpp>
#include <asio_wheel/scheduler.hpp>

#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>

#include <cstdlib>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

// ---------------------------------------------------------------------------
// task_pool

task_pool::~task_pool() {
  while (chunks_)
    std::free(std::exchange(chunks_, chunks_->next));
}

void* task_pool::cut(std::size_t size) {
  if (left_ < size) { // what is left of the last chunk is lost: under 512 bytes
    void* const memory = std::malloc(chunk_size);
    if (!memory)
      throw std::bad_alloc();
    chunks_ = ::new (memory) block{chunks_};
    next_ = static_cast<unsigned char*>(memory) + grain;
    left_ = chunk_size - grain;
  }
  left_ -= size;
  return std::exchange(next_, next_ + size);
}

// ---------------------------------------------------------------------------
// task_drain

task_drain::task_drain(std::size_t shards) : parts_(shards), left_(shards) {
  for (part& p : parts_)
    p.whole = this;
}

task_drain::~task_drain() {
  while (!waiting_.empty()) // it never began
    waiting_.take_front().discard();
}

void task_drain::finish(queue::op* op, bool lost) {
  if (lost)
    op->discard();
  else
    op->complete({});
}

void task_drain::start(queue::op& op) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (left_ == 0) {
    queue::release(op);
    lock.unlock();
    finish(&op, lost_);
  } else {
    waiting_.push_back(op);
  }
}

void task_drain::done(part& p, bool lost) {
  const boost::intrusive_ptr<task_drain> d(p.whole, false);
  std::unique_lock<std::mutex> lock(d->mutex_);
  d->lost_ |= lost;
  if (--d->left_ != 0 || d->waiting_.empty())
    return;
  queue::op& op = d->waiting_.take_front();
  lock.unlock();
  finish(&op, d->lost_);
}

void task_drain::cancel(queue::link& l) {
  std::unique_lock<std::mutex> lock(mutex_);
  queue::op* const op = waiting_.take(l);
  lock.unlock();
  if (op)
    op->complete(asio::error::operation_aborted);
}

void task_drain::forget(queue::link& l) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  queue::forget(l);
}

// ---------------------------------------------------------------------------
// Thunks

void arrive(task& t) { t.owner().arrive(t); }

void drop(task& t) noexcept { t.owner().drop(t); }

void release(task& t) noexcept { t.owner().release(t); }

class task_shard::posted_drain {
public:
  using allocator_type = recycling_allocator<void>;

  explicit posted_drain(task_shard* s) noexcept : shard_(s) {}
  posted_drain(posted_drain&& other) noexcept = default;
  ~posted_drain() {
    if (!shard_)
      return;
    lock_type lock(shard_->mutex_);
    shard_->drain_posted_ = false;
    shard_->end(lock, outcome::abandoned, nullptr);
  }
  allocator_type get_allocator() const noexcept { return {}; }
  void operator()() {
    const boost::intrusive_ptr<task_shard> s = std::move(shard_);
    lock_type lock(s->mutex_);
    s->drain_posted_ = false;
    s->drain(lock);
  }

private:
  boost::intrusive_ptr<task_shard> shard_;
};

// ---------------------------------------------------------------------------
// Construction

task_shard::task_shard(const asio::any_io_executor& ex, std::size_t max_pending,
                       std::shared_ptr<const task_error_hook> on_error)
    : task_shard(ex, max_pending, std::move(on_error),
                 asio::use_service<wheel_service>(
                     asio::query(ex, asio::execution::context))
                     .options()) {}

task_shard::task_shard(const asio::any_io_executor& ex, std::size_t max_pending,
                       std::shared_ptr<const task_error_hook> on_error,
                       const wheel_options& options)
    : max_pending_(max_pending), batch_(options.expiry_batch),
      single_threaded_(options.single_threaded),
      native_(native_executor::behind(ex)), on_error_(std::move(on_error)),
      mutex_(!options.single_threaded), wakeup_(*this, ex),
      wheel_({options.slots, options.levels}) {}

task_shard::newborn::newborn(task_shard& s, std::size_t size)
    : shard_(s), size_(size) {
  if (size_ > task_pool::largest)
    memory_ = ::operator new(size_);
}

void task_shard::newborn::allocate() {
  if (!memory_)
    memory_ = shard_.pool_.allocate(size_);
  if (shard_.tasks_++ == 0)
    intrusive_ptr_add_ref(&shard_);
}

task_shard::newborn::~newborn() {
  if (task_)
    task_->destroy();
  if (memory_) {
    const lock_type lock(shard_.mutex_);
    shard_.free_memory(memory_, size_ <= task_pool::largest ? size_ : 0);
  }
}

// ---------------------------------------------------------------------------
// Tasks in and out

// Tasks hold one reference to the shard together. Never the last: who may free
// a task has one.
void task_shard::free_memory(void* p, std::size_t size) noexcept {
  if (size != 0)
    pool_.deallocate(p, size);
  else
    ::operator delete(p);
  if (--tasks_ == 0)
    references_.fetch_sub(1, std::memory_order_relaxed);
}

void task_shard::free(task& t) noexcept {
  const std::size_t size = t.size_;
  t.~task();
  free_memory(&t, size);
}

void task_shard::unreference(task& t) noexcept {
  // Mostly there is no handle any more.
  if (t.references_.load(std::memory_order_acquire) == 1 ||
      t.references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    free(t);
}

// A handle goes.
void task_shard::release(task& t) noexcept {
  if (t.references_.fetch_sub(1, std::memory_order_acq_rel) != 1)
    return;
  const boost::intrusive_ptr<task_shard> keep(this);
  const lock_type lock(mutex_);
  free(t);
}

task_handle task_shard::take_in(newborn& n) {
  task& t = *n.task_;
  outcome why = n.refused_;
  if (why == outcome::none)
    why = refused_;
  if (why == outcome::none && max_pending_ != 0 && pending_ >= max_pending_)
    why = outcome::too_many_pending;
  const tick_type tick = scale().ceil(t.expiry_, 0);
  if (why == outcome::none)
    why = prepare(tick);
  n.memory_ = nullptr; // the handle has it
  if (why == outcome::none) {
    n.task_ = nullptr;
    ++pending_;
    put(t, tick);
  } else { // its function is destroyed without the lock, by the newborn
    t.rejection_ = why;
    t.state_.store(task_state::rejected, std::memory_order_release);
    t.references_.store(1, std::memory_order_relaxed);
    ++rejected_;
  }
  return task_handle(&t);
}

// See to it that wake() is called by `tick`. What throws, throws here, before
// anything has changed.
outcome task_shard::prepare(tick_type tick) {
  if (tick <= wheel_.now() || (armed_ && tick >= armed_tick_))
    return outcome::none;
  const outcome why = wakeup_.set(scale().begin(tick));
  if (why == outcome::none) {
    armed_ = true;
    armed_tick_ = tick;
  }
  return why;
}

// Put a pending task, which may be on the wheel, where it belongs.
void task_shard::put(task& t, tick_type tick) noexcept {
  if (tick == timing_wheel::never) {
    wheel_.erase(t);
    t.place_ = place::never;
    never_.push_back(t);
  } else if (wheel_.move(t, tick)) {
    t.place_ = place::wheel;
  } else {
    make_ready(t);
    return;
  }
  ++ahead_;
}

// The task is due. If a thunk of it is on its way, it will run when that
// arrives.
void task_shard::make_ready(task& t) noexcept {
  t.place_ = t.handed_ ? place::lent : place::ready;
  (t.handed_ ? lent_ : ready_).push_back(t);
  t.round_ = round_;
  ++outstanding_[round_];
}

// A pending task leaves its place; one on the wheel stays linked.
void task_shard::take_off(task& t) noexcept {
  switch (std::exchange(t.place_, place::nowhere)) {
  case place::nowhere:
    return;
  case place::wheel:
    --ahead_;
    return;
  case place::never:
    --ahead_;
    break;
  case place::ready:
  case place::lent:
    no_longer_due(t);
    break;
  }
  ready_.erase(task_list::s_iterator_to(t)); // any list would do
}

// Takes over a reference to a task that is linked and will not run.
void task_shard::erase_later(task& t) noexcept {
  wheel_.prefetch(t);
  task*& oldest = erasing_[erased_++ % erasing_.size()];
  if (oldest) {
    wheel_.erase(*oldest);
    unreference(*oldest);
  }
  oldest = &t;
}

void task_shard::erase_cancelled() noexcept {
  for (task*& t : erasing_)
    if (task* const cancelled = std::exchange(t, nullptr)) {
      wheel_.erase(*cancelled);
      unreference(*cancelled);
    }
}

bool task_shard::cancel(task& t) noexcept {
  lock_type lock(mutex_);
  switch (t.state_.load(std::memory_order_relaxed)) {
  case task_state::pending:
    break;
  case task_state::running:
    return t.periodic_ && !std::exchange(t.last_run_, true);
  default:
    return false;
  }
  take_off(t);
  --pending_;
  ++cancelled_;
  t.state_.store(task_state::cancelled, std::memory_order_release);
  if (t.is_linked())
    erase_later(t);
  else
    unreference(t); // the handle has one
  unlock_and_post(lock);
  t.destroy();
  return true;
}

bool task_shard::reschedule(task& t, time_point expiry) {
  lock_type lock(mutex_);
  if (t.state_.load(std::memory_order_relaxed) != task_state::pending)
    return false;
  const tick_type tick = scale().ceil(expiry, 0);
  if (prepare(tick) != outcome::none)
    return false; // the wheel has been stopped: the task will hear of it
  t.expiry_ = expiry;
  if (t.periodic_)
    static_cast<periodic_task&>(t).schedule_.reset_at(expiry);
  take_off(t);
  put(t, tick);
  unlock_and_post(lock);
  return true;
}

task_shard::time_point task_shard::expiry(const task& t) noexcept {
  switch (t.state_.load(std::memory_order_acquire)) {
  case task_state::pending:
  case task_state::running:
    break;
  default:
    return t.expiry_; // for good: stop() sorts by it
  }
  const lock_type lock(mutex_);
  return t.expiry_;
}

// ---------------------------------------------------------------------------
// The drain

void task_shard::wake() {
  lock_type lock(mutex_);
  wakeup_.woken();
  armed_ = false;
  if (wakeup_.owner().stopped())
    end(lock, outcome::stopped, nullptr);
  else
    drain(lock);
}

void task_shard::lost() noexcept {
  lock_type lock(mutex_);
  wakeup_.woken();
  armed_ = false;
  end(lock, outcome::abandoned, nullptr);
}

void task_shard::drain(lock_type& lock) {
  // If a function throws, what is left gets a drain of its own.
  struct guard {
    task_shard& shard;
    bool completed = false;
    ~guard() {
      if (completed)
        return;
      lock_type relock(shard.mutex_);
      shard.more_due_ = shard.refused_ == outcome::none;
      shard.unlock_and_post(relock);
    }
  } g{*this};

  collect(2 * batch_);
  for (std::size_t n = 0; n != batch_ && !ready_.empty(); ++n) {
    if (native_.context_stopped())
      break;
    auto& t = static_cast<task&>(ready_.front());
    // If there is more, have another drain ready: this function may take long,
    // or poll(), and other threads may help.
    if (t.foreign_) {
      ready_.pop_front();
      lent_.push_back(t);
      t.place_ = place::lent;
      t.handed_ = true;
      t.add_reference();
      unlock_and_post(lock);
      t.hand_over();
      lock.lock();
    } else {
      run(t, lock);
    }
  }
  const outcome why = settle();
  g.completed = true;
  if (why != outcome::none)
    end(lock, why, nullptr);
  else
    unlock_and_post(lock);
}

// Take what is due from the wheel.
void task_shard::collect(std::size_t budget) {
  const auto take = [this](timing_wheel_entry& e) {
    auto& t = static_cast<task&>(e);
    if (t.place_ == place::nowhere)
      return; // cancelled: see erasing_
    --ahead_;
    make_ready(t);
  };
  more_due_ = !wheel_.advance(scale().floor(now()), take, budget);
}

// Call the function of a due task, unlocked meanwhile.
void task_shard::run(task& t, lock_type& lock) {
  ready_.erase(task_list::s_iterator_to(t)); // or lent_'s: any list would do
  t.place_ = place::nowhere;
  t.state_.store(task_state::running, std::memory_order_release);
  --pending_;
  ++running_;
  unlock_and_post(lock);

  periodic_schedule* const schedule =
      t.periodic_ ? &static_cast<periodic_task&>(t).schedule_ : nullptr;
  std::exception_ptr error;
  try {
    t.run(schedule ? schedule->take(now()) : 0);
  } catch (...) {
    error = std::current_exception();
  }
  bool repeats = schedule && !error;
  if (repeats && schedule->at_work())
    schedule->resume(now());
  if (repeats) {
    lock.lock();
    repeats = !t.last_run_ && refused_ == outcome::none;
    if (!repeats)
      lock.unlock();
  }
  if (!repeats) {
    t.destroy();
    lock.lock();
  }

  no_longer_due(t);
  --running_;
  if (repeats) {
    t.expiry_ = schedule->next();
    t.state_.store(task_state::pending, std::memory_order_release);
    ++pending_;
    put(t, scale().ceil(t.expiry_, 0));
    return;
  }
  ++(error ? failed_ : schedule ? cancelled_ : done_);
  t.state_.store(error      ? task_state::failed
                 : schedule ? task_state::cancelled
                            : task_state::done,
                 std::memory_order_release);
  if (error) {
    task_handle h(&t); // with the shard's reference
    unlock_and_post(lock);
    if (!*on_error_)
      std::rethrow_exception(error);
    (*on_error_)(h, error);
    h = {}; // takes the lock, if it is the last
    lock.lock();
  } else {
    unreference(t);
  }
}

// Leave the wakeup armed if there is something to be woken for. While more is
// due already, the drain that is posted for it sees to that.
outcome task_shard::settle() {
  if (!ready_.empty() || more_due_)
    return outcome::none;
  erase_cancelled();
  return needs_wakeup() ? prepare(wheel_.next_tick()) : outcome::none;
}

void task_shard::unlock_and_post(lock_type& lock) {
  const bool post = !drain_posted_ && (!ready_.empty() || more_due_);
  drain_posted_ |= post;
  task_drain::part_list finished;
  while (!draining_.empty() && outstanding_[!round_] == 0) {
    finished.splice(finished.end(), draining_);
    draining_.swap(drain_next_);
    if (!draining_.empty())
      round_ = !round_;
  }
  if (armed_ && !needs_wakeup()) {
    wakeup_.clear();
    armed_ = false;
  }
  // Handles may outlive the context; a strand may not.
  std::optional<asio::any_io_executor> executor;
  if (closed_ && !needs_wakeup() && !drain_posted_)
    wakeup_.release_executor(executor);
  lock.unlock();

  finish(finished, false);
  if (post)
    asio::post(get_executor(), posted_drain(this));
}

void task_shard::finish(task_drain::part_list& drains, bool lost) {
  while (!drains.empty()) {
    task_drain::part& p = drains.front();
    drains.pop_front();
    task_drain::done(p, lost);
  }
}

// A task that was handed over is on its executor.
void task_shard::arrive(task& t) {
  const boost::intrusive_ptr<task_shard> keep(this);
  const task_handle h(&t); // with the thunk's reference
  lock_type lock(mutex_);
  t.handed_ = false;
  if (t.place_ != place::lent)
    return; // cancelled; or moved, and it waits again
  run(t, lock);
  if (const outcome why = settle(); why != outcome::none)
    end(lock, why, nullptr);
  else
    unlock_and_post(lock);
}

// Its executor has destroyed the thunk.
void task_shard::drop(task& t) noexcept {
  const boost::intrusive_ptr<task_shard> keep(this);
  const task_handle h(&t);
  lock_type lock(mutex_);
  t.handed_ = false;
  if (t.place_ != place::lent)
    return;
  take_off(t);
  --pending_;
  ++cancelled_;
  t.state_.store(task_state::cancelled, std::memory_order_release);
  unreference(t);
  unlock_and_post(lock);
  t.destroy();
}

// ---------------------------------------------------------------------------
// The scheduler's side

// No task is taken in any more, and those that are pending will not run. Takes
// the lock, and gives it back.
void task_shard::end(lock_type& lock, outcome why,
                     std::vector<task_handle>* stopped) {
  refused_ = why;
  task_list ended;
  for (task_list* list : {&never_, &ready_, &lent_})
    ended.splice(ended.end(), *list);
  wheel_.clear([&](timing_wheel_entry& e) {
    if (static_cast<task&>(e).place_ != place::nowhere)
      ended.push_back(e);
  });
  erase_cancelled();
  for (timing_wheel_entry& e : ended) {
    auto& t = static_cast<task&>(e);
    if (t.place_ == place::ready || t.place_ == place::lent)
      no_longer_due(t);
    t.place_ = place::nowhere;
    t.state_.store(task_state::cancelled, std::memory_order_release);
  }
  cancelled_ += std::exchange(pending_, 0u);
  ahead_ = 0;
  more_due_ = false;
  task_drain::part_list drains;
  if (why == outcome::abandoned) {
    drains.splice(drains.end(), draining_);
    drains.splice(drains.end(), drain_next_);
  }
  unlock_and_post(lock);

  finish(drains, true);
  for (timing_wheel_entry& e : ended)
    static_cast<task&>(e).destroy();
  if (!stopped)
    lock.lock();
  while (!ended.empty()) {
    auto& t = static_cast<task&>(ended.front());
    ended.pop_front();
    if (stopped)
      stopped->push_back(task_handle(&t)); // with the shard's reference
    else
      unreference(t);
  }
  if (!stopped)
    lock.unlock();
}

void task_shard::stop(std::vector<task_handle>& stopped) {
  lock_type lock(mutex_);
  reserve_unlocked(stopped, lock, [this] { return pending_; });
  end(lock, outcome::stopped, &stopped);
}

void task_shard::close() {
  lock_type lock(mutex_);
  closed_ = true;
  end(lock, outcome::stopped, nullptr);
}

std::size_t task_shard::pending() {
  const lock_type lock(mutex_);
  return pending_;
}

void task_shard::add_counts(task_counts& c) {
  const lock_type lock(mutex_);
  c.pending += pending_;
  c.running += running_;
  c.done += done_;
  c.cancelled += cancelled_;
  c.failed += failed_;
  c.rejected += rejected_;
}

void task_shard::add_pending(std::vector<task_handle>& handles) {
  lock_type lock(mutex_);
  reserve_unlocked(handles, lock, [this] { return pending_; });
  const auto add = [&](timing_wheel_entry& e) {
    if (auto& t = static_cast<task&>(e); t.place_ != place::nowhere)
      handles.push_back(t.handle());
  };
  for (task_list* list : {&never_, &ready_, &lent_})
    for (timing_wheel_entry& e : *list)
      add(e);
  wheel_.for_each(add);
}

// Let go of the drain when all that is due now has run.
void task_shard::drain(task_drain::part& p) {
  lock_type lock(mutex_);
  if (refused_ == outcome::none) {
    collect(timing_wheel::unlimited);
    if (const outcome why = prepare(timing_wheel::never); why != outcome::none)
      refused_ = why;
  }
  intrusive_ptr_add_ref(p.whole);
  if (draining_.empty()) {
    round_ = !round_;
    draining_.push_back(p);
  } else {
    drain_next_.push_back(p);
  }
  unlock_and_post(lock);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
