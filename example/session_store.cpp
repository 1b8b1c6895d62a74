//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

// The sessions of a web service. A session ends when its user logs out, when
// 30 minutes pass without a request, or when there are too many and it is the
// one that was idle for longest. A hook hears of each end, and why.
//
// main() has users come and go for a day, in virtual time.

#include <asio_wheel.hpp>

#include <boost/asio.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <iomanip>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <utility>

namespace session_store {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using duration = std::chrono::steady_clock::duration;
using std::chrono::seconds;

// Several requests of one user may be served at the same time, by several
// threads: what changes is atomic, or needs a lock.
struct session {
  explicit session(std::string name) : user(std::move(name)) {}

  const std::string user;
  std::atomic<std::size_t> requests{0};
};

enum class end { logged_out, idle, evicted };

struct limits {
  duration idle = 30min;
  std::size_t sessions = 100'000; // so that nobody fills the memory
};

// Every function may be called by any thread; the hook is called by those of
// the context, or by who logs out.
class sessions {
public:
  using hook = std::function<void(const session&, end)>;

  sessions(asio::io_context& io, const limits& l, hook on_end)
      : on_end_(std::move(on_end)), map_(io, options(l)) {}

  // Returns what the user's browser has to show for it with each request.
  std::string log_in(const std::string& user) {
    std::string id = unguessable();
    map_.insert(id, std::make_shared<session>(user));
    return id;
  }

  // The session of a request; empty: log in (again). Found is used: it has
  // another 30 minutes. Who holds on to it keeps it alive, but not in the map.
  std::shared_ptr<session> request(const std::string& id) {
    auto found = map_.find(id).value_or(nullptr);
    if (found)
      ++found->requests;
    return found;
  }

  // The page is open and says so now and then: the user is still there.
  bool keep_alive(const std::string& id) { return map_.touch(id); }

  // Only one of several callers gets the session, and not one that has expired:
  // each session ends once.
  bool log_out(const std::string& id) {
    const auto s = map_.extract(id);
    if (s)
      on_end_(**s, end::logged_out);
    return s.has_value();
  }

  std::size_t size() const { return map_.size(); }

private:
  // Copied out, changed, and shared with requests under way: by pointer.
  using map = asio_wheel::expiring_map<std::string, std::shared_ptr<session>>;

  map::options_type options(const limits& l) const {
    map::options_type o;
    o.time_to_live = l.idle;
    o.expire_after = asio_wheel::expire_after::access;
    o.max_size = l.sessions; // and the next to expire goes
    o.on_expire = [this](const std::string&, std::shared_ptr<session>&& s,
                         asio_wheel::expiry_reason why) {
      on_end_(*s, why == asio_wheel::expiry_reason::expired ? end::idle
                                                            : end::evicted);
    };
    return o;
  }

  // 128 bits of what the operating system has for secrets, on most of them.
  static std::string unguessable() {
    std::random_device random;
    std::ostringstream id;
    id << std::hex << std::setfill('0');
    for (int i = 0; i != 4; ++i)
      id << std::setw(8) << random();
    return id.str();
  }

  const hook on_end_;
  map map_;
};

// A user who makes some requests, with pauses of up to 40 minutes, and logs in
// again where told so. Every other one logs out in the end. A task that
// schedules itself, until then.
class visit {
public:
  visit(sessions& s, asio_wheel::scheduler& outside, std::size_t number,
        std::size_t& log_ins)
      : sessions_(&s), outside_(&outside), log_ins_(&log_ins), number_(number),
        chance_(static_cast<unsigned>(number + 1)),
        requests_(1 + chance_() % 10) {}

  void operator()() {
    if (requests_-- == 0) {
      if (number_ % 2 == 0)
        sessions_->log_out(id_);
      return;
    }
    if (!sessions_->request(id_)) {
      id_ = sessions_->log_in("user " + std::to_string(number_));
      ++*log_ins_;
    }
    const seconds pause(chance_() % (40 * 60));
    outside_->schedule_after(pause, std::move(*this));
  }

private:
  sessions* sessions_;
  asio_wheel::scheduler* outside_;
  std::size_t* log_ins_;
  std::size_t number_;
  std::minstd_rand chance_;
  std::size_t requests_;
  std::string id_;
};

} // namespace session_store

int main() {
  using namespace session_store;

  asio_wheel::manual_clock clock; // moves when nothing is left to do
  asio_wheel::wheel_options options;
  options.clock = clock;
  asio::io_context io;
  asio_wheel::make_wheel(io, options);

  std::size_t logged_out = 0, idle = 0, evicted = 0, most = 0;
  limits l;
  l.sessions = 1500;
  sessions store(io, l, [&](const session&, end why) {
    ++(why == end::logged_out ? logged_out : why == end::idle ? idle : evicted);
  });

  // Somebody new every five seconds for a day, and twice as often at noon.
  std::size_t users = 0, log_ins = 0;
  asio_wheel::scheduler outside(io);
  const auto start = clock.now();
  outside.schedule_every(5s, [&](const asio_wheel::task_handle& every) {
    const auto time = clock.now() - start;
    for (int i = time > 12h && time < 13h ? 2 : 1; i != 0; --i)
      visit(store, outside, users++, log_ins)();
    most = std::max(most, store.size());
    if (time >= 24h)
      every.cancel();
  });
  asio_wheel::run_simulation({io}, clock); // until the last one has expired

  const bool right = log_ins == logged_out + idle + evicted &&
                     store.size() == 0 && most <= l.sessions && evicted != 0;
  std::cout << users << " users logged in " << log_ins << " times\n  "
            << logged_out << " sessions ended by logging out\n  " << idle
            << " were idle for half an hour\n  " << evicted
            << " were evicted, since there were " << most << '\n'
            << (right ? "right" : "WRONG") << '\n';
  return right ? 0 : 1;
}
