# The clients of other languages with AddressSanitizer and UndefinedBehaviorSanitizer: their C code and the C library
# inside. Each is built by its own clients/LANGUAGE/build.sh, and does the scenarios of tests/conformance; what that
# does not cover is in the README there. The variable CLIENTS of the environment chooses, as in tools/clients.sh.
set(languages python ruby lua luajit node java go rust)
if(NOT "$ENV{CLIENTS}" STREQUAL "")
  string(REPLACE "," "|" chosen "$ENV{CLIENTS}")
  string(REGEX REPLACE "(^|[|])lua($|[|])" "\\1lua|luajit\\2" chosen "${chosen}")
  list(FILTER languages INCLUDE REGEX "^(${chosen})$")
endif()

# Interpreters are not ours to link, so the sanitizers' shared library is loaded before them, into all alike.
execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=libclang_rt.asan-${CMAKE_SYSTEM_PROCESSOR}.so
  OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
set(preload --preload ${runtime})
set(sanitize "-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer")
# Of Rust only the C library is sanitized, but Rust's memory is looked after, too. Go does it by itself.
set(variables CC=${CMAKE_C_COMPILER} CXX=${CMAKE_CXX_COMPILER} "CFLAGS=-O1 -g ${sanitize}"
  "LDFLAGS=${sanitize} -shared-libsan" LEAT_KEEP_DEBUG=-g GOFLAGS=-asan
  "RUSTFLAGS=-C link-arg=-Wl,--allow-shlib-undefined")

foreach(language IN LISTS languages)
  string(REPLACE luajit lua folder ${language})
  if(NOT TARGET client_${folder})
    set(home ${PROJECT_SOURCE_DIR}/clients/${folder})
    set(stamp ${PROJECT_BINARY_DIR}/clients/${folder}.stamp)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${home}/*)
    list(FILTER sources EXCLUDE REGEX "/tests/|/__pycache__/|_test\\.go$")
    add_custom_command(OUTPUT ${stamp} DEPENDS ${sources} leat_c_shared leat_c_static VERBATIM
      COMMAND ${CMAKE_COMMAND} -E env ${variables} ${home}/build.sh ${PROJECT_BINARY_DIR}
      COMMAND ${CMAKE_COMMAND} -E touch ${stamp})
    add_custom_target(client_${folder} ALL DEPENDS ${stamp})
  endif()
  add_test(NAME client_${language}.conformance COMMAND ${PROJECT_SOURCE_DIR}/tests/conformance/run.py
    --build ${PROJECT_BINARY_DIR} --only ${language} ${preload})
  set_tests_properties(client_${language}.conformance PROPERTIES LABELS clients TIMEOUT 300)
endforeach()
