//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#include "clock_state.hpp"

#include <asio_wheel/detail/shard.hpp>
#include <asio_wheel/wheel_service.hpp>

#include <boost/asio/error.hpp>

#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {
namespace detail {

error_code error_of(outcome o) noexcept {
  switch (o) {
  case outcome::none:
    return {};
  case outcome::too_many_pending:
    return error::too_many_pending;
  case outcome::stopped:
    return error::wheel_stopped;
  case outcome::not_supported:
    return asio::error::operation_not_supported;
  case outcome::aborted:
  case outcome::abandoned:
    break;
  }
  return asio::error::operation_aborted;
}

void intrusive_ptr_add_ref(const shard* s) noexcept {
  s->references_.fetch_add(1, std::memory_order_relaxed);
}

void intrusive_ptr_release(const shard* s) noexcept {
  if (s->references_.fetch_sub(1, std::memory_order_acq_rel) == 1)
    delete s;
}

void arrive(shard& s, wait_op& op) { s.arrive(op); }

void drop(shard& s, wait_op& op) noexcept { s.drop(op); }

// ---------------------------------------------------------------------------
// optional_mutex

// The lock is free again in no time, unless the thread that holds it is not
// running: then it has to get the processor, if need be from a thread of higher
// priority that waits here.
void optional_mutex::lock_slowly() noexcept {
  constexpr unsigned spins = 100, yields = 20;
  unsigned n = 0;
  do {
    while (locked_.load(std::memory_order_relaxed)) {
      if (n < spins)
        ASIO_WHEEL_PAUSE();
      else if (n < spins + yields)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      ++n;
    }
  } while (locked_.exchange(true, std::memory_order_acquire));
}

// ---------------------------------------------------------------------------
// alarm: the user's side

alarm::alarm(alarm&& other) noexcept
    : shard_(other.shard_), on_own_context_(other.on_own_context_) {
  shard_->adopt(*this, other);
}

alarm& alarm::operator=(alarm&& other) noexcept {
  if (this != &other) {
    shard_->remove(*this);
    shard_ = other.shard_;
    on_own_context_ = other.on_own_context_;
    shard_->adopt(*this, other);
  }
  return *this;
}

alarm::~alarm() {
  if (ever_armed_)
    shard_->remove(*this);
}

// ---------------------------------------------------------------------------
// wait_op::slot_link

wait_op::slot_link::slot_link(wait_op& op, shard& s) noexcept
    : shard_(&s), op_(&op) {
  s.link(*this);
}

wait_op::slot_link::~slot_link() { shard_->unlink(*this); }

void wait_op::slot_link::operator()(asio::cancellation_type_t type) {
  using asio::cancellation_type;
  if ((type & (cancellation_type::terminal | cancellation_type::partial |
               cancellation_type::total)) != cancellation_type::none)
    shard_->cancel(*this);
}

// ---------------------------------------------------------------------------
// What Asio calls

class shard::posted_drain {
public:
  explicit posted_drain(shard* s) noexcept : shard_(s) {}
  void operator()() { shard_->drain(false, false); }

private:
  shard_ptr shard_;
};

class shard::driver_wait {
public:
  using allocator_type = reserved_allocator<void>;

