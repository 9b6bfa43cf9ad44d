# Writes leat_version.hpp; run at every build, rewrites the file only when its text changes.
#   cmake -DSOURCE=<project> -DVERSION=<x.y.z> -DOUTPUT=<header> -P cmake/version.cmake
set(COMMIT unknown)
if(EXISTS "${SOURCE}/.git")  # Otherwise git would name the commit of some repository around us.
  # safe.directory: a checkout that belongs to another user, as in many CI systems. git compares it
  # with the path that has no symbolic links.
  file(REAL_PATH "${SOURCE}" SOURCE)
  set(GIT git -c "safe.directory=${SOURCE}" -C "${SOURCE}")
  execute_process(
    COMMAND ${GIT} describe --always --abbrev=12 --exclude=*
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  if(NOT failed)
    set(COMMIT "${described}")
    # Nothing is built from results and documents: a build that wrote them is still the commit's.
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
