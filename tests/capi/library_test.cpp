// If these tests failed, programs would misunderstand errors, or run with a library that is too old.
#include <fstream>

#include "capi.hpp"
#include "leat/leat.hpp"

using namespace leat_capi_test;

namespace {

struct Row {
  std::int32_t number;
  std::string name;
  std::string sentence;
};

std::vector<Row> listed_errors() {
  std::ifstream file{LEAT_SOURCE_DIR "/spec/errors.csv"};
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    const std::size_t one = line.find(',');
    const std::size_t two = line.find(',', one + 1);
    std::string sentence = line.substr(two + 1);
    if (sentence.starts_with('"')) sentence = sentence.substr(1, sentence.size() - 2);
    rows.push_back({std::stoi(line), line.substr(one + 1, two - one - 1), sentence});
  }
  return rows;
}

std::string description(std::int32_t code, std::int32_t detail) {
  char text[LEAT_DESCRIPTION_SIZE];
  must(leat_describe(code, detail, text, sizeof(text)));
  return text;
}

}  // namespace

TEST(CapiErrors, AreThoseOfTheList) {
  const auto rows = listed_errors();
  ASSERT_GT(rows.size(), 30U);
  for (const Row& row : rows) {
    EXPECT_EQ(leat_error_name(row.number), row.name);
    // The C++ library has the same sentences, here in a copy of its own.
    EXPECT_EQ(leat::describe({static_cast<leat::Errc>(row.number), 0}).find(row.sentence), 0U)
        << row.name;
    EXPECT_EQ(description(row.number, 0), leat::describe({static_cast<leat::Errc>(row.number), 0}));
    EXPECT_EQ(description(row.number, 5), leat::describe({static_cast<leat::Errc>(row.number), 5}));
  }
  EXPECT_STREQ(leat_error_name(static_cast<std::int32_t>(rows.size())), "unknown");
  EXPECT_EQ(description(static_cast<std::int32_t>(rows.size()), 0), "unknown error");
}

TEST(CapiErrors, OfNoCode) {
  EXPECT_STREQ(leat_error_name(-1), "unknown");
  EXPECT_STREQ(leat_error_name(INT32_MIN), "unknown");
  EXPECT_STREQ(leat_error_name(INT32_MAX), "unknown");
  EXPECT_EQ(description(-1, -1).find("unknown error"), 0U);
}

TEST(CapiErrors, SentenceIsCutWhereTheBufferEnds) {
  char text[8] = "xxxxxxx";
  EXPECT_EQ(leat_describe(LEAT_ERR_TIMEOUT, 0, text, sizeof(text)), LEAT_ERR_BUFFER_TOO_SMALL);
  EXPECT_STREQ(text, "the dea");
  EXPECT_EQ(leat_describe(LEAT_ERR_TIMEOUT, 0, text, 1), LEAT_ERR_BUFFER_TOO_SMALL);
  EXPECT_STREQ(text, "");
  EXPECT_EQ(leat_describe(LEAT_ERR_TIMEOUT, 0, text, 0), LEAT_ERR_INVALID_ARGUMENT);
  EXPECT_EQ(leat_describe(LEAT_ERR_TIMEOUT, 0, nullptr, 8), LEAT_ERR_INVALID_ARGUMENT);
}

TEST(CapiErrors, GapReasonsHaveNames) {
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_ABORTED), "aborted");
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_DIED), "died");
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_REVOKED), "revoked");
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_OVERWRITTEN), "overwritten");
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_DAMAGED), "damaged");
  EXPECT_STREQ(leat_gap_reason_name(LEAT_GAP_LOST), "lost");
  EXPECT_STREQ(leat_gap_reason_name(0), "unknown");
  EXPECT_STREQ(leat_gap_reason_name(257), "unknown");
}

TEST(CapiLibrary, RefusesAHeaderThatIsNewer) {
  EXPECT_EQ(leat_abi_check(LEAT_ABI_VERSION), LEAT_OK);
  EXPECT_EQ(leat_abi_check(1), LEAT_OK);
  EXPECT_EQ(leat_abi_check(LEAT_ABI_VERSION + 1), LEAT_ERR_UNSUPPORTED);
  EXPECT_EQ(leat_abi_version(), std::uint32_t{LEAT_ABI_VERSION});
  EXPECT_EQ(std::string{leat_version()}.find("0."), 0U);
}

TEST(CapiLibrary, ConstantsAreThoseOfCpp) {
  EXPECT_EQ(LEAT_POLICY_GROW, static_cast<int>(leat::Policy::grow));
  EXPECT_EQ(LEAT_POLICY_OVERWRITE, static_cast<int>(leat::Policy::overwrite));
  EXPECT_EQ(LEAT_DURABILITY_FSYNC, static_cast<int>(leat::Durability::fsync));
  EXPECT_EQ(LEAT_DURABILITY_INTERVAL, static_cast<int>(leat::Durability::interval));
  EXPECT_EQ(LEAT_GROUP_AT_MOST_ONCE, static_cast<int>(leat::GroupMode::at_most_once));
  EXPECT_EQ(LEAT_EXPIRED_END, static_cast<int>(leat::OnExpired::end));
  EXPECT_EQ(LEAT_EXPIRED_STOP, static_cast<int>(leat::OnExpired::stop));
  const leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT;
  const leat::TopicOptions defaults;
  EXPECT_EQ(options.mode, defaults.mode);
  EXPECT_EQ(options.participants, defaults.participants);
  EXPECT_EQ(options.file_bytes, defaults.file_bytes);
  const leat_group_options group = LEAT_GROUP_OPTIONS_INIT;
  EXPECT_EQ(group.members, leat::GroupOptions{}.members);
  EXPECT_EQ(group.in_flight, leat::GroupOptions{}.in_flight);
  const leat_subscriber_options subscriber = LEAT_SUBSCRIBER_OPTIONS_INIT;
  EXPECT_EQ(subscriber.spin_ns, leat::SubscriberOptions{}.spin.count());
  EXPECT_EQ(subscriber.patience_ns, leat::SubscriberOptions{}.patience.count());
}

// The layout of what other languages write without a C compiler.
TEST(CapiLibrary, StructsHaveNoHoles) {
  EXPECT_EQ(sizeof(leat_record), 32U);
  EXPECT_EQ(sizeof(leat_delivery), 64U);
  EXPECT_EQ(sizeof(leat_new_record), 48U);
  EXPECT_EQ(sizeof(leat_claim), 32U);
  EXPECT_EQ(sizeof(leat_topic_options), 168U);
  EXPECT_EQ(sizeof(leat_place), 48U);
  EXPECT_EQ(sizeof(leat_publisher_options), 24U);
  EXPECT_EQ(sizeof(leat_subscriber_options), 56U);
  EXPECT_EQ(sizeof(leat_group_options), 48U);
  EXPECT_EQ(sizeof(leat_member_options), 48U);
  EXPECT_EQ(sizeof(leat_topic_info), 200U);
  EXPECT_EQ(sizeof(leat_partition_info), 48U);
  EXPECT_EQ(sizeof(leat_participant_info), 32U);
  EXPECT_EQ(sizeof(leat_group_info), 96U);
  EXPECT_EQ(sizeof(leat_member_info), 80U);
  EXPECT_EQ(sizeof(leat_room_holder), 224U);
}
