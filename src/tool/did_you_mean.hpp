// Suggests a name for one that was mistyped.
//
//     fmt::format("there is no topic '{}'{}", name, did_you_mean(name, names));
//     // there is no topic 'nwes' (did you mean 'news'?)
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace leat::tool {

// How many letters must be inserted, deleted, replaced or swapped with their neighbour to turn one text into
// the other.
std::size_t edit_distance(std::string_view one, std::string_view other);

// The known name closest to what was typed; empty if none is close. One letter may be wrong, of eight or more letters
// two if the first one is right; or the end of the name may be missing. Numbers must be right: 'shard-1' is not a
// mistyped 'shard-2'.
std::string closest(std::string_view typed, const std::vector<std::string>& known);

// " (did you mean 'news'?)", or nothing.
std::string did_you_mean(std::string_view typed, const std::vector<std::string>& known);

}  // namespace leat::tool
