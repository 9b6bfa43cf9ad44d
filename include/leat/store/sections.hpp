// Files of named sections with a checksum, kept twice: the manifest and the checkpoint.
//
//     const SectionsKind kind{kCheckpointMagic, manifest.topic.salt};
//     auto pair = SectionsPair::load(disk, directory, kCheckpoint, kind);
//     pair->newest().find("partitions");
//     pair->replace_older(disk, directory, kCheckpoint, kind, sections, access);
//
// Each file is written in place. A crash meanwhile may spoil it, but not the other one.
#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "leat/base/crc32c.hpp"
#include "leat/format/store_layout.hpp"
#include "leat/os/disk.hpp"

namespace leat::inline v0::detail {

template <class T>
std::span<const std::byte> bytes_of(const T& value) noexcept {
  return std::as_bytes(std::span{&value, 1});
}

struct Section {
  std::string_view name;
  std::span<const std::byte> data;
};

// What a file is, and of which topic: its last section, "salt", says it. A file of another topic counts as
// damaged. One without that section was written before there was one, and is taken for the topic's own.
struct SectionsKind {
  SectionsKind(std::uint64_t wanted_magic, std::uint64_t topic_salt = 0) noexcept
      : magic{wanted_magic}, salt{topic_salt} {}

  std::uint64_t magic;
  // ManifestTopic::salt. 0: not looked at and not written; so for the manifest.
  std::uint64_t salt;
};

// Access rights of a new file.
struct FileAccess {
  ::mode_t mode = 0600;
  std::int64_t group = -1;  // -1: the creator's
};

// Opens a file for writing, and makes it if it is missing.
inline Result<Fd> make_file(Disk& disk, int directory, const char* name, int flags,
                            const FileAccess& access) noexcept {
  auto file = disk.open(directory, name, O_RDWR | O_CREAT | flags, 0600);
  if (!file || (access.mode == 0600 && access.group < 0)) return file;
  if (auto set = set_access_like_others(file->get(), access.mode, access.group); !set)
    return set.error();
  return file;
}

// Whether an error means that a file is missing or damaged, also because the disk does not return it.
// Others (no permission, too many open files) say nothing about the file: without it an older state
// would be taken for the present one.
inline bool is_lost(Error error) noexcept {
  return error == Errc::not_found || error == Errc::corrupt || is_unreadable(error);
}

// The content of one such file, checked.
class SectionsFile {
 public:
  //   not_found     there is no such file
  //   wrong_format  it is whole, but of another version
  //   corrupt       it is not whole, or another topic's
  //   io_error      the disk does not return it, not even on a second try
  static Result<SectionsFile> load(Disk& disk, int directory, const char* name,
                                   const SectionsKind& kind) {
    auto loaded = load_once(disk, directory, name, kind);
    if (!loaded && is_unreadable(loaded.error())) loaded = load_once(disk, directory, name, kind);
    return loaded;
  }
  static Result<SectionsFile> load_once(Disk& disk, int directory, const char* name,
                                        const SectionsKind& kind) {
    auto file = disk.open(directory, name, O_RDONLY, 0);
    if (!file) return file.error();
    auto size = disk.size(file->get());
    if (!size) return size.error();
    if (*size < sizeof(SectionsHeader) || *size > kMaxSectionsFile) return Errc::corrupt;
    std::vector<std::byte> bytes(*size);
    auto read = disk.read(file->get(), bytes.data(), bytes.size(), 0);
    if (!read) return read.error();
    bytes.resize(*read);
    return parse(std::move(bytes), kind);
  }

