// The identity of a topic: a topic that is deleted and made anew under the same name has another one.
//
//     if (topic.id() != saved.id) start_over();  // A saved offset belongs to one topic, not to its name.
//
// Values, for any thread.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "leat/base/config.hpp"

namespace leat::inline v0 {

// A random UUID, version 4 (RFC 9562). Made with the topic, and anew when a backup is restored; constant
// for as long as the topic exists.
struct TopicId {
  std::array<std::byte, 16> bytes{};

  // False for a topic that was made by a version of Leat without ids, and for a backup.
  bool is_known() const noexcept { return *this != TopicId{}; }

  // "0b9c5f52-6c0e-4d6a-9f5b-3d2a7c1e8f04"; all digits are 0 if the id is not known.
  std::string text() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
      const auto byte = std::to_integer<unsigned>(bytes[i]);
      text += kDigits[byte >> 4];
      text += kDigits[byte & 15];
    }
    return text;
  }

  friend bool operator==(const TopicId&, const TopicId&) = default;
};

}  // namespace leat::inline v0
