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
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "leat/fwd.hpp"
#include "tool/failure.hpp"
#include "tool/topic_directory.hpp"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace leat::cli {

using tool::check_named_data_directory;
using tool::exit_code_for;
using tool::Failure;
using tool::kExitFailed;
using tool::kExitFormat;
using tool::kExitFull;
using tool::kExitNotThere;
using tool::kExitPermission;
using tool::kExitUsage;
using tool::Missing;
using tool::or_fail;
using tool::print_notice;
using tool::problem_of_data_variable;
using tool::refuse_system_directory;
using tool::system_failure;
using tool::usable_directory;

// Ends the command with an error of the library about a topic. `after` is appended to the sentence, to say
// what was done before.
[[noreturn]] void fail(Error error, const std::string& topic, const std::string& after = {});

// The same for calls that wait for stable storage: then an io_error is a failed write or sync.
[[noreturn]] void fail_to_sync(Error error, const std::string& topic,
                               const std::string& after = {});

// Why a topic cannot be taken out of its directory, if that is because this process may not take the directory's lock; else
// empty.
std::string lock_sentence(const std::string& topic);

// What to do if a file or a symbolic link has the path where a durable topic's directory should be.
std::string no_directory_sentence(const std::string& topic, const std::string& path);

// Whether this process may make something in a directory.
bool may_create_in(const std::string& directory);

void check_topic_name(const std::string& name);
// `kind` is "topic" or "group": the same rule applies to both.
void check_name(const std::string& kind, const std::string& name);
// The --partition that was asked for. Fails if the topic does not have it.
std::uint32_t partition_of(const Topic& topic, std::uint64_t asked);
// " (did you mean 'news'?)", if a topic has a name much like this one.
std::string similar_topic(const std::string& name);

// An option, or a positional argument, and whether it was given.
struct Given {
  std::string_view name;
  bool is_given;
};
// Fails if more than one of them was: they exclude each other.
void check_at_most_one(std::initializer_list<Given> options);

// A line of /proc/meminfo ("MemAvailable") in bytes; 0 if unknown.
std::uint64_t memory_figure(const std::string& name);

// "8 MiB", "512 KiB", "1.5 GiB", "100 bytes"
std::string size_text(std::uint64_t bytes);
// As an option takes it, and never rounded: "8MiB", "1536MiB", "100"
std::string size_argument(std::uint64_t bytes);
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
// "end" or "latest", "beginning" or "earliest", "42" (an offset), "-10" (the last ten of each partition),
// "1h" (not older than an hour), "@2024-05-01T12:00:00Z". Fails with a sentence about `what`.
From parse_place(const std::string& what, const std::string& text);
// For a place that parse_place() accepts.
bool is_end(std::string_view place) noexcept;
bool is_beginning(std::string_view place) noexcept;

// Options whose error messages name valid values.
CLI::Option* add_number(CLI::App& app, const std::string& name, std::uint64_t& target,
                        std::uint64_t least, std::uint64_t most, const std::string& description);
CLI::Option* add_number(CLI::App& app, const std::string& name,
                        std::optional<std::uint64_t>& target, std::uint64_t least,
                        std::uint64_t most, const std::string& description);
CLI::Option* add_size(CLI::App& app, const std::string& name, std::uint64_t& target,
                      const std::string& description);
CLI::Option* add_size(CLI::App& app, const std::string& name, std::optional<std::uint64_t>& target,
                      const std::string& description);
CLI::Option* add_duration(CLI::App& app, const std::string& name, std::chrono::nanoseconds& target,
                          const std::string& description);
// A positional argument that may be given several times. Every word is taken literally.
CLI::Option* add_words(CLI::App& app, const std::string& name, std::vector<std::string>& target,
                       const std::string& description);

// Each registers a command, which does its work while the arguments are parsed.
void add_topic_command(CLI::App& app);
void add_topic_create(CLI::App& topic);
void add_topic_list(CLI::App& topic);
void add_topic_info(CLI::App& topic);
void add_topic_delete(CLI::App& topic);
void add_ls_command(CLI::App& app);  // In topic_list.cpp.
void add_rm_command(CLI::App& app);  // In topic_delete.cpp.
void add_top_command(CLI::App& app);
void add_pub_command(CLI::App& app);
void add_sub_command(CLI::App& app);
void add_group_command(CLI::App& app);
void add_demo_command(CLI::App& app);
void add_dump_command(CLI::App& app);
void add_fsck_command(CLI::App& app);
void add_backup_command(CLI::App& app);
void add_restore_command(CLI::App& app);
void add_doctor_command(CLI::App& app);
void add_version_command(CLI::App& app);
void add_help_command(CLI::App& app);

}  // namespace leat::cli
