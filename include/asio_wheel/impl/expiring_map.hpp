//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_IMPL_EXPIRING_MAP_HPP
#define ASIO_WHEEL_IMPL_EXPIRING_MAP_HPP

#include <asio_wheel/expiring_map.hpp>

#include <stdexcept>
#include <utility>

namespace asio_wheel {
inline namespace ASIO_WHEEL_ABI {

namespace detail {

template <typename Key, typename T>
expiring_map_options<Key, T>&& checked(expiring_map_options<Key, T>& options) {
  if (options.time_to_live <= std::chrono::steady_clock::duration::zero())
    throw std::invalid_argument(
        "asio_wheel: expiring_map_options::time_to_live must be positive");
  if (options.max_size == 0)
    throw std::invalid_argument(
        "asio_wheel: expiring_map_options::max_size must be at least 1");
  return std::move(options);
}

} // namespace detail

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
expiring_map<Key, T, Hash, Equal, Executor>::expiring_map(
    const executor_type& ex, options_type options, const Hash& hash,
    const Equal& equal)
    : core_(new core(ex, detail::checked(options), hash, equal)) {}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename ExecutionContext>
expiring_map<Key, T, Hash, Equal, Executor>::expiring_map(
    ExecutionContext& context, options_type options, const Hash& hash,
    const Equal& equal,
    std::enable_if_t<
        std::is_convertible_v<ExecutionContext&, asio::execution_context&>,
        int>)
    : expiring_map(executor_type(context.get_executor()), std::move(options),
                   hash, equal) {}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename K, typename U>
bool expiring_map<Key, T, Hash, Equal, Executor>::insert(K&& key, U&& value) {
  return insert(std::forward<K>(key), std::forward<U>(value),
                options().time_to_live);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename K, typename U>
bool expiring_map<Key, T, Hash, Equal, Executor>::insert(
    K&& key, U&& value, const duration& time_to_live) {
  return core_->put(std::forward<K>(key), std::forward<U>(value), time_to_live,
                    false);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename K, typename U>
bool expiring_map<Key, T, Hash, Equal, Executor>::insert_or_assign(K&& key,
                                                                   U&& value) {
  return insert_or_assign(std::forward<K>(key), std::forward<U>(value),
                          options().time_to_live);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename K, typename U>
bool expiring_map<Key, T, Hash, Equal, Executor>::insert_or_assign(
    K&& key, U&& value, const duration& time_to_live) {
  return core_->put(std::forward<K>(key), std::forward<U>(value), time_to_live,
                    true);
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::optional<T>
expiring_map<Key, T, Hash, Equal, Executor>::find(const Key& key) {
  const auto e = core_->find(key);
  if (!e)
    return {};
  return std::optional<T>(std::in_place, std::as_const(e->value));
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
std::optional<T>
expiring_map<Key, T, Hash, Equal, Executor>::extract(const Key& key) {
  const auto e = core_->remove(key);
  if (!e)
    return {};
  return e->give([](T&& value) {
    return std::optional<T>(std::in_place, std::move(value));
  });
}

template <typename Key, typename T, typename Hash, typename Equal,
          typename Executor>
template <typename F>
void expiring_map<Key, T, Hash, Equal, Executor>::for_each(F&& f) const {
  for (const auto& e : core_->snapshot())
    f(e->key, std::as_const(e->value));
}

} // namespace ASIO_WHEEL_ABI
} // namespace asio_wheel

#endif // ASIO_WHEEL_IMPL_EXPIRING_MAP_HPP
