// If this failed, a client would crash, hang, or believe what it likes when a broker, or whoever is at its port, answers
// nonsense.
#include "lightq/client/admin.hpp"

#include <nlohmann/json.hpp>

#include "fake_broker.hpp"

namespace leat::lightq {
namespace {

using Json = nlohmann::json;
using namespace std::string_literals;

struct ClientAdmin : ::testing::Test {
  FakeBroker broker;
  Admin admin{broker.connection()};

  Errc ask() { return code_of(admin.ask({{"cmd", "x"}}, kSoon)); }
};

TEST_F(ClientAdmin, SendsJsonBehindItsLength) {
  broker.answer(R"({"status":"ok","value":7})");
  EXPECT_EQ(must(admin.ask({{"cmd", "x"}}, kPatient))["value"], 7);
  EXPECT_EQ(broker.heard(), "\0\0\0\x0b{\"cmd\":\"x\"}"s);
}

TEST_F(ClientAdmin, AnswersComeInAnyPieces) {
  broker.answer(R"({"status":"ok","first":1})");
  broker.answer(R"({"status":"ok","first":2})");
  EXPECT_EQ(must(admin.ask({{"cmd", "x"}}, kPatient))["first"], 1);
  EXPECT_EQ(must(admin.ask({{"cmd", "x"}}, kPatient))["first"], 2);
  broker.say("\0\0"s);
  EXPECT_EQ(ask(), Errc::timeout);
}

TEST_F(ClientAdmin, LongAnswerIsTakenWhole) {
  const std::string text(100'000, 'a');
  broker.answer(Json{{"status", "ok"}, {"text", text}}.dump());
  EXPECT_EQ(must(admin.ask({{"cmd", "x"}}, kPatient))["text"], text);
}

TEST_F(ClientAdmin, RefusalsHaveCodes) {
  const std::pair<const char*, Errc> refusals[] = {
      {"unauthorized_access", Errc::permission},
      {"topic not found", Errc::not_found},
      {"topic already exists", Errc::exists},
      {"too many attempts", Errc::busy},
      {"invalid_cmd", Errc::unsupported},
      {"anything else", Errc::invalid_argument},
      {"too many logins at once, try again", Errc::busy}};
  for (const auto& [text, code] : refusals) {
    broker.answer(Json{{"status", "error"}, {"description", text}}.dump());
    EXPECT_EQ(ask(), code) << text;
  }
}

TEST_F(ClientAdmin, MissingRightIsNamed) {
  const auto says = [&](const Json& command, const Json& more, const std::string& end) {
    Json answer{{"status", "error"}, {"description", "unauthorized_access"}};
    answer.update(more);
    broker.answer(answer.dump());
    const std::string sentence = sentence_of(admin.ask(command, kPatient));
    EXPECT_TRUE(sentence.ends_with(end)) << sentence;
  };
  const Json join{{"cmd", "join"}, {"topic", "news"}, {"user_id", "ann"}};
  says(join, {{"missing_right", "write"}},
       ": user 'ann' has no right to write topic 'news'; the administrator can grant it");
  for (const Json& right : {Json{7}, Json{"\x1b"}, Json{nullptr}})
    says(join, {{"missing_right", right}}, ": user or password is wrong");
  says({{"cmd", "list_topics"}, {"admin_user_id", "ann"}}, Json::object(),
       ": user or password is wrong; only the administrator may do this");
}

TEST_F(ClientAdmin, RefusalIsOneShortLine) {
  broker.answer(
      Json{{"status", "error"}, {"description", "a\nb\x1b[31m" + std::string(9999, 'x')}}.dump());
  const std::string sentence = sentence_of(admin.ask({{"cmd", "x"}}, kPatient));
  EXPECT_LT(sentence.size(), 400u);
  EXPECT_EQ(sentence.find_first_of("\n\x1b"), sentence.npos);
}

TEST(ClientAdminNonsense, IsNoAnswer) {
  for (const char* text : {"", "null", "[]", "{}", "{", "pong", "{\"status\":7}",
                           "{\"status\":\"\"}", "\xff\xff\xff", "[[[[[[[[[["}) {
    FakeBroker broker;
    Admin admin{broker.connection()};
    broker.answer(text);
    EXPECT_EQ(code_of(admin.ask({{"cmd", "x"}}, kPatient)), Errc::corrupt) << text;
  }
}

TEST(ClientAdminNonsense, LengthThatNobodyMeansTakesNoMemory) {
  for (const std::string& bytes : {"\xff\xff\xff\xff"s, "HTTP/1.1 400 Bad Request\r\n\r\n"s}) {
    FakeBroker broker;
    Admin admin{broker.connection()};
    broker.say(bytes);
    EXPECT_EQ(code_of(admin.ask({{"cmd", "x"}}, kPatient)), Errc::corrupt);
  }
}

TEST_F(ClientAdmin, BrokerThatLeavesIsSaid) {
  broker.say("\0\0\0\x20{"s);
  broker.leave();
  EXPECT_EQ(ask(), Errc::closed);
  EXPECT_EQ(ask(), Errc::closed);
}

TEST_F(ClientAdmin, SilentBrokerIsSaid) { EXPECT_EQ(ask(), Errc::timeout); }

TEST_F(ClientAdmin, PingWantsPong) {
  broker.answer("pong");
  EXPECT_EQ(code_of(admin.ping(kPatient)), Errc::ok);
  broker.answer("ping");
  EXPECT_EQ(code_of(admin.ping(kPatient)), Errc::corrupt);
}

TEST_F(ClientAdmin, WhatIsNoUtf8IsNotSent) {
  EXPECT_EQ(code_of(admin.stats("t", {"ann", "\xff"}, kPatient)), Errc::invalid_argument);
  EXPECT_EQ(broker.heard(), "");
}

TEST_F(ClientAdmin, JoinBringsPlaceAndToken) {
  broker.answer(R"({"status":"ok","bind_uri":"tcp://127.0.0.1:5503","token":"T","topic":"x"})");
  const Joined joined = must(admin.join("news", {"ann", "p"}, Role::subscriber, kPatient));
  EXPECT_EQ(joined.data.text(), "127.0.0.1:5503");
  EXPECT_EQ(joined.token, "T");
  EXPECT_EQ(joined.topic, "news");
  const std::string heard = broker.heard();
  EXPECT_EQ(Json::parse(heard.substr(4)), (Json{{"cmd", "join"},
                                                {"topic", "news"},
                                                {"user_id", "ann"},
                                                {"password", "p"},
                                                {"type", "sub"},
                                                {"connection_type", "socket"},
                                                {"leat", 1}}));
}

TEST_F(ClientAdmin, JoinWithoutTokenOrPlaceIsRefused) {
  const auto join = [&] {
    return code_of(admin.join("news", {"ann", "p"}, Role::puller, kPatient));
  };
  broker.answer(R"({"status":"ok","bind_uri":"tcp://127.0.0.1:5503"})");
  EXPECT_EQ(join(), Errc::unsupported);
  broker.answer(R"({"status":"ok","token":"T"})");
  EXPECT_EQ(join(), Errc::invalid_argument);
  broker.answer(R"({"status":"ok","token":"T","bind_uri":"tcp://*:5503"})");
  EXPECT_EQ(join(), Errc::invalid_argument);
}

TEST_F(ClientAdmin, JsonThatIsTooDeepIsRefused) {
  for (const std::size_t depth : {std::size_t{30}, std::size_t{33}, std::size_t{50'000}}) {
    broker.answer(R"({"status":"ok","topics":)" + std::string(depth, '[') +
                  std::string(depth, ']') + "}");
    EXPECT_EQ(code_of(admin.ask({{"cmd", "list_topics"}}, kPatient)),
              depth == 30 ? Errc::ok : Errc::corrupt)
        << depth;
  }
}

TEST_F(ClientAdmin, StatsThatAreNoNumbersAreZero) {
  broker.answer(R"({"status":"ok","topic":"t","queue_size":7,"messages_sent":-1,
                    "messages_received":"x","publishers_count":1e300})");
  const Stats stats = must(admin.stats("t", {}, kPatient));
  EXPECT_EQ(stats.topic, "t");
  EXPECT_EQ(stats.queue_size, 7u);
  EXPECT_EQ(stats.messages_sent + stats.messages_received + stats.publishers_count, 0u);
}

TEST(ClientConnection, NobodyListensIsSaid) {
  EXPECT_EQ(code_of(Admin::open({"127.0.0.1", 1}, kPatient)), Errc::not_found);
  EXPECT_EQ(code_of(Admin::open({"no-such-host.invalid", 1}, kPatient)), Errc::not_found);
}

TEST(ClientConnection, StopEndsAWait) {
  FakeBroker broker;
  Admin admin{broker.connection()};
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(code_of(admin.ping({Deadline::never(), stop.get_token()})), Errc::stopped);
}

}  // namespace
}  // namespace leat::lightq
