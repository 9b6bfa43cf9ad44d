// If this failed, help would break words in two, and a screen drawn in place would run over its edge.
#include "tool/terminal.hpp"
#include "testing.hpp"

namespace leat::tool {
namespace {

TEST(Wrapped, BreaksBetweenWordsOnly) {
  EXPECT_EQ(wrapped("one two three", 80), "one two three");
  EXPECT_EQ(wrapped("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrapped("one two three", 6), "one\ntwo\nthree");
  EXPECT_EQ(wrapped("a unbreakable b", 4), "a\nunbreakable\nb");
}

TEST(Wrapped, LinesAfterTheFirstAreIndented) {
  EXPECT_EQ(wrapped("one two three", 11, 4), "one two\n    three");
}

TEST(Wrapped, KeepsLinesApartAndExamplesWhole) {
  EXPECT_EQ(wrapped("Example:\n  leat sub news --exit\nThat was it", 10),
            "Example:\n  leat sub news --exit\nThat was\nit");
}

TEST(Wrapped, CountsCharactersNotBytes) { EXPECT_EQ(wrapped("ää ää", 5), "ää ää"); }

TEST(ColumnsOf, CountsCharactersAndNoColours) {
  EXPECT_EQ(columns_of(""), 0u);
  EXPECT_EQ(columns_of("abc"), 3u);
  EXPECT_EQ(columns_of("aä€"), 3u);
  EXPECT_EQ(columns_of("\033[31myes\033[0m"), 3u);
}

TEST(Clipped, KeepsColoursAndWholeCharacters) {
  EXPECT_EQ(clipped("abcdef", 10), "abcdef");
  EXPECT_EQ(clipped("abcdef", 3), "abc");
  EXPECT_EQ(clipped("ä€b", 2), "ä€");
  EXPECT_EQ(clipped("ä€b", 1), "ä");
  EXPECT_EQ(clipped("\033[31mabc\033[0m", 2), "\033[31mab\033[0m");
  EXPECT_EQ(clipped("abc", 0), "");
}

TEST(WithoutControls, LeavesNothingThatATerminalObeys) {
  EXPECT_EQ(without_controls("name ä€"), "name ä€");
  EXPECT_EQ(without_controls("a\033[31mb\nc\177"), "a?[31mb?c?");
  EXPECT_EQ(without_controls("a\xc2\x9b"
                             "31m\xc2\x80\xc2\xa0"),
            "a?31m?\xc2\xa0");
  EXPECT_EQ(without_controls("\xc2"), "\xc2");
  EXPECT_EQ(without_controls(""), "");
}

}  // namespace
}  // namespace leat::tool
