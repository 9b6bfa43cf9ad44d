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
