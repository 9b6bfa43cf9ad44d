// If this failed, whoever answers at a broker's address could send commands to the terminal of its clients' users.
#include "lightq/client/shown.hpp"

#include <gtest/gtest.h>

namespace leat::lightq {
namespace {

using namespace std::string_literals;

TEST(ClientShown, IsTextWithoutCommandsForATerminal) {
  EXPECT_EQ(shown("a b ~ ä € 𝄞"), "a b ~ ä € 𝄞");
  EXPECT_EQ(shown("a\nb\x1b[31m\x7f\0c"s), "a b [31m  c");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "  31m");  // U+009B is ESC [ in one character.
  EXPECT_EQ(shown("\xc2\xa0"), "\xc2\xa0");
}

TEST(ClientShown, WhatIsNoUtf8IsNotShown) {
  for (const std::string& bad :
       {"\x80"s, "\xff"s, "\xc3"s, "\xc0\xaf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s,
        "\xf0\x8f\xbf\xbf"s, "\xf4\x90\x80\x80"s, "\xe2\x82"s, "\xf0\x9d\x84"s})
    EXPECT_EQ(shown("a" + bad), "a" + std::string(bad.size(), ' '));
}

TEST(ClientShown, IsCutBetweenCharacters) {
  EXPECT_EQ(shown(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shown(std::string(201, 'x')), std::string(200, 'x') + "…");
  EXPECT_EQ(shown(std::string(199, 'x') + "ä"), std::string(199, 'x') + "…");
}

}  // namespace
}  // namespace leat::lightq
