// If this failed, `leat sub -f` or `--json` would not print what was published.
#include "cli/records/record_format.hpp"

#include "cli/cli.hpp"
#include "testing.hpp"

namespace leat::cli {
namespace {

std::string formatted(std::string_view format, const Record& record) {
  std::string text;
  RecordFormat::parse(format).append(record, "news", text);
  return text;
}
std::string as_json(const Record& record, std::string_view topic = {}) {
  std::string text;
  append_json(record, topic, text);
  return text;
}

Record some_record() {
  Record record;
  record.offset = 7;
  record.partition = 2;
  record.value = Bytes{"hello"};
  return record;
}

TEST(RecordFormat, FieldsAreThoseOfKcat) {
  Record record = some_record();
  record.has_key = true;
  record.key = Bytes{"k"};
  record.timestamp_ms = 99;
  EXPECT_EQ(formatted("%t %p %o %k %s %T\\n", record), "news 2 7 k hello 99\n");
  EXPECT_EQ(formatted("%v %S %K", record), "hello 5 1");
  EXPECT_EQ(formatted("100%%\\t%s", record), "100%\thello");
  EXPECT_EQ(formatted("", record), "");
}

TEST(RecordFormat, WhatMeansNothingIsRefused) {
  EXPECT_THROW(RecordFormat::parse("%q"), Failure);
  EXPECT_THROW(RecordFormat::parse("%"), Failure);
  EXPECT_THROW(RecordFormat::parse("\\q"), Failure);
}

TEST(Unescape, KnowsTheUsualEscapesAndNoOthers) {
  EXPECT_EQ(unescape("a\\n\\t\\r\\\\\\x41%", "-D"), "a\n\t\r\\A%");
  EXPECT_EQ(unescape("\\0", "-D"), std::string(1, '\0'));
  EXPECT_EQ(unescape("", "-D"), "");
  for (const char* wrong : {"\\", "\\q", "\\x4", "\\xzz"})
    EXPECT_THROW((void)unescape(wrong, "-D"), Failure) << wrong;
}

TEST(RecordJson, HasOnlyWhatIsThere) {
  EXPECT_EQ(as_json(some_record()), R"({"offset":7,"partition":2,"value":"hello"})"
                                    "\n");
}

TEST(RecordJson, NamesTheTopicIfAsked) {
  EXPECT_EQ(as_json(some_record(), "news"),
            R"({"topic":"news","offset":7,"partition":2,"value":"hello"})"
            "\n");
}

TEST(RecordJson, WhatIsNotUtf8IsBase64) {
  Record record = some_record();
  for (const auto& [bytes, base64] : {std::pair{"\xff", "/w=="},
                                      {"\xc0\x80", "wIA="},
                                      {"\xed\xa0\x80", "7aCA"},
                                      {"a\xe2\x82", "YeKC"}}) {
    record.value = Bytes{bytes};
    EXPECT_EQ(as_json(record),
              std::string{R"({"offset":7,"partition":2,"value_base64":")"} + base64 + "\"}\n");
  }
  record.value = Bytes{"\"\\\n\x01\u20ac"};
  EXPECT_EQ(as_json(record), R"({"offset":7,"partition":2,"value":"\"\\\n\u0001)"
                             "\u20ac\"}\n");
}

}  // namespace
}  // namespace leat::cli
