// If this failed, a client would connect to somebody else than was meant, or show a password.
#include "lightq/client/address.hpp"

#include "fake_broker.hpp"

namespace leat::lightq {
namespace {

TEST(ClientAddress, OfLightqIsHostAndPort) {
  const Address address = must(parse_tcp_uri("tcp://127.0.0.1:5504"));
  EXPECT_EQ(address.host, "127.0.0.1");
  EXPECT_EQ(address.port, 5504);
  EXPECT_EQ(address.text(), "127.0.0.1:5504");
  EXPECT_TRUE(address.is_127_0_0_1());
  EXPECT_EQ(must(parse_tcp_uri("tcp://[::1]:1")).text(), "[::1]:1");
  EXPECT_FALSE(must(parse_tcp_uri("tcp://127.0.0.1.example.org:5500")).is_127_0_0_1());
}

TEST(ClientAddress, AnythingElseIsRefused) {
  for (const char* uri :
       {"", "tcp://", "tcp://a", "tcp://a:", "tcp://a:0", "tcp://a:65536", "tcp://a:5x", "tcp://:1",
        "tcp://a b:1", "tcp://*:5500", "tcp://[::1:5500", "tcp://::1:5500", "ipc://*:5500",
        "127.0.0.1:5500", "tcp://a:1/", "tcp://ann@a:1", "tcp://a:-1"}) {
    EXPECT_EQ(code_of(parse_tcp_uri(uri)), Errc::invalid_argument) << uri;
  }
  EXPECT_EQ(code_of(parse_tcp_uri("tcp://" + std::string(100'000, 'a') + ":1")),
            Errc::invalid_argument);
}

TEST(ClientAddress, OfABrokerHasAUser) {
  const BrokerUri broker = must(parse_broker_uri("lightq://ann@broker.example.org:5600"));
  EXPECT_EQ(broker.user, "ann");
  EXPECT_EQ(broker.address.text(), "broker.example.org:5600");
  EXPECT_EQ(must(parse_broker_uri("lightq://127.0.0.1/")).address.port, kAdminPort);
  EXPECT_EQ(must(parse_broker_uri("lightq://a@b@[::1]")).user, "a@b");
}

TEST(ClientAddress, PasswordInItIsRefusedAndNotShown) {
  for (const char* uri : {"lightq://ann:secret@host", "http://ann:secret@host", "ann:secret@host",
                          "lightq://secret@", "lightq://ann:secret", "ann:secret",
                          "lightq://ann:se@cret@host:x", "lightq://ann:secret/@:1"}) {
    const std::string sentence = sentence_of(parse_broker_uri(uri));
    EXPECT_NE(sentence, "") << uri;
    EXPECT_EQ(sentence.find("secret"), sentence.npos) << sentence;
  }
}

TEST(ClientAddress, WrongOneIsNamed) {
  const std::pair<const char*, const char*> kWrong[] = {
      {"tcp://a:1", "'tcp://a:1' is not"},
      {"lightq://ann@host:70000", "'…@host:70000' is not"},
      {"127.0.0.1", "'127.0.0.1' is not"},
      {"lightq://ann@host:x", "'…@host:…' is not"},
      {"lightq://ann:123456", "'lightq://ann:…' is not"}};
  for (const auto& [uri, begin] : kWrong)
    EXPECT_TRUE(sentence_of(parse_broker_uri(uri)).starts_with(begin)) << uri;
}

}  // namespace
}  // namespace leat::lightq
