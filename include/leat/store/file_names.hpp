// Names of the files in a topic's data directory.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "leat/format/store_layout.hpp"
#include "leat/os/directory.hpp"

namespace leat::inline v0::detail {

inline constexpr char kManifest[] = "manifest";
inline constexpr char kCheckpoint[] = "checkpoint";
inline constexpr char kDataLock[] = "lock";
inline constexpr std::string_view kSegmentPrefix = "segment-";
inline constexpr std::string_view kCutPrefix = "cut-";
inline constexpr std::string_view kSparePrefix = "spare-";  // + epoch, partition
inline constexpr std::string_view kSavedGroupPrefix = "group-";
inline constexpr std::string_view kNewGroupPrefix = "+group-";  // until it is whole

// Whether a directory with these names in it is a topic's, or what is left of one.
inline bool is_store(const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.starts_with(kManifest) || name.starts_with(kSegmentPrefix);
  });
}

inline constexpr std::size_t kSegmentNameSize = kSegmentPrefix.size() + 36;
inline constexpr std::uint64_t kMaxGeneration = 9'999'999'999;  // As many digits as in the name.

// A segment file: which partition's records it has, from which offset, and which archiver wrote it.
struct SegmentName {
  std::uint32_t partition = 0;
  std::uint64_t base_offset = 0;
  std::uint64_t generation = 0;

  std::string text() const {
    char text[64];
    std::snprintf(text, sizeof text, "segment-%04u-%020llu-%010llu", partition,
                  static_cast<unsigned long long>(base_offset),
                  static_cast<unsigned long long>(generation));
    return text;
  }
  // Nothing if the text is not exactly what text() returns for some file.
  static std::optional<SegmentName> parse(std::string_view text) {
    SegmentName name;
    std::uint64_t partition = 0;
    if (!text.starts_with(kSegmentPrefix) || text.size() != kSegmentNameSize) return {};
    if (!number(text.substr(8, 4), partition) || text[12] != '-' ||
        !number(text.substr(13, 20), name.base_offset) || text[33] != '-' ||
        !number(text.substr(34, 10), name.generation) || name.base_offset > kMaxStoredOffset)
      return {};
    name.partition = static_cast<std::uint32_t>(partition);
    return name;
  }

  friend auto operator<=>(const SegmentName& one, const SegmentName& other) noexcept {
    return std::tie(one.partition, one.base_offset, one.generation) <=>
           std::tie(other.partition, other.base_offset, other.generation);
  }
  friend bool operator==(const SegmentName&, const SegmentName&) noexcept = default;

 private:
  static bool number(std::string_view digits, std::uint64_t& value) noexcept {
    const char* end = digits.data() + digits.size();
    const auto result = std::from_chars(digits.data(), end, value);
    return result.ec == std::errc{} && result.ptr == end;
  }
};

// The files of one partition that count, by offset. Of two files with records of the same offsets the
// one of the later generation counts, so a file counts up to where the first file of a later
// generation begins. In this order generations never decrease.
struct SegmentList {
  std::vector<SegmentName> live;
  std::vector<SegmentName> abandoned;  // Nothing in them counts.

  // Offset where the records of live[index] end at the latest.
  std::uint64_t limit(std::size_t index) const noexcept {
    return index + 1 < live.size() ? live[index + 1].base_offset : ~std::uint64_t{0};
  }
};

inline SegmentList sort_segments(std::vector<SegmentName> names) {
  std::sort(names.begin(), names.end(), [](const SegmentName& one, const SegmentName& other) {
    return std::tie(one.generation, one.base_offset) >
           std::tie(other.generation, other.base_offset);
  });
  SegmentList list;
  // The latest generation comes first, and within it the last file.
  std::uint64_t generation = 0;
  std::uint64_t begin = ~std::uint64_t{0};  // Where the generations seen so far begin.
  std::uint64_t limit = ~std::uint64_t{0};  // The same without the one of `generation`.
  for (const SegmentName& name : names) {
    if (name.generation != generation) limit = begin;
    generation = name.generation;
    if (name.base_offset >= limit) {
      list.abandoned.push_back(name);
      continue;
    }
    list.live.push_back(name);
    begin = std::min(begin, name.base_offset);
  }
  std::sort(list.live.begin(), list.live.end());
  std::sort(list.abandoned.begin(), list.abandoned.end());
  return list;
}

// The segment files in a data directory, sorted, one list for each partition.
inline Result<std::vector<SegmentList>> list_segments(int directory, std::uint32_t partitions) {
  auto names = names_in(directory);
  if (!names) return names.error();
  std::vector<std::vector<SegmentName>> found(partitions);
  for (const std::string& text : *names) {
    const auto name = SegmentName::parse(text);
    if (name && name->partition < partitions) found[name->partition].push_back(*name);
  }
  std::vector<SegmentList> lists;
  for (auto& one : found) lists.push_back(sort_segments(std::move(one)));
  return lists;
}

// ---- Saved groups -------------------------------------------------------------------------------

inline std::string sixteen_digits(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(number));
  return text;
}
inline std::string saved_group_name(std::uint64_t id) {
  return std::string{kSavedGroupPrefix} + sixteen_digits(id);
}
// Without the number of the copy, the names of the two files that an archiver saves.
inline std::string saved_group_name(std::uint64_t id, std::uint64_t epoch) {
  return saved_group_name(id) + '-' + sixteen_digits(epoch);
}

struct SavedGroupFile {
  std::uint64_t id = 0;
  std::uint64_t epoch = 0;  // 0: the file that is made with the group

  static std::optional<SavedGroupFile> parse(std::string_view name) {
    constexpr std::size_t kDigits = 16;
    if (!name.starts_with(kSavedGroupPrefix)) return std::nullopt;
    name.remove_prefix(kSavedGroupPrefix.size());
    SavedGroupFile file;
    const auto number = [&](std::uint64_t& value) {
      const char* const end = name.data() + std::min(kDigits, name.size());
      const auto read = std::from_chars(name.data(), end, value, 16);
      if (read.ec != std::errc{} || read.ptr != name.data() + kDigits) return false;
      name.remove_prefix(kDigits);
      return true;
    };
    if (!number(file.id)) return std::nullopt;
    if (name.empty()) return file;
    if (name.front() != '-') return std::nullopt;
    name.remove_prefix(1);
    if (!number(file.epoch) || file.epoch == 0 || file.epoch > kMaxGeneration ||
        (name != "-0" && name != "-1"))
      return std::nullopt;
    return file;
  }
};

}  // namespace leat::inline v0::detail
