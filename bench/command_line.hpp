//
// Copyright (c) 2026 The asio_wheel authors
//
// Distributed under the Boost Software License, Version 1.0. (See accompanying
// file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
//

#ifndef ASIO_WHEEL_BENCH_COMMAND_LINE_HPP
#define ASIO_WHEEL_BENCH_COMMAND_LINE_HPP

#include <boost/program_options.hpp>

namespace bench {

/// What was given of the options. Throws std::exception if there is anything
/// else.
inline boost::program_options::variables_map
read_command_line(int argc, char** argv,
                  const boost::program_options::options_description& options) {
  boost::program_options::variables_map given;
  store(boost::program_options::command_line_parser(argc, argv)
            .options(options)
            .positional({}) // there are none
            .run(),
        given);
  notify(given);
  return given;
}

} // namespace bench

#endif // ASIO_WHEEL_BENCH_COMMAND_LINE_HPP
