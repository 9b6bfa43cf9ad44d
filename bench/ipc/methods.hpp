// The methods of `leat bench ipc`: every way two processes can talk.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cost.hpp"

namespace leat::bench::ipc {

// What a method does for a program, however fast it is. `leat bench report` chooses by it.
struct Facts {
  bool queue = true;       // A second message can wait behind the first; false: one slot.
  bool boundaries = true;  // A reader gets messages as they were sent, not a stream of bytes.
  // Of several readers that open it by themselves:
  bool shared = false;     // each message goes to one of them;
  bool broadcast = false;  // each message goes to all of them.
  // Whichever process is killed, at whatever moment: the others carry on, and messages that were sent
  // and not yet received are there for whoever takes its place.
  bool survives_kill = false;
};

struct Method {
  const char* name;
  Cost (*measure)(const Load& load, const Placement& placement);
  bool batches = false;
  bool spinning = true;  // Which variants it has.
  bool blocking = true;
  bool baseline = false;  // Its spinning variant is one slot of memory, no queue and no system call.
  // Of the method as it is measured: a library may have other kinds of sockets, with other facts.
  Facts facts = {};
};

// In the order in which they are shown.
std::vector<Method> all_methods();
// It must exist.
Method method_named(std::string_view name);
// None for a name that is not one of ours: other programs' results can be in the same report.
std::optional<Facts> facts_of(std::string_view name);

// Names and versions of the libraries that some methods use.
std::vector<std::pair<std::string, std::string>> library_versions();

// One function for each file of this folder.
std::vector<Method> stream_methods();
std::vector<Method> datagram_methods();
std::vector<Method> slot_methods();
std::vector<Method> library_methods();
std::vector<Method> leat_methods();

}  // namespace leat::bench::ipc