  explicit driver_wait(shard* s) noexcept
      : shard_(s), memory_(&s->driver_memory_) {}
  // Asked for even of a handler that was moved from, if starting it fails.
  allocator_type get_allocator() const noexcept {
    return allocator_type(*memory_);
  }
  void operator()(const error_code& ec) { shard_->drain(true, !ec); }

private:
  shard_ptr shard_;
  reserved_memory* memory_;
};

// ---------------------------------------------------------------------------
// Construction

// Small operations come in slabs. Not from operator new, which a program may
// have replaced by code of its own: they are taken under the lock.
struct shard::slab {
  static constexpr std::size_t size = 64;
  slab* next;
  alignas(small_op) unsigned char room[size][sizeof(small_op)];
};

shard::shard(asio::execution_context& context, const wheel_options& options,
             std::size_t max_pending, std::shared_ptr<stream_registry> streams)
    : context_(context),
      clock_(options.clock ? options.clock->state() : nullptr),
      streams_(std::move(streams)), scale_(now(), options.tick),
      max_pending_(max_pending), batch_(options.expiry_batch),
      single_threaded_(options.single_threaded),
      mutex_(!options.single_threaded), wheel_({options.slots, options.levels}),
      driver_(std::in_place, inline_executor(context)) {
  if (small_op* const op = take_small_op()) // so that the first slab is there
    free_small_ops_.push_back(*op);
  if (clock_)
    clock_->add(*this);
}

shard::~shard() {
  if (clock_ && !shut_down_) // never got into a service
    clock_->remove(*this);
  free_small_ops_.clear();
  while (slabs_)
    std::free(std::exchange(slabs_, slabs_->next));
}

small_op* shard::take_small_op() noexcept {
  if (free_small_ops_.empty()) {
    void* const memory = std::malloc(sizeof(slab));
    if (!memory)
      return nullptr;
    slabs_ = ::new (memory) slab{slabs_, {}};
    for (auto& room : slabs_->room)
      free_small_ops_.push_back(*::new (static_cast<void*>(room)) small_op);
  }
  auto* const op = static_cast<small_op*>(&free_small_ops_.front());
  free_small_ops_.pop_front();
  return op;
}

shard::time_point shard::now() const noexcept {
  return clock_ ? clock_->now() : std::chrono::steady_clock::now();
}

// ---------------------------------------------------------------------------
// Deadlines: an alarm with open waits is in exactly one place

shard::tick_type shard::current_tick() const noexcept {
  return scale_.floor(now());
}

void shard::set_expiry(alarm& a, time_point t, unsigned shift) noexcept {
  a.expiry_ = t;
  a.slack_shift_ = static_cast<unsigned char>(shift);
}

// See to it that the wheel is looked at by `tick`. Returns true if it is due
// already. Whatever throws, throws here, before anything has changed.
bool shard::prepare(tick_type tick) {
  if (tick <= wheel_.now())
    return true;
  // Under a manual clock the time may have passed what the driver is set to.
  if (clock_ && tick != timing_wheel::never && tick <= current_tick())
    return true;
  const bool nearer =
      (driver_state_ == driver_state::idle && !more_due_) || // see settle()
      (driver_state_ == driver_state::armed && tick < driver_tick_);
  if (!nearer)
    return false;
  if (tick != timing_wheel::never && tick <= current_tick())
    return true;
  set_driver(tick);
  return false;
}

// Put an alarm with open waits, which is idle, where it belongs.
void shard::place(alarm& a, tick_type tick, bool due) noexcept {
  if (due || (tick != timing_wheel::never && !wheel_.move(a, tick))) {
    wheel_.erase(a);
    queue_due(a);
    return;
  }
  ahead_ += a.open_waits();
  if (a.is_linked()) {
    if (tick == timing_wheel::never)
      wheel_.retire(a); // collect() moves it to never_ when its slot comes
    a.phase_ = alarm::phase::on_wheel;
  } else {
    a.phase_ = alarm::phase::never;
    never_.push_back(a);
  }
}

// Make an alarm idle. An entry on the wheel stays there, retired.
void shard::take_off(alarm& a) noexcept {
  switch (a.phase_) {
  case alarm::phase::idle:
    return;
  case alarm::phase::on_wheel:
    wheel_.retire(a);
    ahead_ -= a.open_waits();
    break;
  case alarm::phase::never:
    never_.erase(entry_list::s_iterator_to(a));
    ahead_ -= a.open_waits();
    break;
  case alarm::phase::due:
  case alarm::phase::lent:
    due_.erase(entry_list::s_iterator_to(a)); // or lent_'s: any list would do
    break;
  }
  a.phase_ = alarm::phase::idle;
}

// Queue an alarm that is due and not linked. If all its waits are handed, they
// will claim themselves when they arrive.
void shard::queue_due(alarm& a) noexcept {
  if (a.small_ || !a.ops_.front().handed_) {
    a.phase_ = alarm::phase::due;
    due_.push_back(a);
  } else {
    a.phase_ = alarm::phase::lent;
    lent_.push_back(a);
  }
}

// ---------------------------------------------------------------------------
// The driver

// Arm the driver for a tick nearer than the one it waits for, if any.
void shard::set_driver(tick_type tick) {
  if (driver_state_ == driver_state::idle) {
    // Under a manual clock the driver only keeps run() from returning;
    // time_changed() sees to the rest.
    driver_->expires_at(clock_ ? time_point::max() : scale_.begin(tick));
    driver_->async_wait(driver_wait(this));
    driver_state_ = driver_state::armed;
    driver_tick_ = tick;
  } else if (driver_state_ == driver_state::armed) {
    driver_tick_ = tick;
    if (!clock_)
      recall_driver();
  }
}

// Its handler will come soon, drain, and arm it anew if there is need.
void shard::recall_driver() noexcept {
  driver_->cancel();
  driver_state_ = driver_state::recalled;
}

// ---------------------------------------------------------------------------
// Waits: opened by start(), closed by a claim or an outcome

outcome shard::refusal(bool limited) const noexcept {
  if (stopped_)
    return outcome::stopped;
  if (limited && max_pending_ != 0 && open_ >= max_pending_)
    return outcome::too_many_pending;
  return outcome::none;
}

void shard::count_opened(alarm& a) noexcept {
  a.open_waits(a.open_waits() + 1);
  ++open_;
  ++scheduled_;
  if (open_ > peak_open_)
    peak_open_ = open_;
}

shard::start_result shard::start(alarm& a, const small_wait& w, outcome* why) {
  lock_type lock(mutex_);
  if (shut_down_)
    return start_result::left;
  if (a.open_waits() != 0)
    return start_result::no_room;
  if (const outcome refused = refusal(true); refused != outcome::none) {
    ++rejected_;
    if (why) {
      *why = refused;
      return start_result::left;
    }
    finish(w, refused);
  } else {
    const tick_type tick = scale_.ceil(a.expiry_, a.slack_shift_);
    const bool due = prepare(tick);
    a.ever_armed_ = true;
    a.small_ = w;
    count_opened(a);
    place(a, tick, due);
  }
  unlock_and_post(lock);
  return start_result::started;
}

shard::start_result shard::start(alarm& a, wait_op& op, outcome refused,
                                 outcome* why, bool limited) {
  lock_type lock(mutex_);
  if (shut_down_)
    return start_result::left;
  if (refused == outcome::none)
    refused = refusal(limited);
  if (refused != outcome::none) {
    ++rejected_;
    if (why) {
      *why = refused;
      return start_result::left;
    }
    finish(op, refused);
  } else {
    tick_type tick = 0;
    bool due = false;
    if (a.phase_ == alarm::phase::idle) {
      tick = scale_.ceil(a.expiry_, a.slack_shift_);
      due = prepare(tick);
    }
    a.ever_armed_ = true;
    op.alarm_ = &a;
    op.age_ = next_age_++;
    op.outcome_ = outcome::none; // it may have been started before
    // Before those that are handed.
    auto where = a.ops_.end();
    while (where != a.ops_.begin() && std::prev(where)->handed_)
      --where;
    a.ops_.insert(where, op);
    count_opened(a);
    switch (a.phase_) {
    case alarm::phase::idle:
      place(a, tick, due);
      break;
    case alarm::phase::on_wheel:
    case alarm::phase::never:
      ++ahead_;
      break;
    case alarm::phase::lent: // now there is one that is not handed
      take_off(a);
      queue_due(a);
      break;
    case alarm::phase::due:
      break;
    }
  }
  unlock_and_post(lock);
  return start_result::started;
}

// One wait of an alarm is no longer open.
void shard::close(alarm& a) noexcept {
  if (a.phase_ == alarm::phase::on_wheel || a.phase_ == alarm::phase::never)
    --ahead_;
  --open_;
  a.open_waits(a.open_waits() - 1);
  if (a.open_waits() == 0) {
    take_off(a);
  } else if (a.phase_ == alarm::phase::due && !a.small_ &&
             a.ops_.front().handed_) {
    take_off(a);
    queue_due(a);
  }
}

void shard::close(alarm& a, wait_op& op) noexcept {
  a.ops_.erase(wait_op_list::s_iterator_to(op));
  op.alarm_ = nullptr;
  close(a);
}

// Give an operation that is not open (any more) its outcome. If it is on its
// way to its executor, it will find the outcome when it arrives.
void shard::finish(wait_op& op, outcome o) noexcept {
  op.outcome_ = o;
  if (!op.handed_)
    finished_.push_back(op);
}

void shard::finish(const small_wait& w, outcome o) noexcept {
  if (small_op* const op = take_small_op()) {
    op->wait_ = w;
    finish(*op, o);
  } else {
    // No memory at all, and nowhere to say so: cancel() and destructors do
    // not throw. The handler is trivially destructible.
    ++abandoned_;
  }
}

void shard::abort(alarm& a, wait_op& op) noexcept {
  close(a, op);
  ++cancelled_;
  finish(op, outcome::aborted);
}

std::size_t shard::abort_all(alarm& a) noexcept {
  const std::size_t n = a.open_waits();
  if (n == 0)
    return 0;
  take_off(a);
  open_ -= n;
  cancelled_ += n;
  a.open_waits(0);
  if (a.small_) {
    finish(a.small_, outcome::aborted);
    a.small_.call = nullptr;
  }
  while (!a.ops_.empty()) {
    wait_op& op = a.ops_.front();
    a.ops_.pop_front();
    op.alarm_ = nullptr;
    finish(op, outcome::aborted);
  }
  return n;
}

std::size_t shard::cancel(alarm& a) noexcept {
  if (a.open_waits() == 0)
    return 0;
  lock_type lock(mutex_);
  const std::size_t n = abort_all(a);
  unlock_and_post(lock);
  return n;
}

std::size_t shard::cancel_one(alarm& a) noexcept {
  lock_type lock(mutex_);
  if (a.open_waits() == 0)
    return 0;
  if (a.small_) { // always the oldest
    const small_wait w = a.small_;
    a.small_.call = nullptr;
    close(a);
    ++cancelled_;
    finish(w, outcome::aborted);
  } else {
    wait_op* oldest = &a.ops_.front();
    for (wait_op& op : a.ops_)
      if (op.age_ < oldest->age_)
        oldest = &op;
    abort(a, *oldest);
  }
  unlock_and_post(lock);
  return 1;
}

std::size_t shard::expires_at(alarm& a, time_point t, duration slack) noexcept {
  const std::size_t n = cancel(a);
  // The user's side is the only one left, and no lock is needed.
  set_expiry(a, t, scale_.shift_for(slack));
  return n;
}

std::size_t shard::rearm_at(alarm& a, time_point t, duration slack) {
  lock_type lock(mutex_);
  const std::size_t n = a.open_waits();
  const unsigned shift = scale_.shift_for(slack);
  if (n != 0) {
    const tick_type tick = scale_.ceil(t, shift);
    const bool due = prepare(tick);
    if (a.phase_ == alarm::phase::on_wheel)
      ahead_ -= n; // place() moves it: later, that is a store
    else
      take_off(a);
    place(a, tick, due);
    moved_ += n;
  }
  set_expiry(a, t, shift);
  unlock_and_post(lock);
  return n;
}

// `to` takes the place of `from`; both are of this shard.
void shard::adopt(alarm& to, alarm& from) noexcept {
  if (from.ever_armed_) {
    const lock_type lock(mutex_);
    wheel_.replace(from, to);
    to.open_waits(from.open_waits());
    from.open_waits(0);
    to.phase_ = std::exchange(from.phase_, alarm::phase::idle);
    to.small_ = from.small_;
    from.small_.call = nullptr;
    to.ops_.swap(from.ops_);
    for (wait_op& op : to.ops_)
      op.alarm_ = &to;
    to.expiry_ = from.expiry_;
  } else {
    to.expiry_ = from.expiry_;
  }
  to.slack_shift_ =
      std::exchange(from.slack_shift_, static_cast<unsigned char>(0));
  to.ever_armed_ = std::exchange(from.ever_armed_, false);
  from.expiry_ = time_point();
}

void shard::remove(alarm& a) noexcept {
  lock_type lock(mutex_);
  abort_all(a);
  wheel_.erase(a);
  unlock_and_post(lock);
}

void shard::withdraw(alarm& a) noexcept {
  wait_op_list discarded;
  lock_type lock(mutex_);
  cancelled_ += abandon(a, discarded);
  unlock_and_post(lock);
  discard(discarded);
}

void shard::hasten(alarm& a) noexcept {
  lock_type lock(mutex_);
  if (a.phase_ == alarm::phase::on_wheel)
    ahead_ -= a.open_waits(); // place() takes it off the wheel
  else if (a.phase_ == alarm::phase::never)
    take_off(a);
  else
    return;
  place(a, 0, true);
  unlock_and_post(lock);
}

// ---------------------------------------------------------------------------
// Cancellation slots

void shard::link(wait_op::slot_link& l) noexcept {
  l.op_->link_ = &l; // the operation is not started yet: no lock is needed
}

void shard::unlink(wait_op::slot_link& l) noexcept {
  const lock_type lock(mutex_);
  if (l.op_)
    l.op_->link_ = nullptr;
}

void shard::cancel(wait_op::slot_link& l) noexcept {
  lock_type lock(mutex_);
  if (l.op_ && l.op_->alarm_)
    abort(*l.op_->alarm_, *l.op_);
  unlock_and_post(lock);
}

// The slot is no longer to reach the operation, which is about to go.
void shard::detach_slot(wait_op& op) noexcept {
  if (op.link_) {
    op.link_->op_ = nullptr;
    op.link_ = nullptr;
    op.clears_slot_ = true;
  }
}

// ---------------------------------------------------------------------------
// The drain

// A wait that was claimed: what to do with it outside the lock.
struct shard::started {
  small_wait small;
  wait_op* op = nullptr; // null: small
  bool hand_over = false;
  outcome how = outcome::none;

