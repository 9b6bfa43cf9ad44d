// If this failed, the log of a program with LightQ's C functions would fill the disk, or lose lines that it should keep.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "lightq/api/log.hpp"
#include "support/process.hpp"

namespace leat::lightq_api {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSmall = 1000;

struct ApiLog : ::testing::Test {
  leat::testing::TemporaryDirectory directory;
  std::string base = directory.path() + "/program_" + std::to_string(::getpid()) + ".log";

  bool open(Log& log) { return log.open(directory.path(), "bin/program", LOG_EVENT); }
  // 0: the one that is written to.
  std::string file(int number) const {
    return base + (number == 0 ? "" : "." + std::to_string(number)) + ".txt";
  }
  static std::string content(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream{path}.rdbuf();
    return text.str();
  }
  std::ptrdiff_t files() const {
    return std::distance(fs::directory_iterator{directory.path()}, fs::directory_iterator{});
  }
};

TEST_F(ApiLog, FilesHaveTheSizeAndNumberOfLightQs) {
  EXPECT_EQ(kLogFileBytes, 500u * 1024 * 1024);
  EXPECT_EQ(kLogFiles, 10);
}

TEST_F(ApiLog, LinesGoOnInTheNextFile) {
  Log log{kSmall};
  ASSERT_TRUE(open(log));
  for (int i = 0; i < 100; ++i) log.write(LOG_ERROR, "line " + std::to_string(i));
  ASSERT_GT(files(), 2);
  ASSERT_LT(files(), kLogFiles);
  std::string all;
  for (int number = static_cast<int>(files()) - 1; number >= 0; --number) {
    EXPECT_LE(fs::file_size(file(number)), kSmall);
    EXPECT_EQ(fs::status(file(number)).permissions(), fs::perms{0600});
    all += content(file(number));
  }
  std::istringstream lines{all};
  std::string line;
  int count = 0;
  for (; std::getline(lines, line); ++count)
    EXPECT_TRUE(line.ends_with("] [error] line " + std::to_string(count))) << line;
  EXPECT_EQ(count, 100);
}

TEST_F(ApiLog, OldestFileIsDeleted) {
  Log log{kSmall};
  ASSERT_TRUE(open(log));
  for (int i = 0; i < 1000; ++i) log.write(LOG_ERROR, "line " + std::to_string(i));
  EXPECT_EQ(files(), kLogFiles);
  EXPECT_TRUE(fs::exists(file(kLogFiles - 1)));
  EXPECT_TRUE(content(file(0)).ends_with("line 999\n"));
}

TEST_F(ApiLog, LineThatIsLargerThanAFileIsWritten) {
  Log log{kSmall};
  ASSERT_TRUE(open(log));
  const std::string large(2 * kSmall, 'x');
  log.write(LOG_ERROR, large);
  log.write(LOG_ERROR, "after");
  EXPECT_TRUE(content(file(1)).ends_with(large + "\n"));
  EXPECT_TRUE(content(file(0)).ends_with("after\n"));
}

TEST_F(ApiLog, WhatWasThereBeforeCounts) {
  std::ofstream{file(0)} << std::string(kSmall, 'x');
  Log log{kSmall};
  ASSERT_TRUE(open(log));
  log.write(LOG_ERROR, "new");
  EXPECT_EQ(content(file(1)), std::string(kSmall, 'x'));
  EXPECT_TRUE(content(file(0)).ends_with("] [error] new\n"));
}

TEST_F(ApiLog, GoesOnInItsFileIfThereIsNoNextOne) {
  Log log{kSmall};
  ASSERT_TRUE(open(log));
  log.write(LOG_ERROR, "first");
  for (int number = 1; number < kLogFiles; ++number)  // No file can be moved there.
    fs::create_directories(file(number) + "/full");
  for (int i = 0; i < 30; ++i) log.write(LOG_ERROR, "line " + std::to_string(i));
  EXPECT_TRUE(content(file(0)).ends_with("line 29\n"));
}

}  // namespace
}  // namespace leat::lightq_api