  static Result<SectionsFile> parse(std::vector<std::byte> bytes, const SectionsKind& kind) {
    SectionsFile file;
    if (bytes.size() < sizeof(SectionsHeader)) return Errc::corrupt;
    std::memcpy(&file.header_, bytes.data(), sizeof(SectionsHeader));
    const SectionsHeader& header = file.header_;
    if (header.magic != kind.magic || header.size < sizeof(header) || header.size > bytes.size())
      return Errc::corrupt;
    bytes.resize(header.size);  // A longer one may have been here before.
    if (checksum(bytes) != header.crc) return Errc::corrupt;
    if (header.version != kStoreVersion || header.count > kMaxSections) return Errc::wrong_format;
    file.bytes_ = std::move(bytes);
    std::size_t at = sizeof(SectionsHeader);
    for (std::uint32_t i = 0; i < header.count; ++i) {
      const auto section = file.section_at(at);
      if (!section) return Errc::corrupt;
      file.sections_.push_back(*section);
      at = next_section(at, section->data.size());
    }
    if (at != file.bytes_.size()) return Errc::corrupt;
    std::uint64_t salt = 0;
    if (kind.salt != 0 && file.get(kSalt, salt) && salt != kind.salt) return Errc::corrupt;
    return file;
  }

  static std::vector<std::byte> format(const SectionsKind& kind, std::uint64_t sequence,
                                       std::span<const Section> sections) {
    std::vector<Section> all{sections.begin(), sections.end()};
    if (kind.salt != 0) all.push_back({kSalt, bytes_of(kind.salt)});
    SectionsHeader header{
        kind.magic, kStoreVersion, 0, sequence, 0, static_cast<std::uint32_t>(all.size())};
    std::vector<std::byte> bytes(sizeof(header));
    for (const Section& section : all) {
      SectionName name{};
      std::memcpy(name.name, section.name.data(), std::min(section.name.size(), sizeof name.name));
      name.size = static_cast<std::uint32_t>(section.data.size());
      const std::size_t at = bytes.size();
      bytes.resize(next_section(at, section.data.size()));
      std::memcpy(bytes.data() + at, &name, sizeof(name));
      if (!section.data.empty())
        std::memcpy(bytes.data() + at + sizeof(name), section.data.data(), section.data.size());
    }
    header.size = static_cast<std::uint32_t>(bytes.size());
    std::memcpy(bytes.data(), &header, sizeof(header));
    header.crc = checksum(bytes);
    std::memcpy(bytes.data(), &header, sizeof(header));
    return bytes;
  }

  SectionsFile(SectionsFile&&) noexcept = default;
  SectionsFile& operator=(SectionsFile&&) noexcept = default;

  std::uint64_t sequence() const noexcept { return header_.sequence; }
  std::span<const Section> sections() const noexcept { return sections_; }

  // The data of a section; nothing if there is none of that name.
  std::optional<std::span<const std::byte>> find(std::string_view name) const noexcept {
    for (const Section& section : sections_) {
      if (section.name == name) return section.data;
    }
    return std::nullopt;
  }
  // Copies the start of a section into `value`. False if it is missing or shorter.
  template <class T>
  bool get(std::string_view name, T& value) const noexcept {
    const auto data = find(name);
    if (!data || data->size() < sizeof(T)) return false;
    std::memcpy(&value, data->data(), sizeof(T));
    return true;
  }

 private:
  static constexpr std::string_view kSalt = "salt";

  SectionsFile() noexcept = default;

  static std::size_t next_section(std::size_t at, std::size_t size) noexcept {
    return at + sizeof(SectionName) + (size + 7) / 8 * 8;
  }
  static std::uint32_t checksum(std::span<const std::byte> bytes) noexcept {
    constexpr std::size_t kAt = offsetof(SectionsHeader, crc);
    const std::uint32_t zero = 0;
    std::uint32_t sum = crc32c(0, bytes.data(), kAt);
    sum = crc32c(sum, &zero, sizeof(zero));
    return crc32c(sum, bytes.data() + kAt + sizeof(zero), bytes.size() - kAt - sizeof(zero));
  }
  std::optional<Section> section_at(std::size_t at) const noexcept {
    SectionName name{};
    if (bytes_.size() - at < sizeof(name)) return std::nullopt;
    std::memcpy(&name, bytes_.data() + at, sizeof(name));
    if (bytes_.size() - at - sizeof(name) < (std::size_t{name.size} + 7) / 8 * 8)
      return std::nullopt;
    const char* text = reinterpret_cast<const char*>(bytes_.data() + at);
    return Section{{text, ::strnlen(text, sizeof name.name)},
                   {bytes_.data() + at + sizeof(name), name.size}};
  }

