# One test executable per folder of tests/. Every GoogleTest case is a ctest case of its own, named
# <folder>.<Suite>.<Case>, so a case that hangs or crashes does not affect the others. A folder without
# sources is skipped here; tools/run_tests.py fails when a folder with sources ran nothing.
include(GoogleTest)
find_package(GTest REQUIRED)

set(LEAT_FUZZ_SECONDS 5 CACHE STRING "How long ctest runs each fuzzer")

set(slow_factor 1)
if(LEAT_SANITIZE)
  set(slow_factor 3)
endif()
# leat_test_folder(unit TIMEOUT 60 [RECURSE] [SERIAL] [UNITY] [BUSY] [DEFINITIONS X] [ONE_THREAD REGEX]).
# DEFINITIONS change the behaviour of the library, so it is compiled once more for such folders. BUSY: its
# cases compute all the time, so tools/run_tests.py, which starts two cases for each CPU, counts each of
# them as two. ONE_THREAD: sources whose processes have one thread each. They are left out with
# ThreadSanitizer, which sees the threads of a process, and not what processes share.
function(leat_test_folder folder)
  cmake_parse_arguments(arg "RECURSE;SERIAL;UNITY;BUSY" "TIMEOUT;ONE_THREAD" "DEFINITIONS" ${ARGN})
  set(kind GLOB)
  if(arg_RECURSE)
    set(kind GLOB_RECURSE)
  endif()
  file(${kind} sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/${folder}/*.cpp)
  if(NOT TARGET leat_cli_lib)
    list(FILTER sources EXCLUDE REGEX "/tests/unit/cli/")
  endif()
  if(LEAT_SANITIZE STREQUAL "thread" AND arg_ONE_THREAD)
    list(FILTER sources EXCLUDE REGEX "${arg_ONE_THREAD}")
  endif()
  if(NOT sources)
    return()
  endif()

  set(name leat_${folder}_tests)
  add_executable(${name} ${sources})
  if(arg_DEFINITIONS)
    string(TOLOWER "${arg_DEFINITIONS}_library" library)
    if(NOT TARGET ${library})
      add_library(${library} OBJECT ${PROJECT_SOURCE_DIR}/src/lib/leat.cpp)
      leat_own_target(${library} HEADER_ONLY)
      target_compile_options(${library} PRIVATE -O1)
      target_compile_definitions(${library} PUBLIC ${arg_DEFINITIONS} LEAT_COMPILED)
    endif()
    leat_own_target(${name} HEADER_ONLY)
    target_link_libraries(${name} PRIVATE ${library})
  else()
    leat_own_target(${name})
  endif()
  target_compile_definitions(${name} PRIVATE
    LEAT_TEST_SANITIZED=$<BOOL:${LEAT_SANITIZE}> LEAT_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/tests/${folder} ${PROJECT_SOURCE_DIR}/tests)
  if(arg_UNITY)
    leat_unity(${name})
    foreach(source IN LISTS sources)  # Files with a Case of their own would clash.
      file(STRINGS ${source} cases REGEX "^struct Case ")
      if(cases)
        set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      endif()
    endforeach()
  endif()
  target_precompile_headers(${name} PRIVATE <gtest/gtest.h> <leat/leat.hpp>)
  if(NOT LEAT_SANITIZE)
    target_compile_options(${name} PRIVATE -O1)  # Enough for tests of behaviour.
  endif()
  target_link_libraries(${name} PRIVATE GTest::gtest_main)  # A folder's own main() takes precedence.
  if("${sources}" MATCHES "/tests/unit/cli/")
    target_link_libraries(${name} PRIVATE leat_cli_lib)
  endif()

  math(EXPR timeout "${arg_TIMEOUT} * ${slow_factor}")
  set(processors 1)
  if(arg_BUSY)
    set(processors 2)
  endif()
  gtest_discover_tests(${name} TEST_PREFIX ${folder}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${folder} TIMEOUT ${timeout} RUN_SERIAL ${arg_SERIAL} PROCESSORS ${processors})
endfunction()

leat_test_folder(unit RECURSE UNITY TIMEOUT 60
  ONE_THREAD "/tests/unit/store/|/group/saved_[a-z]*_test.cpp$|/log/model_test.cpp$")
# Groups of durable topics do what other groups do. Left out is what makes no sense there: memory that is
# kept for groups, and a poll that finds records at once in a group that has to be saved first.
set(of_groups Acknowledge AcknowledgeSome Requeue Leaving MaxDeliveries AtMostOnce Lease MemberPoll ComeBack ForEver
  DeadLetters MemberDeath MemberFork Group GroupBegins GroupInfo GroupSeek GroupDelete ByKey Member
  MemberTakeCopy MemberWait MemberWaitFd GroupModel GroupReleased GroupFork Share)
list(TRANSFORM of_groups APPEND ".*")
list(JOIN of_groups ":" of_groups)
string(APPEND of_groups "-Group.MembersAreParticipantsOfTheTopic:Group.TopicThatOverwritesHasNone"
  ":GroupBegins.AtTheOldestThatIsStillThere:MemberPoll.AtMostOnceLosesOnlyWhatItHandedOut"
  ":GroupBegins.BehindAClaim*:GroupBegins.AtAClaim*"  # The place of a durable group is an offset.
  ":DeadLetters.OfAGrow*:DeadLetters.OfATopicOfTwo*:DeadLetters.OfATopicThatBlocks*")
if(LEAT_SANITIZE STREQUAL "thread")  # It knows no child with threads of a process with threads.
  string(APPEND of_groups ":MemberFork.ChildThatOpensAgainIsAMemberOfItsOwn")
endif()
gtest_discover_tests(leat_unit_tests TEST_PREFIX durable. TEST_FILTER "${of_groups}"
  DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
  PROPERTIES LABELS unit TIMEOUT 180 ENVIRONMENT LEAT_TEST_DURABLE=1)
if(TARGET leat_bench_lib)
  leat_test_folder(bench TIMEOUT 60 UNITY)
  target_link_libraries(leat_bench_tests PRIVATE leat_bench_lib)
endif()
if(TARGET leat_lightq_static)  # And with it the client.
  leat_test_folder(lightq_client TIMEOUT 60 UNITY)
  target_link_libraries(leat_lightq_client_tests PRIVATE leat_lightq_static leat_lightq_client)
endif()
if(TARGET leat_broker)
  find_library(LEAT_ZEROMQ zmq REQUIRED)  # Clients; the broker itself does without.
  leat_test_folder(broker UNITY TIMEOUT 60)
  target_link_libraries(leat_broker_tests PRIVATE leat_broker)  # And no protocol but one of their own.
  leat_test_folder(lightq_server UNITY TIMEOUT 60)
  target_link_libraries(leat_lightq_server_tests PRIVATE leat_serve_lib ${LEAT_ZEROMQ})
endif()
if(TARGET leat_c_shared)
  enable_language(C)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND LEAT_SANITIZE STREQUAL "address")
    include(cmake/tests_clients.cmake)
  endif()
  include(cmake/tests_capi.cmake)
endif()
string(CONCAT one_thread "/((group_(holes|life|moments|steps))|((store_|topic_|unused_)?steps)|environment|evict|fork"
  "|lap|reused_entry|revoke|scribbled_(meanwhile|epoch)|several_victims|slots|unmarked_claims)_test.cpp$")
leat_test_folder(crash TIMEOUT 120 UNITY DEFINITIONS LEAT_TEST_STEPS ONE_THREAD "${one_thread}")
leat_test_folder(storm TIMEOUT 200 ONE_THREAD "/(group_)?storm_test.cpp$")
leat_test_folder(multi_failure TIMEOUT 200 SERIAL UNITY DEFINITIONS LEAT_TEST_STEPS ONE_THREAD ".")
if(NOT LEAT_SANITIZE)  # Sanitizers do not understand the scheduler's stacks and memory model.
  # The model runs at every atomic operation, so it is optimized, other than the tests themselves.
  set(model fates hooks memory model)
  list(TRANSFORM model REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/tests/interleave/\\1.cpp")
  set_source_files_properties(${model} PROPERTIES COMPILE_OPTIONS -O3
    SKIP_PRECOMPILE_HEADERS ON SKIP_UNITY_BUILD_INCLUSION ON)
  leat_test_folder(interleave TIMEOUT 300 UNITY BUSY DEFINITIONS LEAT_MODEL)
endif()

# Deliberate races. ThreadSanitizer must report each of them; otherwise a
# clean run elsewhere proves nothing.
if(LEAT_SANITIZE STREQUAL "thread")
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/race/*.cpp)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    add_executable(race_${stem} ${source})
    target_include_directories(race_${stem} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    leat_own_target(race_${stem})
    add_test(NAME race.${stem} COMMAND race_${stem})
    set_tests_properties(race.${stem} PROPERTIES LABELS race TIMEOUT 60
      ENVIRONMENT "TSAN_OPTIONS=halt_on_error=1"  # After an abort ctest would not see the report.
      PASS_REGULAR_EXPRESSION "WARNING: ThreadSanitizer: data race")
  endforeach()
endif()

# Examples: run without arguments, each in an empty topic directory of its own. Those in patterns/ run until they are told to
# end: tests/system/test_patterns.py runs them.
file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/examples/*.cpp
     ${PROJECT_SOURCE_DIR}/examples/patterns/*.cpp)
foreach(source IN LISTS sources)
  cmake_path(GET source STEM stem)
  add_executable(example_${stem} ${source})
  leat_own_target(example_${stem})
  if(NOT LEAT_SANITIZE)  # As most users build their programs.
    add_executable(example_${stem}_header_only ${source})
    leat_own_target(example_${stem}_header_only HEADER_ONLY)
    target_compile_options(example_${stem}_header_only PRIVATE -O1)
  endif()
  if(source MATCHES "/patterns/")
    continue()
  endif()
  add_test(NAME example.${stem}
    COMMAND sh -c "rm -rf \"$2\"; LEAT_DIR=\"$2\" exec \"$1\"" example
            $<TARGET_FILE:example_${stem}> ${PROJECT_BINARY_DIR}/topics/${stem})
  set_tests_properties(example.${stem} PROPERTIES LABELS example TIMEOUT 60)
endforeach()
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/topics)

# Fuzzers: built only by clang with AddressSanitizer. `ctest` runs each for a
# few seconds, `make fuzz` for longer.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND LEAT_SANITIZE STREQUAL "address")
  add_custom_target(fuzzers)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fuzz/*.cpp)
  if(NOT TARGET leat_bench_lib)  # The fuzzer result_set includes its sources.
    list(FILTER sources EXCLUDE REGEX "/result_set.cpp$")
  endif()
  if(NOT TARGET leat_broker)
    list(FILTER sources EXCLUDE REGEX "/(admin|broker_texts|raw|zmtp).cpp$")
  endif()
  if(NOT TARGET leat_lightq_client)
    list(FILTER sources EXCLUDE REGEX "/lightq_client_fuzz.cpp$")
  endif()
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "_fuzz$" "" stem ${stem})
    add_executable(fuzz_${stem} ${source})
    leat_own_target(fuzz_${stem} OPTIMIZED)
    target_compile_options(fuzz_${stem} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${stem} PRIVATE -fsanitize=fuzzer)
    target_include_directories(fuzz_${stem} PRIVATE
      ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
    if(stem MATCHES "^(admin|broker_texts)$")  # They include the broker's sources.
      target_link_libraries(fuzz_${stem} PRIVATE nlohmann_json::nlohmann_json fmt::fmt Boost::headers
        spdlog::spdlog OpenSSL::Crypto ${LEAT_SODIUM} ${LEAT_ARGON2} ${LEAT_SQLITE})
    endif()
    add_dependencies(fuzzers fuzz_${stem})
    math(EXPR timeout "${LEAT_FUZZ_SECONDS} + 120")
    add_test(NAME fuzz.${stem} COMMAND ${PROJECT_SOURCE_DIR}/tools/fuzz.sh
      $<TARGET_FILE:fuzz_${stem}> ${LEAT_FUZZ_SECONDS})
    set_tests_properties(fuzz.${stem} PROPERTIES LABELS fuzz TIMEOUT ${timeout} PROCESSORS 2)
  endforeach()
endif()

# Every header must compile on its own, and all of them together with the other compiler as well. Each is
# included twice to check its #pragma once.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT LEAT_SANITIZE)
  find_program(LEAT_CLANG clang++-16)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include
       ${PROJECT_SOURCE_DIR}/include/*.hpp)
  function(leat_test_headers name compiler flag)
    list(TRANSFORM ARGN PREPEND "-include;" OUTPUT_VARIABLE includes)
    add_test(NAME header.${name}
      COMMAND ${compiler} -std=c++20 -fsyntax-only ${flag} ${LEAT_WARNINGS} -Werror
              -I ${PROJECT_SOURCE_DIR}/include ${includes} ${includes} -x c++ /dev/null)
    set_tests_properties(header.${name} PROPERTIES LABELS header TIMEOUT 120 PROCESSORS 2)
  endfunction()
  foreach(header IN LISTS headers)
    leat_test_headers(${header} ${CMAKE_CXX_COMPILER} -DLEAT_COMPILED ${header})
    if(NOT header MATCHES "leat/.+/")  # What users include.
      leat_test_headers(${header}_alone ${CMAKE_CXX_COMPILER} -ULEAT_COMPILED ${header})
    endif()
  endforeach()
  if(LEAT_CLANG)
    leat_test_headers(all_with_clang ${LEAT_CLANG} -DLEAT_COMPILED ${headers})
    leat_test_headers(all_with_clang_alone ${LEAT_CLANG} -ULEAT_COMPILED leat/leat.hpp ${headers})
  endif()
endif()
