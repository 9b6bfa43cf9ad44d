# Debian packages, one for each component of the install: `make deb`. What Debian wants beside the
# installed files comes from packaging/deb.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME leat)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/deb)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/packaging/deb/finish.cmake)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # Each has its own.
set(CPACK_PACKAGE_CONTACT "Leat authors")
if(NOT "$ENV{DEBEMAIL}" STREQUAL "")
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

set(CPACK_COMPONENTS_ALL libleat-cpp-dev)
# leat_package(NAME SECTION DESCRIPTION), whose first line is the summary.
macro(leat_package name section description)
  string(TOUPPER ${name} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME ${name})
  set(CPACK_DEBIAN_${component}_PACKAGE_SECTION ${section})
  set(CPACK_DEBIAN_${component}_DESCRIPTION "${description}")
endmacro()

leat_package(libleat-cpp-dev libdevel "messages between processes of one machine (C++ library)
Leat passes messages between the processes of one machine, through logs in
shared memory: every subscriber gets every record, in order, and the death
of any process hurts nobody.

These are the headers for C++20, and the static library for those who want
to compile faster.")
set(CPACK_DEBIAN_LIBLEAT-CPP-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBLEAT-CPP-DEV_PACKAGE_SUGGESTS leat)

if(TARGET leat_c_shared)
  list(APPEND CPACK_COMPONENTS_ALL libleat0 libleat-dev)
  leat_package(libleat0 libs "messages between processes of one machine (shared library)
Leat passes messages between the processes of one machine, through logs in
shared memory: every subscriber gets every record, in order, and the death
of any process hurts nobody.

This is the library for C, and for every language that calls C.")
  leat_package(libleat-dev libdevel "messages between processes of one machine (C library)
Leat passes messages between the processes of one machine, through logs in
shared memory: every subscriber gets every record, in order, and the death
of any process hurts nobody.

This is the header for C and C++, and the static library.")
  set(CPACK_DEBIAN_LIBLEAT-DEV_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_LIBLEAT-DEV_PACKAGE_DEPENDS "libleat0 (= ${PROJECT_VERSION}-1)")
  set(CPACK_DEBIAN_LIBLEAT-DEV_PACKAGE_SUGGESTS leat)
endif()
if(TARGET leat_cli)
  list(APPEND CPACK_COMPONENTS_ALL leat)
  leat_package(leat utils "messages between processes of one machine
Leat passes messages between the processes of one machine, through logs in
shared memory: every subscriber gets every record, in order, and the death
of any process hurts nobody.

This is the executable: it creates, lists and deletes topics, publishes
lines and prints what comes.")
  set(CPACK_DEBIAN_LEAT_PACKAGE_SUGGESTS leat-bench)
endif()
if(TARGET leat_bench)
  list(APPEND CPACK_COMPONENTS_ALL leat-bench)
  leat_package(leat-bench utils "measures how fast processes of one machine can talk
Measures Leat's log, pipes, sockets, semaphores, message queues and other
ways two processes can exchange messages, on the same verified workload.")
  set(CPACK_DEBIAN_LEAT-BENCH_PACKAGE_RECOMMENDS leat)
endif()
if(TARGET leat_serve)
  list(APPEND CPACK_COMPONENTS_ALL leat-serve libleat-broker-dev)
  leat_package(leat-serve net "message broker for ZeroMQ and LightQ clients
Serves topics, which the processes of this machine use through shared memory,
to clients that come over TCP: those of ZeroMQ, those of LightQ, and those
that send messages behind their lengths. Every topic has a password.")
  set(CPACK_DEBIAN_LEAT-SERVE_PACKAGE_RECOMMENDS leat)
  leat_package(libleat-broker-dev libdevel "message broker inside of a program (C++ library)
The header and the static library with which a C++ program runs leat-serve's
broker in a thread of its own.")
  set(CPACK_DEBIAN_LIBLEAT-BROKER-DEV_PACKAGE_SHLIBDEPS OFF)
  set(CPACK_DEBIAN_LIBLEAT-BROKER-DEV_PACKAGE_DEPENDS
    "libleat-cpp-dev, libfmt-dev, libspdlog-dev, libssl-dev, libsodium-dev, libargon2-dev, libsqlite3-dev")
endif()
if(TARGET leat_lightq)
  list(APPEND CPACK_COMPONENTS_ALL leat-lightq)
  leat_package(leat-lightq net "LightQ's command-line tools, for Leat's broker
The producer, consumer, topic and broker of LightQ, with their options and
their output, on Leat.")
  set(CPACK_DEBIAN_LEAT-LIGHTQ_PACKAGE_RECOMMENDS leat-serve)
endif()
if(TARGET leat_lightq_shared)
  list(APPEND CPACK_COMPONENTS_ALL libleat-lightq-dev)
  leat_package(libleat-lightq-dev libdevel "LightQ's C functions, for Leat's broker (C library)
The header and the libraries for C programs that were written for LightQ:
the same functions with the same names.")
  set(CPACK_DEBIAN_LIBLEAT-LIGHTQ-DEV_PACKAGE_SUGGESTS leat-serve)
endif()
include(CPack)
