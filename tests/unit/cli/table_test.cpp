// If this failed, what `leat topic list` and `leat top` show would not stand below its heading.
#include "cli/table.hpp"

#include "testing.hpp"

namespace leat::cli {
namespace {

TEST(Table, ColumnsAreAsWideAsTheyNeedToBe) {
  Table table{{"NAME", Align::left}, {"RECORDS", Align::right}, {"WHO", Align::left}};
  table.add({"a", "1", "x"});
  table.add({"long-name", "12,345,678", ""});
  EXPECT_EQ(table.text(),
            "NAME          RECORDS  WHO\n"
            "a                   1  x\n"
            "long-name  12,345,678\n");
}

TEST(Table, LastCellOfAShortRowCountsForNoWidth) {
  Table table{{"NAME", Align::left}, {"POLICY", Align::left}, {"RECORDS", Align::right}};
  table.add({"a", "this is not a topic of this version"});
  table.add({"b", "block", "1"});
  EXPECT_EQ(table.text(),
            "NAME  POLICY  RECORDS\n"
            "a     this is not a topic of this version\n"
            "b     block         1\n");
}

TEST(Table, WithoutRowsHasItsHeads) {
  const Table table{{"NAME", Align::left}};
  EXPECT_EQ(table.text(), "NAME\n");
}

}  // namespace
}  // namespace leat::cli
