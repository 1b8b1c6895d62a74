#
# Copyright (c) 2026 The asio_wheel authors
#
# Distributed under the Boost Software License, Version 1.0. (See accompanying
# file LICENSE_1_0.txt or copy at https://www.boost.org/LICENSE_1_0.txt)
#

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(ASIO_WHEEL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/asio_wheel)

install(
  TARGETS asio_wheel
  EXPORT asio_wheelTargets
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
)
install(
  DIRECTORY include/
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.hpp"
)
install(
  FILES LICENSE_1_0.txt
  DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/licenses/asio_wheel
)

# The library works with the very Boost it was built with and no other (its
# inline namespace says which), so its users have to find that one.
if(Boost_VERSION_STRING)
  set(ASIO_WHEEL_BOOST_VERSION ${Boost_VERSION_STRING})
else()
  set(ASIO_WHEEL_BOOST_VERSION ${Boost_VERSION})
endif()

configure_package_config_file(
  cmake/asio_wheelConfig.cmake.in
  asio_wheelConfig.cmake
  INSTALL_DESTINATION ${ASIO_WHEEL_CMAKE_DIR}
  NO_SET_AND_CHECK_MACRO
)
write_basic_package_version_file(
  asio_wheelConfigVersion.cmake
  COMPATIBILITY SameMinorVersion
)
install(
  FILES
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheelConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/asio_wheelConfigVersion.cmake
  DESTINATION ${ASIO_WHEEL_CMAKE_DIR}
)
install(
  EXPORT asio_wheelTargets
  NAMESPACE asio_wheel::
  DESTINATION ${ASIO_WHEEL_CMAKE_DIR}
)
