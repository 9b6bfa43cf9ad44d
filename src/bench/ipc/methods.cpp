#include "methods.hpp"

namespace leat::bench::ipc {

std::vector<Method> all_methods() {
  std::vector<Method> all;
  for (const auto& some :
       {stream_methods(), datagram_methods(), slot_methods(), library_methods(), log_methods()}) {
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace leat::bench::ipc
