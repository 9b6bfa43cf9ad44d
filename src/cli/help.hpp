// `leat help topic create` is `leat topic create --help`.
#pragma once

#include <vector>

namespace leat::cli {

// The arguments, with the command `help` replaced by the option.
std::vector<char*> with_help_as_option(int argc, char** argv);

}  // namespace leat::cli
