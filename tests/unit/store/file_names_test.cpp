// Names of segment files, and which of them count. If this failed, records of a superseded archiver could be read,
// or those of its successor be overlooked.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "leat/store/file_names.hpp"
#include "support/random.hpp"

namespace leat::testing {
namespace {

using detail::SegmentName;

TEST(SegmentName, TextAndNameAreTheSame) {
  for (const SegmentName& name :
       {SegmentName{0, 0, 0}, SegmentName{1023, detail::kMaxStoredOffset, 9'999'999'999},
        SegmentName{7, 1234567890123, 42}}) {
    EXPECT_EQ(SegmentName::parse(name.text()), name);
  }
  EXPECT_EQ((SegmentName{7, 12, 3}.text()), "segment-0007-00000000000000000012-0000000003");
}

TEST(SegmentName, OtherTextsAreNone) {
  const std::string right = SegmentName{7, 12, 3}.text();
  for (std::size_t i = 0; i < right.size(); ++i) {
    for (const char c : {'x', '-', ' ', '+', '\0'}) {
      std::string wrong = right;
      wrong[i] = c;
      if (wrong == right) continue;
      EXPECT_FALSE(SegmentName::parse(wrong)) << wrong;
    }
    EXPECT_FALSE(SegmentName::parse(right.substr(0, i)));
  }
  EXPECT_FALSE(SegmentName::parse(right + "0"));
  EXPECT_FALSE(SegmentName::parse("cut-" + right));
  EXPECT_FALSE(SegmentName::parse("segment-0007-99999999999999999999-0000000003"));  // Over 2^64.
  EXPECT_FALSE(SegmentName::parse(SegmentName{7, detail::kMaxStoredOffset + 1, 3}.text()));
}

// An offset belongs to the file of the latest generation that begins at or before it, and of those to the
// last file; unless a still later generation began at or before that file.
const SegmentName* owner_of(const std::vector<SegmentName>& names, std::uint64_t offset) {
  const SegmentName* owner = nullptr;
  for (const SegmentName& name : names) {
    if (name.base_offset > offset) continue;
    if (owner == nullptr || name.generation > owner->generation ||
        (name.generation == owner->generation && name.base_offset > owner->base_offset))
      owner = &name;
  }
  return owner;
}

TEST(SegmentList, EveryOffsetIsInTheFileThatANaiveSearchFinds) {
  Random random{3};
  for (int round = 0; round < 3000; ++round) {
    std::vector<SegmentName> names;
    for (std::uint64_t i = below(random, 9); i > 0; --i)
      names.push_back({0, below(random, 12), below(random, 5)});
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::shuffle(names.begin(), names.end(), random);
    const detail::SegmentList list = detail::sort_segments(names);
    EXPECT_EQ(list.live.size() + list.abandoned.size(), names.size());
    EXPECT_TRUE(std::is_sorted(list.live.begin(), list.live.end()));
    for (std::uint64_t offset = 0; offset < 13; ++offset) {
      const SegmentName* found = nullptr;
      for (std::size_t i = 0; i < list.live.size(); ++i) {
        if (list.live[i].base_offset <= offset && offset < list.limit(i)) found = &list.live[i];
      }
      const SegmentName* const wanted = owner_of(names, offset);
      ASSERT_EQ(found == nullptr, wanted == nullptr);
      if (wanted != nullptr) {
        ASSERT_EQ(*found, *wanted) << "offset " << offset;
      }
    }
  }
}

}  // namespace
}  // namespace leat::testing
