// If this failed, a client could make its own token, or one of another topic, user or role would open a port.
#include "broker/auth/tokens.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace leat::broker {
namespace {

TokenSecret secret(unsigned char byte) {
  TokenSecret bytes;
  bytes.fill(byte);
  return bytes;
}

const TokenClaim kClaim{
    .topic_id = 7, .user = "alice", .role = Access::read, .verifier_version = 3};

TEST(Tokens, SayWhatTheyAreFor) {
  const Tokens tokens{secret(1)};
  for (const TokenClaim& claim :
       {kClaim, TokenClaim{-1, "", Access::write, INT64_MIN},
        TokenClaim{INT64_MAX, std::string(Tokens::kMaxUser, '\xff'), Access::read, 0},
        TokenClaim{1, std::string{"\0 \n\"", 4}, Access::write, 1}}) {
    const std::string text = tokens.make(claim);
    EXPECT_LE(text.size(), Tokens::kMaxText);
    EXPECT_EQ(text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789.-_"),
              std::string::npos);
    const auto again = tokens.read(text);
    ASSERT_TRUE(again) << again.problem().sentence;
    EXPECT_EQ(*again, claim);
  }
}

TEST(Tokens, AreAnotherForEachTopicUserRoleAndVersion) {
  const Tokens tokens{secret(1)};
  const std::string text = tokens.make(kClaim);
  EXPECT_NE(text, tokens.make({8, "alice", Access::read, 3}));
  EXPECT_NE(text, tokens.make({7, "alicf", Access::read, 3}));
  EXPECT_NE(text, tokens.make({7, "alice", Access::write, 3}));
  EXPECT_NE(text, tokens.make({7, "alice", Access::read, 4}));
}

TEST(Tokens, SurviveARestartWithTheSameSecret) {
  const std::string text = Tokens{secret(1)}.make(kClaim);
  EXPECT_TRUE(Tokens{secret(1)}.read(text));
  EXPECT_EQ(Tokens{secret(2)}.read(text).problem().code, Errc::permission);
}

// A token stays readable wherever the format stays: clients keep them.
TEST(Tokens, KeepTheirFormat) {
  EXPECT_EQ(Tokens{secret(1)}.make(kClaim),
            "leat1.AAAAAAAAAAcAAAAAAAAAAwFhbGljZVDiwk71CovRxh"
            "lsRS0kuAJh21RYjgAv5QIMg0k_mNmS");
}

TEST(Tokens, EveryChangedBitIsFound) {
  const Tokens tokens{secret(1)};
  const std::string text = tokens.make(kClaim);
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = text;
      changed[i] = static_cast<char>(changed[i] ^ 1 << bit);
      EXPECT_FALSE(tokens.read(changed)) << changed;
    }
    EXPECT_FALSE(tokens.read(text.substr(0, i)));
    EXPECT_FALSE(tokens.read(text.substr(i + 1)));
  }
  for (const char* more : {"A", "=", " ", "\n", "AAAA"}) EXPECT_FALSE(tokens.read(text + more));
}

TEST(Tokens, WhatIsNoTokenIsRefused) {
  const Tokens tokens{secret(1)};
  for (const std::string& text :
       {std::string{}, std::string{"leat1."}, std::string{"leat1.A"}, std::string{"leat1.AAAA"},
        std::string{"leat2."}, std::string(Tokens::kMaxText + 1, 'A'),
        "leat1." + std::string(Tokens::kMaxText - 6, 'A'), "leat1." + std::string(1'000'000, 'A'),
        std::string{"leat1.\0\0\0\0", 10}}) {
    const auto read = tokens.read(text);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.problem().code, Errc::invalid_argument);
    EXPECT_EQ(read.problem().sentence, "this is not a token");
  }
  std::mt19937 random{20261125};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = "leat1.";
    for (auto left = random() % 600; left > 0; --left)
      text += "abcXYZ019-_=\n"[random() % (round % 2 == 0 ? 11 : 13)];
    EXPECT_FALSE(tokens.read(text));
  }
}

}  // namespace
}  // namespace leat::broker
