#include "cli.hpp"
namespace leat::cli {
void add_doctor_command(CLI::App&) {}
}  // namespace leat::cli
