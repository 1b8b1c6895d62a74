//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_HPP
#define ASIO_WHEEL_HPP

#include <asio_wheel/associated_deadline.hpp>
#include <asio_wheel/async_retry.hpp>
#include <asio_wheel/backoff.hpp>
#include <asio_wheel/cancel_after.hpp>
#include <asio_wheel/deadline.hpp>
#include <asio_wheel/delay_queue.hpp>
#include <asio_wheel/error.hpp>
#include <asio_wheel/expiring_map.hpp>
#include <asio_wheel/manual_clock.hpp>
#include <asio_wheel/missed_tick_policy.hpp>
#include <asio_wheel/periodic_options.hpp>
#include <asio_wheel/periodic_timer.hpp>
#include <asio_wheel/rate_limited_stream.hpp>
#include <asio_wheel/rate_limiter.hpp>
#include <asio_wheel/retry_options.hpp>
#include <asio_wheel/run_simulation.hpp>
#include <asio_wheel/scheduler.hpp>
#include <asio_wheel/stream_timeouts.hpp>
#include <asio_wheel/task_handle.hpp>
#include <asio_wheel/timeout_after.hpp>
#include <asio_wheel/timeout_stream.hpp>
#include <asio_wheel/timing_wheel.hpp>
#include <asio_wheel/token_rate.hpp>
#include <asio_wheel/watchdog.hpp>
#include <asio_wheel/wheel_options.hpp>
#include <asio_wheel/wheel_service.hpp>
#include <asio_wheel/wheel_timer.hpp>

#endif // ASIO_WHEEL_HPP
