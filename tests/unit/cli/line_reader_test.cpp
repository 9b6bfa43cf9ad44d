// If this failed, `leat pub` would split a line, publish one late, or not react to Ctrl-C.
#include "cli/line_reader.hpp"

#include "testing.hpp"

namespace leat::cli {
namespace {

using Ended = LineReader::Ended;

// A pipe that the test writes to.
class Feed {
 public:
  Feed() {
    int ends[2];
    if (::pipe(ends) != 0) throw std::runtime_error{"pipe"};
    read_ = detail::Fd{ends[0]};
    write_ = detail::Fd{ends[1]};
  }
  int fd() const { return read_.get(); }
  void write(std::string_view text) {
    while (!text.empty()) {
      const ssize_t wrote = ::write(write_.get(), text.data(), text.size());
      if (wrote <= 0) throw std::runtime_error{"write"};
      text.remove_prefix(static_cast<std::size_t>(wrote));
    }
  }
  void end() { write_ = detail::Fd{}; }

 private:
  detail::Fd read_;
  detail::Fd write_;
};

constexpr auto kGoOn = [] { return false; };

TEST(LineReader, GivesEachLineAsSoonAsItHasCome) {
  Feed feed;
  LineReader reader{feed.fd(), 100};
  feed.write("one\ntw");
  EXPECT_EQ(reader.next(kGoOn), "one");
  EXPECT_TRUE(reader.has_rest());
  feed.write("o\n\nfour");
  EXPECT_EQ(reader.next(kGoOn), "two");
  EXPECT_EQ(reader.next(kGoOn), "");
  feed.end();
  EXPECT_EQ(reader.next(kGoOn), "four");  // The last line has no newline.
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::at_end);
}

TEST(LineReader, LongestLineIsWholeAndALongerOneEndsIt) {
  const std::string longest(300'000, 'x');  // More than the reader reads at once.
  for (const bool newline : {true, false}) {
    for (const std::size_t more : {0u, 1u}) {
      Feed feed;
      std::jthread writer{[&] {
        feed.write(longest);
        if (more == 1) feed.write("x");
        if (newline) feed.write("\n");
        feed.end();
      }};
      LineReader reader{feed.fd(), longest.size()};
      const auto line = reader.next(kGoOn);
      EXPECT_EQ(line.has_value(), more == 0);
      EXPECT_EQ(line.value_or(longest), longest);
      EXPECT_EQ(reader.ended() == Ended::line_too_long, more == 1);
    }
  }
}

TEST(LineReader, StopsWhenAsked) {
  Feed feed;
  LineReader reader{feed.fd(), 10};
  EXPECT_EQ(reader.next([] { return true; }), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::stopped);
}

TEST(LineReader, TellsTheSystemsError) {
  LineReader reader{-1, 10};
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::error);
  EXPECT_EQ(reader.error_number(), EBADF);
}

}  // namespace
}  // namespace leat::cli
