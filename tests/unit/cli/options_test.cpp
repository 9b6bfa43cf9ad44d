// If this failed, an option such as `8MiB` or `10s` would mean something else
// than the user expects.
#include "cli/cli.hpp"
#include "leat/subscriber.hpp"
#include "testing.hpp"

namespace leat::cli {
namespace {

TEST(ParseNumber, TakesWholeNumbersOnly) {
  EXPECT_EQ(parse_number("0"), 0u);
  EXPECT_EQ(parse_number("18446744073709551615"), 18446744073709551615u);
  for (const char* wrong : {"", " 1", "1 ", "-1", "+1", "0x1", "1.5", "18446744073709551616"})
    EXPECT_EQ(parse_number(wrong), std::nullopt) << wrong;
}

TEST(ParseSize, UnitsArePowersOf1024Or1000) {
  EXPECT_EQ(parse_size("4096"), 4096u);
  EXPECT_EQ(parse_size("512KiB"), 512u << 10);
  EXPECT_EQ(parse_size("8MiB"), 8u << 20);
  EXPECT_EQ(parse_size("2G"), 2ull << 30);
  EXPECT_EQ(parse_size("1GB"), 1'000'000'000u);
  for (const char* wrong : {"", "MiB", "-1MiB", "1XiB", "1 Mi B", "99999999999GiB"})
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
}

TEST(ParseDuration, NeedsAUnit) {
  EXPECT_EQ(parse_duration("500ms"), 500ms);
  EXPECT_EQ(parse_duration("2s"), 2s);
  EXPECT_EQ(parse_duration("10us"), 10us);
  EXPECT_EQ(parse_duration("1m"), 60s);
  EXPECT_EQ(parse_duration("1h"), 3600s);
  for (const char* wrong : {"", "5", "s", "-1s", "1d", "999999999999h"})
    EXPECT_EQ(parse_duration(wrong), std::nullopt) << wrong;
}

TEST(ParseTime, TakesMillisecondsAndIso8601) {
  constexpr std::int64_t kMay = 1714564800000;  // 2024-05-01T12:00:00Z
  EXPECT_EQ(parse_time_ms("1714564800000"), kMay);
  EXPECT_EQ(parse_time_ms("2024-05-01T12:00:00Z"), kMay);
  EXPECT_EQ(parse_time_ms("2024-05-01T12:00:00.5Z"), kMay + 500);
  EXPECT_EQ(parse_time_ms("2024-05-01 14:00+02:00"), kMay);
  EXPECT_EQ(parse_time_ms("20240501T120000Z"), kMay);
  for (const char* wrong :
       {"", "yesterday", "2024-13-01", "2024-05-01T25:00Z", "2024-05-01T12:00:00Zz"})
    EXPECT_EQ(parse_time_ms(wrong), std::nullopt) << wrong;
}

TEST(SizeText, IsWhatParseSizeTakes) {
  EXPECT_EQ(size_text(8u << 20), "8 MiB");
  EXPECT_EQ(size_text(512u << 10), "512 KiB");
  EXPECT_EQ(size_text(3u << 29), "1.5 GiB");
  EXPECT_EQ(size_text(100), "100 bytes");
  EXPECT_EQ(number_text(1'000'000), "1,000,000");
  EXPECT_EQ(number_text(999), "999");
}

TEST(SizeArgument, IsTakenBackUnchanged) {
  EXPECT_EQ(size_argument(8u << 20), "8MiB");
  EXPECT_EQ(size_argument(3u << 29), "1536MiB");
  EXPECT_EQ(size_argument(1ull << 40), "1TiB");
  EXPECT_EQ(size_argument(8u << 10), "8KiB");
  EXPECT_EQ(size_argument(5000), "5000");
  EXPECT_EQ(size_argument(0), "0");
  for (const std::uint64_t bytes : {1ull, 1023ull, 1ull << 10, 12288ull, 5ull << 30})
    EXPECT_EQ(parse_size(size_argument(bytes)), bytes);
}

TEST(ParsePlace, TakesEveryWayToNameOne) {
  for (const char* place : {"end", "latest", "beginning", "earliest", "0", "42", "-0", "-10", "1h",
                            "500ms", "@0", "@2024-05-01T12:00:00Z"}) {
    EXPECT_NO_THROW((void)parse_place("--from", place)) << place;
  }
  for (const char* wrong : {"", "-", "--1", "-x", "1.5", "1d", "h", "@", "@noon", "End", "+1"})
    EXPECT_THROW((void)parse_place("--from", wrong), Failure) << wrong;
  EXPECT_TRUE(is_end("end") && is_end("latest") && !is_end("earliest"));
  EXPECT_TRUE(is_beginning("beginning") && is_beginning("earliest") && !is_beginning("latest"));
}

TEST(CheckAtMostOne, NamesTheFirstTwo) {
  EXPECT_NO_THROW(check_at_most_one({}));
  EXPECT_NO_THROW(check_at_most_one({{"-a", false}, {"-b", true}, {"-c", false}}));
  try {
    check_at_most_one({{"-a", true}, {"-b", false}, {"-c", true}, {"-d", true}});
    FAIL() << "it let two of them pass";
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(), "-a and -c exclude each other");
    EXPECT_EQ(failure.exit_code(), kExitUsage);
  }
}

}  // namespace
}  // namespace leat::cli
