// The directory where topics live: --dir, LEAT_DIR or the default.
#pragma once

#include <string>

namespace leat::tool {

// Its path; fails if it is not usable. If it is missing:
//   is_made          creates it, and says so unless it is the default
//   fails_if_named   fails, unless it is the default
enum class Missing { is_made, fails_if_named };
std::string usable_directory(Missing missing);

// For where topics are listed, and where one was not found: fails if --data-dir names a directory that cannot be opened,
// because durable topics would seem to be missing. Otherwise it need not be there.
void check_named_data_directory();
// Why no durable topic is found, if LEAT_DATA_DIR names a directory that is missing or cannot be used: "there is no directory
// /x, which LEAT_DATA_DIR names". Else empty. That one may be wrong: topics in memory do not need it.
std::string problem_of_data_variable();
// That --data-dir was given.
void note_named_data_directory() noexcept;

// Fails if it is "/" or in a file system of the kernel's own, such as /proc: no place for topics, nor for their files.
// `advice` ends the sentence.
void refuse_system_directory(
    const std::string& path,
    const char* advice =
        "topics need a directory of their own; name one with --dir or LEAT_DIR, for example "
        "/dev/shm/NAME");

}  // namespace leat::tool
