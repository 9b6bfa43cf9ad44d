// If these failed, clients with raw framing would get other messages than were sent, or could not log in.
#include "lightq/server/raw_frame.hpp"

#include <gtest/gtest.h>

namespace leat::broker::raw {
namespace {

TEST(RawFrame, IsTheLengthInLittleEndianOrderAndThePayload) {
  std::string out;
  append_frame(out, Bytes{"hello"});
  append_frame(out, Bytes{});
  append_frame(out, Bytes{std::string(0x010203, 'x')});
  using namespace std::string_literals;
  EXPECT_EQ(out.substr(0, 17), "\5\0\0\0hello\0\0\0\0\3\2\1\0"s);
  EXPECT_EQ(out.size(), 17u + 0x010203);
}

TEST(RawFrame, IsReadAsItWasWritten) {
  std::string bytes;
  for (const std::size_t size : {0u, 1u, 255u, 256u, 70'000u}) {
    bytes.clear();
    const std::string payload(size, 'p');
    append_frame(bytes, Bytes{payload});
    const Frame whole = front_frame(Bytes{bytes});
    EXPECT_EQ(whole.needed, 0u);
    EXPECT_EQ(whole.length, size);
    EXPECT_EQ(whole.payload.text(), payload);
    bytes += "more";
    EXPECT_EQ(front_frame(Bytes{bytes}).payload.text(), payload);
  }
}

TEST(RawFrame, SaysWhatItNeeds) {
  std::string bytes;
  append_frame(bytes, Bytes{"hello"});
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Frame frame = front_frame(Bytes{bytes}.subspan(0, size));
    EXPECT_EQ(frame.needed, size < kLengthBytes ? kLengthBytes : bytes.size()) << size;
    EXPECT_EQ(frame.length, size < kLengthBytes ? 0u : 5u);
  }
  const Frame largest = front_frame(Bytes{"\xff\xff\xff\xff"});
  EXPECT_EQ(largest.length, 0xFFFFFFFFu);
  EXPECT_EQ(largest.needed, 0xFFFFFFFFu + kLengthBytes);
}

TEST(RawFrame, CountsAreEightBytes) {
  std::string out;
  append_number(out, std::uint64_t{0x0102030405060708});
  EXPECT_EQ(out, "\x08\x07\x06\x05\x04\x03\x02\x01");
  EXPECT_EQ(little_endian<std::uint64_t>(Bytes{out}.data()), 0x0102030405060708u);
}

TEST(RawHello, TellsTheRole) {
  const auto producer = parse_hello(R"({"type": "pub", "token": "abc"})");
  ASSERT_TRUE(producer);
  EXPECT_EQ(producer->role, Role::producer);
  EXPECT_EQ(producer->token, "abc");
  const auto puller = parse_hello(R"({"type": "pull", "acknowledge": true, "other": [1]})");
  ASSERT_TRUE(puller);
  EXPECT_EQ(puller->role, Role::puller);
  EXPECT_TRUE(puller->acknowledges);
  EXPECT_EQ(puller->token, "");
  const auto subscriber = parse_hello(R"({"type": "sub", "acknowledge": false, "token": 5})");
  ASSERT_TRUE(subscriber);
  EXPECT_EQ(subscriber->role, Role::subscriber);
  EXPECT_FALSE(subscriber->acknowledges);
  EXPECT_EQ(subscriber->token, "");
}

TEST(RawHello, WhatIsNoneIsRefusedWithASentence) {
  for (const char* const text :
       {"", "hello", "[]", "{", "{}", R"({"type": "push"})", R"({"type": 1})", "\xff\xff",
        R"({"type": "pub", "acknowledge": true})", R"({"type": "sub", "acknowledge": true})"}) {
    const auto hello = parse_hello(text);
    ASSERT_FALSE(hello) << text;
    EXPECT_EQ(hello.problem().code, Errc::invalid_argument);
    EXPECT_FALSE(hello.problem().sentence.empty());
  }
}

}  // namespace
}  // namespace leat::broker::raw
