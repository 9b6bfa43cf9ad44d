// If this failed, somebody who mistyped a name would be sent to another one, or be told nothing.
#include "tool/did_you_mean.hpp"

#include "testing.hpp"

namespace leat::tool {
namespace {

TEST(EditDistance, CountsLettersThatAreWrong) {
  EXPECT_EQ(edit_distance("", ""), 0u);
  EXPECT_EQ(edit_distance("news", "news"), 0u);
  EXPECT_EQ(edit_distance("news", ""), 4u);
  EXPECT_EQ(edit_distance("", "news"), 4u);
  EXPECT_EQ(edit_distance("new", "news"), 1u);    // Left out.
  EXPECT_EQ(edit_distance("newss", "news"), 1u);  // Too many.
  EXPECT_EQ(edit_distance("mews", "news"), 1u);   // Another one.
  EXPECT_EQ(edit_distance("nwes", "news"), 1u);   // Swapped.
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
}

TEST(DidYouMean, NamesTheClosest) {
  const std::vector<std::string> known{"pub", "sub", "topic", "group", "doctor"};
  EXPECT_EQ(closest("sbu", known), "sub");
  EXPECT_EQ(closest("topics", known), "topic");
  EXPECT_EQ(closest("doc", known), "doctor");  // Only its beginning.
  EXPECT_EQ(closest("Pub", known), "pub");
  EXPECT_EQ(did_you_mean("gruop", known), " (did you mean 'group'?)");
}

// What people would agree to, and what they would not.
TEST(DidYouMean, IsNotTooEager) {
  const struct {
    const char* typed;
    const char* known;
    bool is_close;
  } kPairs[] = {
      {"cont", "chat", false},
      {"chat", "cont", false},
      {"cont", "count", true},
      {"sl", "ls", true},
      {"la", "ls", false},
      {"lss", "ls", true},
      {"a", "b", false},
      {"t1", "t2", false},
      {"new", "news", true},
      {"nwes", "news", true},
      {"mews", "news", true},
      {"nuse", "news", false},
      {"news", "jobs", false},
      {"parcel", "parsed", false},
      {"parcels", "barrels", false},
      {"shard-1", "shard-2", false},
      {"shard-1", "shard-10", false},
      {"shrad-1", "shard-1", true},
      {"restart", "restore", false},
      {"custmers", "customer", true},
      {"retention-tme", "retention-time", true},
      {"subcribres", "subscribers", true},
      {"quotes", "orders", false},
      {"read", "rm", false},
      {"info", "list", false},
      {"pull", "pub", false},
      {"hello", "help", false},
      {"test", "trades", false},
      {"trade", "trades", true},
      {"invoice", "voice", false},
      {"devices", "services", false},
  };
  for (const auto& [typed, known, is_close] : kPairs)
    EXPECT_EQ(closest(typed, {known}), is_close ? known : "") << typed << ", " << known;
}

TEST(DidYouMean, SaysNothingOfWhatIsFarAway) {
  const std::vector<std::string> known{"pub", "sub", "a"};
  for (const char* typed : {"", "x", "xy", "publisher", "orders"}) {
    EXPECT_EQ(closest(typed, known), "") << typed;
    EXPECT_EQ(did_you_mean(typed, known), "") << typed;
  }
  EXPECT_EQ(closest("sub", {}), "");
}

}  // namespace
}  // namespace leat::tool
