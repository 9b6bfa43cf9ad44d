// The directory where topics live: --dir, LEAT_DIR or the default.
#pragma once

#include <string>

namespace leat::tool {

// Its path; fails if it is not usable. If it is missing:
//   is_made          creates it, and says so unless it is the default
//   fails_if_named   fails, unless it is the default
enum class Missing { is_made, fails_if_named };
std::string usable_directory(Missing missing);

// Fails if it is "/" or in a file system of the kernel's own, such as /proc: no place for topics.
void refuse_system_directory(const std::string& path);

}  // namespace leat::tool
