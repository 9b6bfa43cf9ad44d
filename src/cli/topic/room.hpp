// Room for files: whether there is enough, what is missing where there is not, and how to get it.
#pragma once

#include <sys/statvfs.h>

#include <cstdint>
#include <string>

namespace leat::cli {

// The path, or the closest one above it that exists.
std::string existing_part(const std::string& path);

// How to get that many more bytes on the file system of `directory`; ends a sentence.
std::string how_to_get_room(const std::string& directory, std::uint64_t missing_bytes);

// Fails with exit code 6 unless the file system of `directory` has that much room.
void check_room(const std::string& directory, std::uint64_t bytes);

// Whether a file system may soon, or already, refuse files although bytes are free. Some have no fixed number of inodes.
bool has_few_inodes(const struct statvfs& status);
// How to get more inodes; ends a sentence.
std::string how_to_get_inodes(const std::string& directory);

// Whether that errno (0 if it is not known) of a file without room is the file system's, and not a limit of its process.
bool is_full_disk(std::int32_t reason);
// What is missing in `directory`, after such an errno: the second half of a sentence. `needed` bytes, if they are known.
std::string what_is_missing(std::int32_t reason, const std::string& directory,
                            std::uint64_t needed = 0);
// The same for a topic that may lack room in one directory or the other.
std::string what_is_missing_in_one(std::int32_t reason, const std::string& one,
                                   const std::string& other, std::uint64_t needed_in_other = 0);

}  // namespace leat::cli
