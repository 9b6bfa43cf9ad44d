// If this failed, LightQ's clients would be sent to a place where nobody listens, or in the clear through a network where nobody
// expects it.
#include "lightq/server/settings.hpp"

#include <gtest/gtest.h>

#include <string>

#include "broker/config/config_file.hpp"
#include "serve/protocols.hpp"

namespace leat::broker::lightq {
namespace {

Outcome<Config> read(std::vector<std::pair<std::string, std::string>> flags) {
  return read_config({.flags = std::move(flags)}, keys_of(all_protocols()));
}

TEST(LightqSettings, HaveDefaults) {
  const auto config = read({});
  ASSERT_TRUE(config);
  const auto& settings = config->of<Settings>();
  EXPECT_EQ(settings.port, 5500u);
  EXPECT_EQ(settings.addresses, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(settings.all_data_ports(), (PortRange{5501, 8999}));
}

TEST(LightqSettings, WhatClientsAreToldIsAHost) {
  for (const char* const right : {"", "broker.example.org", "10.0.0.1", "[::1]"})
    EXPECT_TRUE(read({{"lightq.advertise", right}})) << right;
  for (const char* const wrong : {"foo bar", "tcp://x", "a/b"})
    EXPECT_FALSE(read({{"lightq.advertise", wrong}})) << wrong;
}

TEST(LightqSettings, PortsMustNotMeet) {
  EXPECT_EQ(read({{"lightq.data_ports", "5000-6000"}}).problem().sentence,
            "lightq.data_ports: 5000-6000 contains lightq.port, 5500");
  EXPECT_FALSE(read({{"lightq.port", "65535"}}));
  EXPECT_TRUE(read({{"lightq.port", "0"}}));
  EXPECT_TRUE(read({{"lightq.port", "0"}, {"lightq.data_ports", "5501-5600"}}));
  EXPECT_EQ(read({{"lightq.port", "65000"}})->of<Settings>().all_data_ports(),
            (PortRange{65001, 65535}));
}

TEST(LightqSettings, SayWhichAddressesOthersCanReach) {
  EXPECT_EQ(read({{"lightq.addresses", "0.0.0.0"}}).problem().sentence.substr(0, 61),
            "lightq.addresses: other machines can reach 0.0.0.0, and witho");
  EXPECT_TRUE(read({{"lightq.addresses", "0.0.0.0"}, {"insecure", "true"}}));
}

TEST(LightqSettings, PathsOfSocketsThatAreTooLongAreNamed) {
  const std::string path = "/" + std::string(107, 's');
  EXPECT_TRUE(read({{"lightq.socket", path.substr(1)}}));
  EXPECT_EQ(read({{"lightq.socket", path}}).problem().sentence,
            "lightq.socket: '" + path + "' has 108 bytes: choose a path of at most 107");
  EXPECT_EQ(read({{"state_dir", path.substr(11)}}).problem().sentence,
            "lightq.socket: '" + path.substr(11) +
                "/lightq.sock' has 109 bytes: choose a path of at most 107");
}

}  // namespace
}  // namespace leat::broker::lightq