  void run() {
    if (!op)
      small.call(small.bytes, error_of(how));
    else if (hand_over)
      op->hand_over();
    else
      op->complete(error_of(how));
  }
};

// If a handler throws, what is left gets a drain of its own.
class shard::drain_guard {
public:
  explicit drain_guard(shard& s) noexcept : shard_(s) {}
  ~drain_guard() {
    if (completed_)
      return;
    lock_type lock(shard_.mutex_);
    shard_.draining_ = false;
    // Also if the driver is not armed though waits lie ahead.
    const bool post =
        (shard_.needs_drain() || shard_.ahead_ != 0) && shard_.request_drain();
    lock.unlock();
    if (post)
      shard_.post_drain();
  }
  void completed() noexcept { completed_ = true; }

private:
  shard& shard_;
  bool completed_ = false;
};

void shard::drain(bool by_driver, bool timed_out) {
  drain_guard guard(*this);
  lock_type lock(mutex_);
  if (shut_down_) {
    guard.completed();
    return;
  }
  if (by_driver) {
    driver_state_ = driver_state::idle;
    if (timed_out)
      ++wakeups_;
  } else {
    drain_posted_ = false;
  }
  draining_ = single_threaded_;

  collect();
  if (timed_out && !anything_ready())
    ++spurious_;
  settle();

  started s;
  for (std::size_t n = 0; n != batch_; ++n) {
    if (native_.context_stopped() || !claim(s))
      break;
    // If there is more, have another drain ready: this handler may take long,
    // or poll(), and other threads may help.
    unlock_and_post(lock);
    s.run();
    lock.lock();
  }

  draining_ = false;
  settle();
  guard.completed();
  unlock_and_post(lock);
}

// Take what is due from the wheel, up to a batch.
void shard::collect() {
  if (!due_.empty()) {
    more_due_ = true; // first things first
    return;
  }
  const time_point t = now();
  const bool shuffles = clock_ && clock_->shuffles();
  std::vector<alarm*> shuffled;
  const auto take = [&](timing_wheel_entry& e) {
    auto& a = static_cast<alarm&>(e);
    if (a.open_waits() == 0)
      return;                       // retired
    ASIO_WHEEL_PREFETCH(&a.small_); // for claim(), soon
    if (a.deadline() == timing_wheel::never) {
      a.phase_ = alarm::phase::never;
      never_.push_back(a);
      return;
    }
    ahead_ -= a.open_waits();
    if (const duration late = time_scale::subtract(t, a.expiry_);
        late > max_lateness_)
      max_lateness_ = late;
    if (shuffles)
      shuffled.push_back(&a);
    else
      queue_due(a);
  };
  more_due_ = !wheel_.advance(scale_.floor(t), take,
                              shuffles ? timing_wheel::unlimited : 2 * batch_);
  if (shuffles) {
    clock_->shuffle(shuffled);
    for (alarm* a : shuffled)
      queue_due(*a);
  }
}

// Choose the next wait to start. Those that are due and those that have an
// outcome take turns.
bool shard::claim(started& s) noexcept {
  s.hand_over = false;
  if (!finished_.empty() && (finished_first_ || due_.empty())) {
    finished_first_ = false;
    wait_op& op = finished_.front();
    finished_.pop_front();
    s.how = op.outcome_;
    if (op.kind_ == wait_op::kind::small) {
      auto& small = static_cast<small_op&>(op);
      s.op = nullptr;
      s.small = small.wait_;
      free_small_ops_.push_front(small);
      return true;
    }
    s.op = &op;
    if (op.kind_ == wait_op::kind::foreign) {
      op.handed_ = true;
      s.hand_over = true;
    } else {
      detach_slot(op);
    }
    return true;
  }
  finished_first_ = true;
  if (due_.empty())
    return false;
  auto& a = static_cast<alarm&>(due_.front());
  s.how = outcome::none;
  if (a.small_) {
    s.op = nullptr;
    s.small = a.small_;
    a.small_.call = nullptr;
    ++fired_;
    close(a);
    return true;
  }
  wait_op& op = a.ops_.front();
  s.op = &op;
  if (op.kind_ == wait_op::kind::foreign) {
    op.handed_ = true;
    s.hand_over = true;
    a.ops_.pop_front();
    a.ops_.push_back(op);
    if (a.ops_.front().handed_) {
      take_off(a);
      queue_due(a); // to lent_
    }
  } else {
    ++fired_;
    detach_slot(op);
    close(a, op);
  }
  return true;
}

// A handed operation is on its executor: start it, if it is still to be.
void shard::arrive(wait_op& op) {
  lock_type lock(mutex_);
  op.handed_ = false;
  if (op.alarm_) {
    alarm& a = *op.alarm_;
    if (a.phase_ != alarm::phase::due && a.phase_ != alarm::phase::lent) {
      // The deadline was moved: it waits again.
      a.ops_.erase(wait_op_list::s_iterator_to(op));
      a.ops_.push_front(op);
      return;
    }
    ++fired_;
    close(a, op);
  }
  const outcome how = op.outcome_;
  detach_slot(op);
  lock.unlock();
  if (how == outcome::abandoned)
    op.discard();
  else
    op.complete(error_of(how));
}

// A handed operation was destroyed by its executor.
void shard::drop(wait_op& op) noexcept {
  lock_type lock(mutex_);
  if (op.alarm_) {
    close(*op.alarm_, op);
    ++abandoned_;
  }
  detach_slot(op);
  // If that was the last wait, the driver must not keep run() from returning.
  const bool post = !single_threaded_ && ahead_ == 0 &&
                    driver_state_ == driver_state::armed && request_drain();
  lock.unlock();
  if (post)
    post_drain();
  op.discard();
}

bool shard::anything_ready() const noexcept {
  return !due_.empty() || !finished_.empty() || more_due_;
}

// Something is ready, or the driver has to be recalled: armed without a wait
// ahead it would keep run() from returning.
bool shard::needs_drain() const noexcept {
  return anything_ready() ||
         (ahead_ == 0 && driver_state_ == driver_state::armed);
}

// Leave the driver armed exactly if waits lie ahead. While more is due already,
// the drain that is posted for it sees to that.
void shard::settle() {
  if (ahead_ == 0) {
    if (driver_state_ == driver_state::armed)
      recall_driver();
  } else if (driver_state_ == driver_state::idle && !more_due_) {
    set_driver(wheel_.next_tick());
  } else if (driver_state_ == driver_state::armed && clock_) {
    // No real time wakes the driver at its tick: it has to be kept right.
    driver_tick_ = wheel_.next_tick();
  }
}

// Returns true if the caller has to post_drain() after it has unlocked.
bool shard::request_drain() noexcept {
  if (shut_down_ || drain_posted_ || draining_)
    return false;
  if (native_) {
    drain_posted_ = true;
    return true;
  }
  // A context whose executor we do not know: its driver can do it.
  if (driver_state_ == driver_state::armed) {
    recall_driver();
  } else if (driver_state_ == driver_state::idle) {
    try {
      driver_->expires_at(time_point::min());
      driver_->async_wait(driver_wait(this));
      driver_state_ = driver_state::recalled;
    } catch (...) {
      // No memory. Idle means that a drain is running: it will go on.
    }
  }
  return false;
}

void shard::post_drain() noexcept {
  native_.post(reserved_allocator<void>(drain_memory_), posted_drain(this));
}

void shard::unlock_and_post(lock_type& lock) noexcept {
  const bool post = !drain_posted_ && needs_drain() && request_drain();
  lock.unlock();
  if (post)
    post_drain();
}

// ---------------------------------------------------------------------------
// The service's and the clock's side

void shard::learn_native(const native_executor& native) noexcept {
  const lock_type lock(mutex_);
  if (!native_)
    native_ = native;
}

void shard::time_changed() noexcept {
  lock_type lock(mutex_);
  if (ahead_ != 0 && wheel_.next_tick() <= current_tick())
    more_due_ = true;
  unlock_and_post(lock);
}

std::size_t shard::pending() {
  const lock_type lock(mutex_);
  return open_;
}

std::optional<shard::time_point> shard::next_expiry() {
  const lock_type lock(mutex_);
  if (open_ != ahead_)
    return now(); // something is due and not started yet
  if (ahead_ == 0)
    return {};
  const tick_type next = wheel_.next_tick();
  if (next == timing_wheel::never)
    return {};
  return scale_.begin(next);
}

void shard::add_stats(wheel_stats& s) {
  const lock_type lock(mutex_);
  s.scheduled += scheduled_;
  s.fired += fired_;
  s.cancelled += cancelled_;
  s.moved += moved_;
  s.rejected += rejected_;
  s.abandoned += abandoned_;
  s.wakeups += wakeups_;
  s.spurious_wakeups += spurious_;
  s.peak_pending += peak_open_;
  if (max_lateness_ > s.max_lateness)
    s.max_lateness = max_lateness_;
}

std::size_t shard::stop() {
  lock_type lock(mutex_);
  stopped_ = true;
  std::size_t n = 0;
  for (entry_list* list : {&due_, &lent_, &never_})
    while (!list->empty())
      n += abort_all(static_cast<alarm&>(list->front()));
  wheel_.clear(
      [&](timing_wheel_entry& e) { n += abort_all(static_cast<alarm&>(e)); });
  more_due_ = false;
  unlock_and_post(lock);
  return n;
}

bool shard::stopped() {
  const lock_type lock(mutex_);
  return stopped_;
}

// The waits of an alarm will never be started. Returns how many they are.
std::size_t shard::abandon(alarm& a, wait_op_list& discarded) noexcept {
  const std::size_t n = a.open_waits();
  take_off(a);
  open_ -= n;
  a.open_waits(0);
  a.small_.call = nullptr; // trivially destructible
  while (!a.ops_.empty()) {
    wait_op& op = a.ops_.front();
    a.ops_.pop_front();
    op.alarm_ = nullptr;
    op.outcome_ = outcome::abandoned;
    if (!op.handed_) {
      detach_slot(op);
      discarded.push_back(op);
    }
  }
  return n;
}

void shard::discard(wait_op_list& ops) noexcept {
  while (!ops.empty()) {
    wait_op& op = ops.front();
    ops.pop_front();
    op.discard();
  }
}

void shard::shut_down() noexcept {
  if (clock_)
    clock_->remove(*this);
  wait_op_list discarded;
  {
    const lock_type lock(mutex_);
    shut_down_ = true;
    for (entry_list* list : {&due_, &lent_, &never_})
      while (!list->empty())
        abandoned_ += abandon(static_cast<alarm&>(list->front()), discarded);
    wheel_.clear([&](timing_wheel_entry& e) {
      abandoned_ += abandon(static_cast<alarm&>(e), discarded);
    });
    while (!finished_.empty()) {
      wait_op& op = finished_.front();
      finished_.pop_front();
      if (op.kind_ == wait_op::kind::small) {
        free_small_ops_.push_front(op);
      } else {
        detach_slot(op);
        discarded.push_back(op);
      }
    }
    driver_.reset();
  }
  discard(discarded);
}

} // namespace detail
} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel
