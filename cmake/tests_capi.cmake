# Tests of the C library: its header for C and C++, its functions, its exported names, and its ABI.
leat_test_folder(capi TIMEOUT 60 UNITY)
target_link_libraries(leat_capi_tests PRIVATE leat_c_shared)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT LEAT_SANITIZE)
  function(leat_test_c_header language standard)
    add_test(NAME capi.header.${standard}
      COMMAND ${CMAKE_CXX_COMPILER} -std=${standard} -pedantic-errors ${LEAT_WARNINGS} -Wpadded -Werror -fsyntax-only
              -x ${language} ${PROJECT_SOURCE_DIR}/src/capi/leat.h)
    set_tests_properties(capi.header.${standard} PROPERTIES LABELS capi TIMEOUT 60)
  endfunction()
  foreach(standard c99 c11 c2x)
    leat_test_c_header(c ${standard})
  endforeach()
  foreach(standard c++11 c++20)
    leat_test_c_header(c++ ${standard})
  endforeach()
endif()

# The C client's driver for tests/conformance/run.py, which tests/system/test_conformance.py calls.
add_executable(conformance_c tests/conformance/driver.c)
target_link_libraries(conformance_c PRIVATE leat_c_shared Threads::Threads)
target_compile_options(conformance_c PRIVATE -Wall -Wextra $<$<BOOL:${LEAT_WERROR}>:-Werror>)
if(LEAT_SANITIZE)
  set(sanitize address,undefined)
  if(LEAT_SANITIZE STREQUAL "thread")
    set(sanitize thread)
  endif()
  target_compile_options(conformance_c PRIVATE -fsanitize=${sanitize})
  target_link_options(conformance_c PRIVATE -fsanitize=${sanitize})
  set_target_properties(conformance_c PROPERTIES LINKER_LANGUAGE CXX)
  # A scenario may run the executable, which is that of the release build. The other driver is Python's if that is
  # built, with what cmake/tests_clients.cmake has to load into it.
  add_test(NAME capi.conformance
    COMMAND ${PROJECT_SOURCE_DIR}/tests/conformance/run.py --build ${PROJECT_BINARY_DIR} --only c ${preload})
  set_tests_properties(capi.conformance PROPERTIES LABELS capi TIMEOUT 300)
endif()
