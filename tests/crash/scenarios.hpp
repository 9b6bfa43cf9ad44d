// The table that the step tests go through: what a victim does when it dies or stops, and at which
// labelled steps. steps_test.cpp checks that no label in the sources is missing from it.
#pragma once

#include <ostream>
#include <string_view>
#include <vector>

#include "world.hpp"

namespace leat::testing {

// Who has to wait for a victim that is stopped but alive.
enum class Waits {
  nobody,
  readers,     // it has a claim; readers wait at its hole
  publishers,  // it is a gating subscriber; its room is not reused
};

struct Scenario {
  const char* name;
  WorldOptions options;
  void (*prepare)(World&);  // Runs before the victim starts; may be null.
  int (*victim)(World&);    // Runs in a child.
  std::vector<const char*> steps;
  Waits (*waits)(std::string_view step);
  int died_before = 0;  // Number of `died` gaps that prepare() causes.
};

inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

const std::vector<Scenario>& scenarios();

// Steps of creating and deleting a topic; covered by topic_steps_test.cpp.
inline constexpr const char* kCreateSteps[] = {"make:made", "make:locked", "create:filled"};
// Of durable topics: durable_steps_test.cpp.
inline constexpr const char* kDurableSteps[] = {
    "open:recovered",       "open:window_named", "open:window_made",         "archiver:counted",
    "archiver:locked",      "archiver:fenced",   "archiver:took_over",       "archiver:written",
    "archiver:announced",   "archiver:leaving",  "archiver:handover_stored", "archiver:handed_over",
    "archiver:files_ended", "archiver:closed"};
// Likewise, but only where records are synced.
inline constexpr const char* kSyncSteps[] = {"archiver:synced", "archiver:durable_announced"};
inline constexpr const char* kTakeoverSteps[] = {"archiver:room_freed", "archiver:set_back"};
inline constexpr const char* kExpirySteps[] = {"archiver:expired", "store:file_recycled",
                                               "archiver:put_aside"};
inline constexpr const char* kDeleteFilesSteps[] = {
    "delete:files_opened", "delete:files_chosen", "delete:files_looked_at", "delete:files_renamed"};
// Of the files of a durable topic: store_steps_test.cpp.
inline constexpr const char* kStoreSteps[] = {"store:file_made", "store:file_begun",
                                              "store:frame_written", "store:file_cut",
                                              "store:file_synced"};
inline constexpr const char* kRecoverySteps[] = {"recovery:abandoned_put_aside",
                                                 "recovery:file_put_aside", "recovery:tail_copied",
                                                 "recovery:tail_cut", "recovery:partitions_cut"};
inline constexpr const char* kCopySteps[] = {"copy:file_linked", "copy:file_copied", "store:made"};
inline constexpr const char* kDeleteSteps[] = {"delete:attempted", "delete:decided",
                                               "delete:announced", "delete:renamed"};
// Covered by unused_steps_test.cpp, together with the steps of a deletion.
inline constexpr const char* kUnusedSteps[] = {"unused:let_go", "unused:decided"};
// Covered by robust_wake_test.cpp.
inline constexpr const char* kWakeStep = "sleep:rung";

// Whether a publisher at this step has a claim that is not visible yet.
inline bool is_open_claim(std::string_view step) {
  return step == "claim:won" || step == "claim:marked" || step == "commit:before";
}

}  // namespace leat::testing
