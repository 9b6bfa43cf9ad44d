// Who keeps a topic full, in words: for `leat pub`, `leat topic info` and `leat doctor`.
//
//     const HoldersText text = holders_text("news", publisher.waiting_for());
//     print_notice("topic 'news' is full and waits for " + text.who + ": " + text.remedy);
#pragma once

#include <string>
#include <vector>

#include "leat/publisher.hpp"

namespace leat::cli {

struct HoldersText {
  std::string who;  // "group 'wokers', which has no members"
  std::string
      remedy;  // The commands that end it, for the first of them: "`leat group delete news wokers` …"
};

// For one or more. First those that nobody but a person will move.
HoldersText holders_text(const std::string& topic, std::vector<RoomHolder> holders);

}  // namespace leat::cli
