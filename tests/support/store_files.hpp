// The files of a topic's data directory as bytes, to be damaged and put into a directory in memory.
//
//     const StoreFiles files = read_files(store.topic_path());
//     PlacedFiles placed{files};
//     placed.put("segment-…", damaged_bytes);
//     … placed.directory() …
//     placed.reset();                       // as they were
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <utility>

#include "support/store_world.hpp"

namespace leat::testing {

using StoreFiles = std::map<std::string, std::string>;  // name, bytes

inline std::string read_file(const std::string& path) {
  std::ifstream file{path, std::ios::binary};
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return std::move(bytes).str();
}
inline StoreFiles read_files(const std::string& path) {
  StoreFiles files;
  for (const auto& entry : std::filesystem::directory_iterator{path})
    files[entry.path().filename().string()] = read_file(entry.path().string());
  return files;
}
// Names of the segment files, in order.
inline std::vector<std::string> segments_of(const StoreFiles& files) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : files)
    if (name.starts_with(detail::kSegmentPrefix)) names.push_back(name);
  return names;
}

class PlacedFiles {
 public:
  explicit PlacedFiles(StoreFiles files) : files_{std::move(files)} {
    directory_ = std::move(*detail::open_directory_path(place_.path, false, false));
    reset();
  }

  int directory() const { return directory_.get(); }
  const StoreFiles& files() const { return files_; }
  void put(const std::string& name, const std::string& bytes) {
    std::ofstream file{place_.path + '/' + name, std::ios::binary | std::ios::trunc};
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  void erase(const std::string& name) { std::filesystem::remove(place_.path + '/' + name); }
  std::string get(const std::string& name) const { return read_file(place_.path + '/' + name); }
  void reset() {
    auto names = detail::names_in(directory());
    for (const std::string& name : *names)
      if (!name.starts_with('.') && !files_.contains(name)) erase(name);
    for (const auto& [name, bytes] : files_) put(name, bytes);
  }

  std::vector<std::string> read(const detail::Manifest& manifest) {
    return read_store(detail::Disk::system(), directory(), manifest);
  }
  bool is_damaged() {
    auto report = detail::check_store(detail::Disk::system(), directory());
    return !report || report->is_damaged();
  }

 private:
  ScratchDirectory place_;
  detail::Fd directory_;
  StoreFiles files_;
};

}  // namespace leat::testing
