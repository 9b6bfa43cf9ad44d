// If this failed, `leat pub` would tear a line, hold one back, or hang at Ctrl-C.
#include "cli/records/record_reader.hpp"

#include "testing.hpp"

namespace leat::cli {
namespace {

using Ended = RecordReader::Ended;

Framing delimited_by(std::string delimiter) { return {.delimiter = std::move(delimiter)}; }
Framing with_lengths() { return delimited_by(""); }

// A pipe that is fed by the test.
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

TEST(RecordReader, GivesEachLineAsSoonAsItHasCome) {
  Feed feed;
  RecordReader reader{feed.fd(), 100};
  feed.write("one\ntw");
  EXPECT_EQ(reader.next(kGoOn), "one");
  EXPECT_TRUE(reader.has_rest());
  feed.write("o\n\nfour");
  EXPECT_EQ(reader.next(kGoOn), "two");
  EXPECT_EQ(reader.next(kGoOn), "");
  feed.end();
  EXPECT_EQ(reader.next(kGoOn), "four");  // Without a newline.
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::at_end);
}

TEST(RecordReader, LongestLineIsWholeAndALongerOneEndsIt) {
  const std::string longest(300'000, 'x');  // More than it reads at once.
  for (const bool newline : {true, false}) {
    for (const std::size_t more : {0u, 1u}) {
      Feed feed;
      std::jthread writer{[&] {
        feed.write(longest);
        if (more == 1) feed.write("x");
        if (newline) feed.write("\n");
        feed.end();
      }};
      RecordReader reader{feed.fd(), longest.size()};
      const auto line = reader.next(kGoOn);
      EXPECT_EQ(line.has_value(), more == 0);
      EXPECT_EQ(line.value_or(longest), longest);
      EXPECT_EQ(reader.ended() == Ended::too_long, more == 1);
      EXPECT_EQ(reader.long_size(), more == 1 ? longest.size() + 1 : 0);
    }
  }
}

TEST(RecordReader, CountsALineFarOverTheLimitToItsEndWithoutKeepingIt) {
  for (const std::string delimiter : {"\n", "<end>"}) {
    constexpr std::size_t kLong = 5'000'000;
    Feed feed;
    std::jthread writer{[&] {
      feed.write("a" + delimiter + std::string(kLong, 'x') + delimiter + "b" + delimiter);
      feed.end();
    }};
    RecordReader reader{feed.fd(), 10, delimited_by(delimiter)};
    EXPECT_EQ(reader.next(kGoOn), "a");
    EXPECT_EQ(reader.next(kGoOn), std::nullopt);
    EXPECT_EQ(reader.ended(), Ended::too_long);
    EXPECT_EQ(reader.long_size(), kLong);
    EXPECT_EQ(reader.next(kGoOn), std::nullopt);  // It ends the reading.
  }
}

TEST(RecordReader, DelimiterMayHaveSeveralBytesAndComeInPieces) {
  Feed feed;
  RecordReader reader{feed.fd(), 100, delimited_by("--;")};
  feed.write("one--");
  std::jthread writer{[&] {
    feed.write(";-two");
    std::this_thread::sleep_for(5ms);
    feed.write("---;--");
    feed.end();
  }};
  EXPECT_EQ(reader.next(kGoOn), "one");
  EXPECT_EQ(reader.next(kGoOn), "-two-");
  EXPECT_EQ(reader.next(kGoOn), "--");  // Not a whole delimiter.
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::at_end);
}

TEST(RecordReader, ZeroByteMayBeTheDelimiter) {
  Feed feed;
  RecordReader reader{feed.fd(), 100, delimited_by(std::string(1, '\0'))};
  feed.write(std::string_view{"one\ntwo\0\0last", 13});
  feed.end();
  EXPECT_EQ(reader.next(kGoOn), "one\ntwo");
  EXPECT_EQ(reader.next(kGoOn), "");
  EXPECT_EQ(reader.next(kGoOn), "last");
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
}

std::string with_length(std::string_view text) {
  std::string whole;
  append_length(text.size(), whole);
  whole += text;
  return whole;
}

TEST(RecordReader, LengthsAreFourBytesTheLowestFirst) {
  EXPECT_EQ(with_length(std::string(0x010203, 'x')).substr(0, 4), std::string("\3\2\1\0", 4));
  EXPECT_EQ(read_length("\x04\x03\x02\xff"), 0xff020304u);
}

TEST(RecordReader, LengthsTellRecordsApartWhateverIsInThem) {
  const std::string long_one(300'000, '\n');
  Feed feed;
  std::jthread writer{[&] {
    feed.write(with_length("") + with_length("a\nb") + with_length(long_one).substr(0, 100));
    std::this_thread::sleep_for(5ms);
    feed.write(with_length(long_one).substr(100) + with_length("end"));
    feed.end();
  }};
  RecordReader reader{feed.fd(), long_one.size(), with_lengths()};
  EXPECT_EQ(reader.next(kGoOn), "");
  EXPECT_EQ(reader.next(kGoOn), "a\nb");
  EXPECT_EQ(reader.next(kGoOn), long_one);
  EXPECT_EQ(reader.next(kGoOn), "end");
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::at_end);
}

TEST(RecordReader, LengthOverTheLimitEndsItBeforeTheRecordCame) {
  Feed feed;
  RecordReader reader{feed.fd(), 10, with_lengths()};
  feed.write(with_length("12345678901").substr(0, 4));
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::too_long);
  EXPECT_EQ(reader.long_size(), 11u);
}

TEST(RecordReader, InputThatEndsInsideARecordWithALengthIsCut) {
  for (const std::size_t there : {1u, 3u, 4u, 6u}) {
    Feed feed;
    RecordReader reader{feed.fd(), 10, with_lengths()};
    feed.write(with_length("one") + with_length("two").substr(0, there));
    feed.end();
    EXPECT_EQ(reader.next(kGoOn), "one");
    EXPECT_EQ(reader.next(kGoOn), std::nullopt);
    EXPECT_EQ(reader.ended(), Ended::cut);
  }
}

TEST(RecordReader, StopsWhenAsked) {
  Feed feed;
  RecordReader reader{feed.fd(), 10};
  EXPECT_EQ(reader.next([] { return true; }), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::stopped);
}

TEST(RecordReader, TellsTheSystemsError) {
  RecordReader reader{-1, 10};
  EXPECT_EQ(reader.next(kGoOn), std::nullopt);
  EXPECT_EQ(reader.ended(), Ended::error);
  EXPECT_EQ(reader.error_number(), EBADF);
}

}  // namespace
}  // namespace leat::cli
