// How a client of raw framing is let in.
//
//     auto in = introduce(connection, inbox, joined, false, patience);
//     if (!in) return in.problem();    // what comes now are counts or messages
#pragma once

#include "admin.hpp"

namespace leat::lightq {

// Says who this is, and takes the answer. `acknowledges`: a puller that says what it is done with.
//   permission   the broker refuses
//   corrupt      that is no answer
//   closed, timeout, stopped, io_error
Outcome<void> introduce(Connection& connection, Inbox& inbox, const Joined& joined,
                        bool acknowledges, const Patience& patience);

}  // namespace leat::lightq
