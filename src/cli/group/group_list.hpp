// What `leat group list` and `leat group info` print.
//
//     list_groups(topic, false);                            // a table, or JSON
//     print_group("orders", group.info(), false);
#pragma once

#include <string>

#include "leat/group.hpp"

namespace leat::cli {

void list_groups(const Topic& topic, bool json);
// Those of all topics of the directory. Opens no durable topic that nobody has open.
void list_all_groups(bool json);
void print_group(const std::string& topic, const GroupInfo& info, bool json);

}  // namespace leat::cli
