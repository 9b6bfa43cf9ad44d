// What retention costs the archiver that does it, and in which steps. If these failed, a topic of many files would keep
// the archiver from writing, for seconds at a time.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "leat/store/retention.hpp"
#include "support/test_store.hpp"

namespace leat::testing {
namespace {

class RetentionSteps : public ::testing::Test {
 protected:
  static detail::Manifest manifest() {
    detail::Manifest made = small_manifest();
    made.topic.retention_bytes = 1;
    return made;
  }
  void make_file() {
    LogBytes log{store_.manifest.window.key, 100 * records_, records_};
    log.record("x");
    store_.append(writer_, log);
    ++records_;
    ASSERT_TRUE(writer_.finish_file());
    retention_.note_made(writer_.file_name());
  }
  bool expire() {
    auto more = retention_.expire(0, writer_, false);
    EXPECT_TRUE(more) << describe(more.error());
    return more && *more;
  }
  std::size_t files() const {
    return detail::list_segments(store_.directory(), 1)->front().live.size();
  }

  TestStore store_{manifest()};
  detail::SegmentWriter writer_ = store_.writer();
  detail::Retention retention_{store_.disk, store_.directory(), store_.manifest.topic};
  std::uint64_t records_ = 0;
};

TEST_F(RetentionSteps, OneFileAtATime) {
  for (int i = 0; i < 10; ++i) make_file();
  for (std::size_t left = 9; left != 0; --left) {
    EXPECT_TRUE(expire());
    EXPECT_EQ(files(), left);
  }
  EXPECT_FALSE(expire());
  EXPECT_EQ(files(), 1U);
}

// Listing all files whenever one is full takes the square of their number.
TEST_F(RetentionSteps, ListsTheFilesOnceForAsManyNewOnes) {
  store_.manifest.topic.retention_bytes = std::uint64_t{1} << 40;
  for (int i = 0; i < 100; ++i) make_file();
  EXPECT_FALSE(expire());  // Lists them.
  store_.manifest.topic.retention_bytes = 1;
  // A file of a superseded archiver. If the files were listed again, it would be the first.
  const detail::SegmentName first{0, 0, 0};
  std::ofstream{store_.topic_path() + '/' + first.text()} << "x";
  for (int i = 0; i < 90; ++i) {
    EXPECT_TRUE(expire());
    ASSERT_TRUE(std::filesystem::exists(store_.topic_path() + '/' + first.text())) << i;
  }
  for (int i = 0; i < 30; ++i) (void)expire();
  EXPECT_FALSE(std::filesystem::exists(store_.topic_path() + '/' + first.text()));
  EXPECT_EQ(files(), 1U);
}

// An archiver takes over where there are more files than it can measure in one step.
TEST_F(RetentionSteps, ManyFilesAreMeasuredInSteps) {
  for (int i = 0; i < 600; ++i) make_file();
  retention_.begin_epoch();
  EXPECT_TRUE(expire());
  EXPECT_TRUE(expire());
  EXPECT_EQ(files(), 600U);
  EXPECT_TRUE(expire());
  EXPECT_EQ(files(), 599U);
}

// A person who deletes the oldest files by hand.
TEST_F(RetentionSteps, FilesThatAreGoneAreNoError) {
  for (int i = 0; i < 5; ++i) make_file();
  ASSERT_TRUE(expire());
  const auto before = detail::list_segments(store_.directory(), 1)->front().live;
  std::filesystem::remove(store_.topic_path() + '/' + before.front().text());
  EXPECT_TRUE(expire());
  EXPECT_TRUE(expire());
  EXPECT_EQ(files(), 2U);
}

}  // namespace
}  // namespace leat::testing
