# Writes leat_version.hpp. Runs at every build, but rewrites the file only when its text changes.
#   cmake -DSOURCE=<project> -DVERSION=<x.y.z> -DOUTPUT=<header> -P cmake/version.cmake
set(COMMIT unknown)
if(EXISTS "${SOURCE}/.git")  # Otherwise git would report the commit of an enclosing repository.
  # safe.directory: in many CI systems the checkout belongs to another user. git compares this value
  # with the path after symbolic links are resolved.
  file(REAL_PATH "${SOURCE}" SOURCE)
  set(GIT git -c "safe.directory=${SOURCE}" -C "${SOURCE}")
  execute_process(
    COMMAND ${GIT} describe --always --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT "${described}")
    # Changed results and documents do not count as dirty, because no code is built from them.
    execute_process(
      COMMAND ${GIT} diff --quiet HEAD -- . ":(exclude)bench/results" ":(exclude)*.md"
      ERROR_QUIET RESULT_VARIABLE is_changed)
    if(is_changed)
      string(APPEND COMMIT "-dirty")
    endif()
  endif()
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" @ONLY CONTENT [=[
// Made by cmake/version.cmake at build time.
#pragma once

namespace leat {
inline constexpr char kVersion[] = "@VERSION@";
inline constexpr char kCommit[] = "@COMMIT@";
}  // namespace leat
]=])
