// What the commands of `leat` share: how they end, and how sizes, times and names are read.
//
//     check_topic_name(name);
//     auto topic = Topic::open(name);
//     if (!topic) fail(topic.error(), name);   // main() prints one line and exits with the right code
//
// Commands end early by throwing Failure (tool/failure.hpp).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "leat/fwd.hpp"
#include "tool/failure.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leat::cli {

using tool::exit_code_for;
using tool::Failure;
using tool::kExitFailed;
using tool::kExitFormat;
using tool::kExitFull;
using tool::kExitNotThere;
using tool::kExitPermission;
using tool::kExitUsage;
using tool::system_failure;
using tool::tell;

// Ends the command because of what the library said about a topic. `after` is appended to the
// sentence: what was done before it happened.
[[noreturn]] void fail(Error error, const std::string& topic, const std::string& after = {});

void check_topic_name(const std::string& name);
// `kind` is what the name is of: "topic", "group". They follow the same rule.
void check_name(const std::string& kind, const std::string& name);

// Where topics live (--dir, LEAT_DIR or the default), usable; fails with the reason otherwise.
enum class Missing { is_made, is_fine };
std::string usable_directory(Missing missing);

// How to get that many bytes more on the file system of `directory`, for the end of a sentence.
std::string how_to_get_room(const std::string& directory, std::uint64_t missing_bytes);
// Fails with exit code 6 unless the file system of `directory` has that much room.
void check_room(const std::string& directory, std::uint64_t bytes);
// A line of /proc/meminfo ("MemAvailable") in bytes; 0 if unknown.
std::uint64_t memory_figure(const std::string& name);

// "8 MiB", "512 KiB", "1.5 GiB", "100 bytes"
std::string size_text(std::uint64_t bytes);
// "1,000,000"
std::string number_text(std::uint64_t number);
// "500ms": in the largest unit that fits, as parse_duration() understands it.
std::string duration_text(std::chrono::nanoseconds duration);

std::optional<std::uint64_t> parse_number(std::string_view text) noexcept;
// "4096", "512KiB", "8MiB", "1GB" (powers of 1000), "2G" (of 1024)
std::optional<std::uint64_t> parse_size(std::string_view text) noexcept;
// "500ms", "2s", "10us", "1m", "1h"
std::optional<std::chrono::nanoseconds> parse_duration(std::string_view text) noexcept;
// Milliseconds since 1970, or ISO 8601: "2024-05-01T12:00:00.5Z", "2024-05-01 12:00+02:00", "2024-05-01",
// "20240501T120000Z". Without a zone: local time.
std::optional<std::int64_t> parse_time_ms(std::string_view text);
// "end", "beginning", "42", "@2024-05-01T12:00:00Z". Fails with a sentence about `what`.
From parse_place(const std::string& what, const std::string& text);

// Options that say what would be right when they are given something wrong.
CLI::Option* add_number(CLI::App& app, const std::string& name, std::uint64_t& target,
                        std::uint64_t least, std::uint64_t most, const std::string& description);
CLI::Option* add_number(CLI::App& app, const std::string& name,
                        std::optional<std::uint64_t>& target, std::uint64_t least,
                        std::uint64_t most, const std::string& description);
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description);
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& target,
                          const std::string& description);

// One per file of the same name. Each registers its command; the work is done while parsing.
void add_topic_command(CLI::App& app);
void add_topic_list(CLI::App& topic);
void add_topic_info(CLI::App& topic);
void add_ls_command(CLI::App& app);  // topic_list.cpp, too
void add_top_command(CLI::App& app);
void add_pub_command(CLI::App& app);
void add_sub_command(CLI::App& app);
void add_group_command(CLI::App& app);
void add_demo_command(CLI::App& app);
void add_doctor_command(CLI::App& app);

}  // namespace leat::cli
