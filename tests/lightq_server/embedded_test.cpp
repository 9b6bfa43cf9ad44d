// If these failed, programs could not run a broker themselves, as LightQ's could.
#include "leat/broker.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "running_broker.hpp"

namespace leat {
namespace {

using broker::Client;
using broker::Json;

class Embedded : public ::testing::Test {
 protected:
  BrokerOptions options() {
    std::filesystem::create_directories(temp_.path() + "/dir");
    std::filesystem::create_directories(temp_.path() + "/data");
    return {.settings = {{"lightq.port", "0"},
                         {"dir", temp_.path() + "/dir"},
                         {"data_dir", temp_.path() + "/data"},
                         {"lightq.addresses", "127.0.0.1"}},
            .on_first_start = [this](std::string_view user, std::string_view password) {
              EXPECT_EQ(user, "lightq_admin");
              password_ = password;
            }};
  }
  testing::TemporaryDirectory temp_;
  std::string password_;
  BrokerProblem problem_;
};

Json ask(Broker& broker, const Json& request) {
  Client admin{ZMQ_REQ};
  admin.connect("tcp://127.0.0.1:" + std::to_string(broker.lightq_port()));
  EXPECT_TRUE(admin.send(request.dump()));
  const auto reply = admin.receive();
  return reply ? Json::parse(*reply, nullptr, false) : Json{};
}

TEST_F(Embedded, ServesUntilItIsStopped) {
  auto broker = Broker::start(options(), problem_);
  ASSERT_NE(broker, nullptr) << problem_.sentence;
  EXPECT_NE(broker->lightq_port(), 0);
  EXPECT_FALSE(password_.empty());
  EXPECT_TRUE(broker->is_running());
  const Json created = ask(*broker, {{"cmd", "create_topic"},
                                     {"admin_user_id", "lightq_admin"},
                                     {"admin_password", password_},
                                     {"topic", "news"}});
  EXPECT_EQ(created["status"], "ok") << created;
  broker->stop();
  EXPECT_FALSE(broker->is_running());
  EXPECT_NE(broker->lightq_port(), 0) << "it may still be asked";
  broker->stop();
}

TEST_F(Embedded, SaysWhyItDoesNotStart) {
  auto broker = Broker::start(options(), problem_);
  ASSERT_NE(broker, nullptr) << problem_.sentence;
  EXPECT_EQ(Broker::start(options(), problem_), nullptr);
  EXPECT_EQ(problem_.code, Errc::busy);
  EXPECT_NE(problem_.sentence.find("another broker"), std::string::npos) << problem_.sentence;

  BrokerOptions wrong = options();
  wrong.settings.emplace_back("lightq.prot", "1");
  EXPECT_EQ(Broker::start(wrong, problem_), nullptr);
  EXPECT_NE(problem_.sentence.find("lightq.port"), std::string::npos) << problem_.sentence;
  wrong = options();
  wrong.file = temp_.path() + "/nowhere.toml";
  EXPECT_EQ(Broker::start(wrong, problem_), nullptr);
  EXPECT_EQ(problem_.code, Errc::not_found);
}

TEST_F(Embedded, ReadsAFileWhichSettingsOutweigh) {
  std::ofstream{temp_.path() + "/leat.toml"} << "[limits]\nmessage_size = 10\n[lightq]\nport = 1\n";
  BrokerOptions with_file = options();
  with_file.file = temp_.path() + "/leat.toml";
  auto broker = Broker::start(with_file, problem_);
  ASSERT_NE(broker, nullptr) << problem_.sentence;
  EXPECT_NE(broker->lightq_port(), 1);
}

TEST_F(Embedded, WritesThePasswordIfNobodyTakesIt) {
  BrokerOptions silent = options();
  silent.on_first_start = nullptr;
  auto broker = Broker::start(silent, problem_);
  ASSERT_NE(broker, nullptr) << problem_.sentence;
  EXPECT_TRUE(std::filesystem::exists(temp_.path() + "/data/+broker/admin-password"));
}

}  // namespace
}  // namespace leat
