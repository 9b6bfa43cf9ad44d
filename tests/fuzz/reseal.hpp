// Gives changed files a right checksum, so that fuzzers get behind it.
#pragma once

#include <cstring>

#include "leat/base/crc32c.hpp"
#include "leat/format/store_layout.hpp"

namespace leat::fuzz {

// A file of sections, in a string or in a vector of bytes.
template <class Content>
void reseal_sections(Content& file) {
  detail::SectionsHeader header{};
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  if (header.size < sizeof(header) || header.size > file.size()) return;
  header.crc = 0;
  std::memcpy(file.data(), &header, sizeof(header));
  header.crc = detail::crc32c(0, file.data(), header.size);
  std::memcpy(file.data(), &header, sizeof(header));
}

}  // namespace leat::fuzz