  SectionsHeader header_{};
  std::vector<std::byte> bytes_;
  std::vector<Section> sections_;  // Views of bytes_, which a move does not relocate.
};

// The two files "<name>-0" and "<name>-1".
class SectionsPair {
 public:
  //   not_found     there is neither
  //   wrong_format  one of them is of another version
  //   permission, … one of them can't be read now
  //   corrupt       none is whole
  static Result<SectionsPair> load(Disk& disk, int directory, const std::string& name,
                                   const SectionsKind& kind) {
    SectionsPair pair;
    for (std::size_t i = 0; i < 2; ++i) {
      auto file = SectionsFile::load(disk, directory, file_name(name, i).c_str(), kind);
      if (!file) {
        pair.errors_[i] = file.error();
        if (!is_lost(file.error())) return file.error();
        continue;
      }
      pair.errors_[i] = {};
      if (!pair.newest_ || file->sequence() > pair.newest_->sequence()) {
        pair.newest_ = std::move(*file);
        pair.index_ = i;
      }
    }
    if (pair.newest_) return pair;
    const auto& [first, second] = pair.errors_;
    return first == Errc::not_found || is_unreadable(second) ? second : first;
  }

  // A pair of which nothing was written yet.
  SectionsPair() noexcept = default;

  const SectionsFile& newest() const noexcept { return *newest_; }
  // Why that one can't be used; ok if it can.
  Error error(std::size_t index) const noexcept { return errors_[index]; }
  static std::string file_name(const std::string& name, std::size_t index) {
    return name + '-' + std::to_string(index);
  }

  // Writes the sections over the older file, and waits until they are on stable storage.
  Result<void> replace_older(Disk& disk, int directory, const std::string& name,
                             const SectionsKind& kind, std::span<const Section> sections,
                             const FileAccess& access) {
    const std::size_t target = newest_ ? 1 - index_ : 0;
    const std::uint64_t sequence = newest_ ? newest_->sequence() + 1 : 1;
    auto bytes = SectionsFile::format(kind, sequence, sections);
    // The process that wrote the newest copy may have been killed before it was synced. If the power then failed
    // while the older copy is overwritten, neither would be whole.
    if (newest_ && !is_durable_) {
      auto newest = disk.open(directory, file_name(name, index_).c_str(), O_RDONLY, 0);
      if (!newest) return newest.error();
      if (auto synced = disk.sync(newest->get()); !synced) return synced;
      is_durable_ = true;
    }
    const bool has_name = newest_ && errors_[target] != Errc::not_found;
    auto file = make_file(disk, directory, file_name(name, target).c_str(), 0, access);
    if (!file) return file.error();
    if (auto written = disk.write(file->get(), bytes, 0); !written) return written;
    if (auto cut = disk.truncate(file->get(), bytes.size()); !cut) return cut;
    if (auto synced = disk.sync(file->get()); !synced) return synced;
    if (!has_name) {
      if (auto synced = disk.sync_directory(directory); !synced) return synced;
    }
    auto parsed = SectionsFile::parse(std::move(bytes), kind);
    if (!parsed) return parsed.error();
    newest_ = std::move(*parsed);
    errors_[target] = {};
    index_ = target;
    is_durable_ = true;
    return {};
  }

 private:
  std::optional<SectionsFile> newest_;
  std::size_t index_ = 0;    // Of the newest.
  bool is_durable_ = false;  // The newest is on stable storage.
  // Until a file is written, its name may not be on stable storage.
  std::array<Error, 2> errors_{Error{Errc::not_found}, Error{Errc::not_found}};
};

}  // namespace leat::inline v0::detail
