#include "lightq_client/problem.hpp"

#include <algorithm>

namespace leat::lightq {

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result{text.substr(0, kMost)};
  const auto is_control = [](unsigned char c) { return c < 0x20 || c == 0x7F; };
  std::replace_if(result.begin(), result.end(), is_control, ' ');
  return text.size() > kMost ? result + "…" : result;
}

}  // namespace leat::lightq
