// If this failed, `leat sub a --json | leat pub b --json` would change records on the way, or publish what
// nobody meant.
#include "cli/records/json_record.hpp"

#include "cli/cli.hpp"
#include "cli/records/record_format.hpp"
#include "testing.hpp"

namespace leat::cli {
namespace {

using HeaderList = std::vector<std::pair<std::string, std::string>>;

std::string why_not(std::string_view text) {
  try {
    (void)JsonRecord::parse(text);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.exit_code(), kExitUsage);
    return failure.what();
  }
  return "it was taken";
}

TEST(JsonRecord, TakesValueKeyAndHeaders) {
  const JsonRecord record =
      JsonRecord::parse(R"({"value":"a\n\u20ac","key":"k","headers":{"one":"1","two":["2","3"]}})");
  EXPECT_EQ(record.value, "a\n\u20ac");
  EXPECT_EQ(record.key, "k");
  EXPECT_EQ(record.headers, (HeaderList{{"one", "1"}, {"two", "2"}, {"two", "3"}}));
}

TEST(JsonRecord, NeedsOnlyAValue) {
  const JsonRecord record = JsonRecord::parse(R"({"value":""})");
  EXPECT_EQ(record.value, "");
  EXPECT_EQ(record.key, std::nullopt);
  EXPECT_TRUE(record.headers.empty());
}

TEST(JsonRecord, DecodesBase64) {
  for (const auto& [encoded, bytes] : {std::pair<std::string, std::string>{"", ""},
                                       {"/w==", "\xff"},
                                       {"wIA=", "\xc0\x80"},
                                       {"YeKC", "a\xe2\x82"},
                                       {"AAECAwQ=", std::string("\0\1\2\3\4", 5)}}) {
    EXPECT_EQ(JsonRecord::parse(R"({"value_base64":")" + encoded + "\"}").value, bytes) << encoded;
  }
  const JsonRecord record = JsonRecord::parse(
      R"({"value":"v","key_base64":"/w==","headers_base64":{"h":["/w==","wIA="]}})");
  EXPECT_EQ(record.key, "\xff");
  EXPECT_EQ(record.headers, (HeaderList{{"h", "\xff"}, {"h", "\xc0\x80"}}));
}

TEST(JsonRecord, IgnoresWhatARecordIsGivenWhenItIsPublished) {
  EXPECT_EQ(
      JsonRecord::parse(R"({"topic":"t","offset":1,"partition":2,"timestamp_ms":3,"value":"v"})")
          .value,
      "v");
}

TEST(JsonRecord, ReadsWhatSubWrites) {
  std::mt19937_64 random{test_seed()};
  for (int round = 0; round < 200; ++round) {
    std::string value(random() % 20, ' ');
    for (char& c : value) c = static_cast<char>(random());
    const std::string key = value.substr(value.size() / 2);
    Record record;
    record.value = Bytes{value};
    record.has_key = true;
    record.key = Bytes{key};
    std::string line;
    append_json(record, "news", line);
    const JsonRecord read = JsonRecord::parse(line);
    ASSERT_EQ(read.value, value);
    ASSERT_EQ(read.key, key);
  }
}

TEST(JsonRecord, SaysWhatIsWrong) {
  for (const char* text : {"", "hello", "[]", "\"text\"", "{\"value\":\"x\"", "{} {}"})
    EXPECT_NE(why_not(text).find("no JSON object"), std::string::npos) << text;
  EXPECT_NE(why_not("{}").find("no \"value\""), std::string::npos);
  EXPECT_NE(why_not(R"({"value":1})").find("no string"), std::string::npos);
  EXPECT_NE(why_not(R"({"value":"x","value_base64":""})").find("both"), std::string::npos);
  EXPECT_NE(why_not(R"({"vlaue":"x"})").find("did you mean 'value'?"), std::string::npos);
  EXPECT_NE(why_not(R"({"value":"x","headers":"h"})").find("no object"), std::string::npos);
  EXPECT_NE(why_not(R"({"value":"x","headers":{"h":1}})").find("no string"), std::string::npos);
  EXPECT_NE(why_not(R"({"value":"x","headers":{"":"1"}})").find("empty name"), std::string::npos);
  for (const char* wrong : {"A", "AAA", "A===", "AA=A", "!!!!", "====", "AAAAA==="}) {
    EXPECT_NE(why_not(std::string{R"({"value_base64":")"} + wrong + "\"}").find("not base64"),
              std::string::npos)
        << wrong;
  }
}

}  // namespace
}  // namespace leat::cli
