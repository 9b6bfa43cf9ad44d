# The C library: libleat.so.0 and libleat.a. What they export is src/capi/leat.h and nothing else, so that a
# program may have another C++ library, another Leat, or two of them. docs/internals/capi.md
find_package(nlohmann_json REQUIRED)
file(GLOB capi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/capi/*.cpp)
set(exports ${PROJECT_SOURCE_DIR}/src/capi/exports.map)
add_library(leat_c_functions OBJECT ${capi_sources})
leat_own_target(leat_c_functions HEADER_ONLY OPTIMIZED)
target_include_directories(leat_c_functions PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(leat_c_functions PRIVATE LEAT_COMPILED LEAT_CAPI_VERSION="${PROJECT_VERSION}")
# A poll reads a thread-local variable: with initial-exec that needs no call. See leat_objects for the guards.
target_compile_options(leat_c_functions PRIVATE -ftls-model=initial-exec
  $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
set_target_properties(leat_c_functions PROPERTIES POSITION_INDEPENDENT_CODE ON
  CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
target_link_libraries(leat_c_functions PRIVATE nlohmann_json::nlohmann_json)
leat_unity(leat_c_functions)
if(LEAT_TESTS AND NOT LEAT_SANITIZE)  # The types too, for tools/abi.sh.
  target_compile_options(leat_c_functions PRIVATE -g)
endif()
set(objects $<TARGET_OBJECTS:leat_c_functions> $<TARGET_OBJECTS:leat_description> $<TARGET_OBJECTS:leat_objects>)

# Programs and the other clients include it as <leat/leat.h>.
configure_file(${PROJECT_SOURCE_DIR}/src/capi/leat.h ${PROJECT_BINARY_DIR}/capi/leat/leat.h COPYONLY)

# It is never unloaded: the handlers of fork, and threads, are in it.
add_library(leat_c_shared SHARED ${objects})
leat_own_target(leat_c_shared HEADER_ONLY)
set_target_properties(leat_c_shared PROPERTIES OUTPUT_NAME leat LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION 0 LINK_DEPENDS ${exports})
target_include_directories(leat_c_shared INTERFACE ${PROJECT_BINARY_DIR}/capi)
target_link_options(leat_c_shared PRIVATE
  LINKER:--version-script=${exports} LINKER:-z,nodelete)
if(NOT LEAT_SANITIZE)  # A sanitizer is in the program, and wants one C++ library.
  target_link_options(leat_c_shared PRIVATE LINKER:--no-undefined -static-libstdc++ -static-libgcc)
endif()
leat_split_debug(leat_c_shared)

# The static library is one object, whose other names are local. A C++ program may link it beside
# libleat_compiled.a.
if(LEAT_SANITIZE)
  add_library(leat_c_static STATIC ${objects})
else()
  set(object ${PROJECT_BINARY_DIR}/leat_c.o)
  add_custom_command(OUTPUT ${object} VERBATIM COMMAND_EXPAND_LISTS
    DEPENDS ${objects}
    COMMAND ${CMAKE_LINKER} -r --force-group-allocation -o ${object} ${objects}
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=leat_* ${object})
  add_library(leat_c_static STATIC ${object})
  set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endif()
set_target_properties(leat_c_static PROPERTIES OUTPUT_NAME leat LINKER_LANGUAGE CXX)
target_include_directories(leat_c_static INTERFACE ${PROJECT_BINARY_DIR}/capi)
