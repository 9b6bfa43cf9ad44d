// If this failed, a broker would run with another configuration than its administrator wrote, or with passwords in
// the clear on a network where nobody expects it.
#include "broker/config/config_file.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <random>
#include <set>
#include <string>

#include "support/process.hpp"

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

// Of a protocol.
struct Net {
  std::uint64_t port = 5500;
  std::vector<std::string> addresses{"127.0.0.1", "::1"};
  std::string host;
  PortRange more_ports;
};

const ConfigKeys& keys() {
  static const ConfigKeys keys = [] {
    ConfigKeys all;
    all.add({number_key("net.port", &Net::port, 0, UINT16_MAX, "port"),
             addresses_key("net.addresses", &Net::addresses, "addresses"),
             text_key("net.host", &Net::host, "HOST", "a host", "host"),
             ports_key("net.more_ports", &Net::more_ports, "more ports")},
            [](const Config& config) {
              return check_addresses("net.addresses", config.of<Net>().addresses, config);
            });
    return all;
  }();
  return keys;
}

Outcome<Config> read_sources(const ConfigSources& sources) { return read_config(sources, keys()); }

struct Read {
  Config config;
  Problem problem;
};

Read read(const std::string& text) {
  Read result;
  if (auto outcome = read_config_text(text, "leat.toml", keys(), result.config); !outcome)
    result.problem = outcome.problem();
  return result;
}

std::string sentence_of(const std::string& text) { return read(text).problem.sentence; }

TEST(Config, DefaultsNeedNoFile) {
  const auto config = read_sources({});
  ASSERT_TRUE(config);
  EXPECT_EQ(config->of<Net>().port, 5500u);
  EXPECT_EQ(config->of<Net>().addresses, (std::vector<std::string>{"127.0.0.1", "::1"}));
  EXPECT_EQ(config->data_auth, DataAuth::password);
  EXPECT_EQ(config->of<Net>().more_ports, PortRange{});
  EXPECT_EQ(config->slow_subscriber, SlowSubscriber::overtaken);
  EXPECT_FALSE(config->insecure);
}

TEST(Config, EachKeyIsReadFromAFile) {
  const Read got = read(R"(
dir = "/dev/shm/x"            # comment
data_dir = "/var/lib/x"
state_dir = "/var/lib/state"
data_auth = "joined"
insecure = true
[net]
port = 5600
addresses = ["0.0.0.0", "::"]
host = "broker.example.org"
more_ports = "6000-6999"
[limits]
message_size = "2000KiB"
command_size = 4096
connections = 100
connections_per_address = 10
topics = 5
handshake_time = "500ms"
idle_time = "5m"
[subscribers]
slow = "wait"
[log]
level = "debug"
file = "/var/log/leat.log"
)");
  ASSERT_EQ(got.problem.sentence, "");
  const Config& config = got.config;
  EXPECT_EQ(config.dir, "/dev/shm/x");
  EXPECT_EQ(config.data_dir, "/var/lib/x");
  EXPECT_EQ(config.state_dir, "/var/lib/state");
  EXPECT_EQ(config.data_auth, DataAuth::joined);
  EXPECT_TRUE(config.insecure);
  EXPECT_EQ(config.of<Net>().port, 5600u);
  EXPECT_EQ(config.of<Net>().addresses, (std::vector<std::string>{"0.0.0.0", "::"}));
  EXPECT_EQ(config.of<Net>().host, "broker.example.org");
  EXPECT_EQ(config.of<Net>().more_ports, (PortRange{6000, 6999}));
  EXPECT_EQ(config.max_message_bytes, 2000u << 10);
  EXPECT_EQ(config.max_command_bytes, 4096u);
  EXPECT_EQ(config.max_connections, 100u);
  EXPECT_EQ(config.max_connections_per_address, 10u);
  EXPECT_EQ(config.max_topics, 5u);
  EXPECT_EQ(config.handshake_time, 500ms);
  EXPECT_EQ(config.idle_time, 5min);
  EXPECT_EQ(config.slow_subscriber, SlowSubscriber::wait);
  EXPECT_EQ(config.log_level, "debug");
  EXPECT_EQ(config.log_file, "/var/log/leat.log");
}

TEST(Config, NamesOfVariablesAndFlagsFollowFromTheKey) {
  std::set<std::string> names;
  for (const ConfigKey& key : keys().all()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name;
    EXPECT_FALSE(key.help.empty());
    EXPECT_FALSE(key.wants.empty());
    EXPECT_FALSE(key.placeholder.empty());
    EXPECT_EQ(key.placeholder.find(' '), std::string::npos) << key.placeholder;
    // What is printed as the default is a value, and is the default.
    Config config;
    if (!key.default_text().empty()) {
      EXPECT_TRUE(key.set(config, key.default_text())) << key.name;
    }
    for (const ConfigKey& other : keys().all())
      EXPECT_EQ(other.print(config), other.default_text()) << key.name;
    if (key.name != "limits.connections_per_address") continue;
    EXPECT_EQ(key.variable(), "LEAT_LIMITS_CONNECTIONS_PER_ADDRESS");
    EXPECT_EQ(key.flag(), "--limits-connections-per-address");
  }
  EXPECT_TRUE(names.contains("net.port"));
}

TEST(Config, AFlagWinsOverAVariableAndThatOverTheFile) {
  const leat::testing::TemporaryDirectory directory;
  const std::string file = directory.path() + "/leat.toml";
  std::ofstream{file} << "[net]\nport = 6001\nhost = 'a'\n[limits]\ntopics = 1\n";
  const auto config = read_sources({.file = file,
                                    .variables = {{"LEAT_NET_PORT", "6002"},
                                                  {"LEAT_LIMITS_TOPICS", "2"},
                                                  {"LEAT_DATA_AUTH", ""},
                                                  {"LEAT_PASSWORD", "x"}},
                                    .flags = {{"net.port", "6003"}}});
  ASSERT_TRUE(config) << config.problem().sentence;
  EXPECT_EQ(config->of<Net>().port, 6003u);
  EXPECT_EQ(config->max_topics, 2u);
  EXPECT_EQ(config->of<Net>().host, "a");
}

TEST(Config, AWrongKeyNamesItsLineAndTheNearestOne) {
  EXPECT_EQ(sentence_of("insecure = true\n\n[net]\nprot = 1\n"),
            "leat.toml:4: there is no key 'net.prot' (did you mean 'net.port'?)");
  EXPECT_EQ(sentence_of("data-auth = 'open'"),
            "leat.toml:1: there is no key 'data-auth' (did you mean 'data_auth'?)");
  EXPECT_EQ(sentence_of("port = 5500"),
            "leat.toml:1: there is no key 'port' (did you mean 'net.port'?)");
  EXPECT_EQ(sentence_of("[limit]\ntopics = 5"),
            "leat.toml:1: there is no key 'limit' (did you mean 'limits'?)");
  EXPECT_EQ(sentence_of("[limits.topics]\nx = 5").substr(0, 42),
            "leat.toml:1: limits.topics has a wrong kin");
  EXPECT_EQ(sentence_of("colour = 'blue'"), "leat.toml:1: there is no key 'colour'");
  EXPECT_EQ(sentence_of("net = 5"), "leat.toml:1: there is no key 'net'");
  EXPECT_EQ(sentence_of("[net.port]\n"),
            "leat.toml:1: net.port has a wrong kind of value: write a whole number from 0 to "
            "65535");
  std::string longest(10'000, 'x');
  longest += " = 1";
  EXPECT_EQ(sentence_of(longest).size(), 10'000u + 31);
}

TEST(Config, AWrongValueSaysWhatIsRight) {
  EXPECT_EQ(sentence_of("[net]\nport = 65536"),
            "leat.toml:2: net.port = '65536' is wrong: write a whole number from 0 to 65535");
  EXPECT_EQ(sentence_of("data_auth = 'none'"),
            "leat.toml:1: data_auth = 'none' is wrong: write one of password, joined, open");
  EXPECT_EQ(sentence_of("insecure = 'yes'"),
            "leat.toml:1: insecure = 'yes' is wrong: write one of false, true");
  EXPECT_EQ(sentence_of("[limits]\nmessage_size = '1PB'"),
            "leat.toml:2: limits.message_size = '1PB' is wrong: write a size from 1 to 2047KiB: "
            "bytes, or for example 512KiB, 8MiB");
  for (const char* const wrong :
       {"limits.topics = -1", "limits.topics = 0", "limits.topics = 1.5", "limits.topics = '5 '",
        "limits.topics = 99999999999999999999", "limits.topics = [1]", "limits.topics = 1979-05-27",
        "limits.message_size = '99999999999999999GiB'", "limits.idle_time = '5'",
        "limits.idle_time = '25h'", "net.addresses = ['localhost']", "net.addresses = []",
        "net.addresses = '127.0.0.1,'", "net.more_ports = '9-8'", "net.more_ports = '0-8'",
        "net.more_ports = '5501-65536'", "net.more_ports = '5501'", "dir = \"a\\u0000b\""}) {
    const Problem problem = read(wrong).problem;
    EXPECT_EQ(problem.code, Errc::invalid_argument) << wrong;
    EXPECT_EQ(problem.sentence.substr(0, 13), "leat.toml:1: ") << wrong;
  }
}

TEST(Config, WrongVariablesAndFlagsNameThemselves) {
  const auto variable = read_sources({.variables = {{"LEAT_NET_PORT", "many"}}});
  EXPECT_EQ(variable.problem().sentence,
            "LEAT_NET_PORT='many' is wrong: write a whole number from 0 to 65535");
  EXPECT_EQ(read_sources({.flags = {{"net.prot", "1"}}}).problem().sentence,
            "there is no key 'net.prot' (did you mean 'net.port'?)");
  EXPECT_EQ(read_sources({.variables = {{"LEAT_DIR", "d"},
                                        {"LEAT_PASSWORD", "x"},
                                        {"LEAT_NET_PORT", "6002"},
                                        {"LEAT_NET_PROT", "6002"}}})
                .problem()
                .sentence,
            "LEAT_NET_PROT: there is no key 'net.prot' (did you mean 'net.port'?)");
  Config config;
  EXPECT_EQ(
      read_config_text("\"a\u009B31m\u00FC\" = 1", "leat.toml", keys(), config).problem().sentence,
      "leat.toml:1: there is no key 'a  31m  '");
  EXPECT_EQ(read_sources({.variables = {{"LEAT_DATA_AUHT", "open"}}}).problem().sentence,
            "LEAT_DATA_AUHT: there is no key 'data_auht' (did you mean 'data_auth'?)");
  EXPECT_EQ(read_sources({.variables = {{"LEAT_state_dir", "/x"}}}).problem().sentence,
            "LEAT_state_dir: write it as LEAT_STATE_DIR");
  EXPECT_EQ(read_sources({.variables = {{"LEAT_log_file", "/x"}}}).problem().sentence,
            "LEAT_log_file: write it as LEAT_LOG_FILE");
  EXPECT_FALSE(read_sources({.variables = {{"LEAT_data_auth", "open"}}}));
  EXPECT_FALSE(read_sources({.variables = {{"LEAT_INSECUR", "true"}}}));
  EXPECT_FALSE(read_sources({.variables = {{"LEAT_STATE_DRI", "d"}}}));
  EXPECT_TRUE(read_sources({.variables = {{"LEAT_BIN", "x"},
                                          {"LEAT_PORT", "tcp://10.0.0.1:5500"},
                                          {"LEAT_SERVICE_HOST", "10.0.0.1"},
                                          {"LEAT_TOPIC_PASSWORD", "x"},
                                          {"LEAT_SERVE_BIN", "x"},
                                          {"LEAT_DATABASE", "x"}}}));
  EXPECT_TRUE(read_sources({.variables = {{"LEAT_DIR", "d"},
                                          {"LEAT_LOG_LEVEL", "info"},
                                          {"LEAT_LOCKS_FREE", "x"},
                                          {"PATH", "x"}}}));
  EXPECT_EQ(sentence_of("[subscriber]\nslow = 'wait'\n"),
            "leat.toml:1: there is no key 'subscriber' (did you mean 'subscribers'?)");
}

TEST(Config, LevelsOfTheLogHaveOtherNamesToo) {
  for (const auto& [name, level] : std::map<std::string, std::string>{
           {"event", "info"}, {"emerg", "critical"}, {"critical", "critical"}, {"warn", "warn"}}) {
    const auto config = read_sources({.flags = {{"log.level", name}}});
    ASSERT_TRUE(config) << config.problem().sentence;
    EXPECT_EQ(config->log_level, level);
  }
}

TEST(Config, AFileThatIsNotTomlNamesTheLine) {
  const std::string sentence = sentence_of("insecure = true\nport 5500\n");
  EXPECT_EQ(sentence.substr(0, 13), "leat.toml:2: ") << sentence;
  EXPECT_EQ(sentence_of("insecure = true\ninsecure = true\n").substr(0, 13), "leat.toml:2: ");
  const auto missing = read_sources({.file = "/no/such/leat.toml"});
  EXPECT_EQ(missing.problem().code, Errc::not_found);
  EXPECT_EQ(missing.problem().sentence,
            "cannot read '/no/such/leat.toml': No such file or directory");
  EXPECT_FALSE(read_sources({.file = "/dev/shm"}));
  EXPECT_FALSE(read_sources({.file = "/dev/zero"})) << "it has no end";
}

// toml++ 3.3 would end the process, or do something undefined.
TEST(Config, WrongLettersOutsideOfStringsAreErrors) {
  for (const char* const wrong :
       {"[=]", "[ !x]", "[[=]]", "[\"a\".=]", "na\xc3\xafve = 1", "\xc3\xa9", "dir \xc3\xa9 = 'x'",
        "dir = 'x' \xe2\xbf\xbf", "dir = \xef\xb7\x90"})
    EXPECT_EQ(sentence_of(wrong).substr(0, 13), "leat.toml:1: ") << wrong;
  EXPECT_EQ(read("dir = '/tmp/\xc3\xa9' # \xc3\xa9").config.dir, "/tmp/\xc3\xa9");
}

TEST(Config, OtherMachinesNeedInsecure) {
  for (const char* const address : {"0.0.0.0", "::", "192.0.2.1", "127.0.0.1,192.0.2.1"}) {
    const auto refused = read_sources({.flags = {{"net.addresses", address}}});
    ASSERT_FALSE(refused) << address;
    EXPECT_NE(refused.problem().sentence.find("insecure = true"), std::string::npos);
    EXPECT_TRUE(read_sources({.flags = {{"net.addresses", address}, {"insecure", "true"}}}));
  }
  EXPECT_TRUE(read_sources({.flags = {{"net.addresses", "127.0.0.2,::1"}}}));
}

TEST(Config, PathsThatCannotBeUsedAreNamed) {
  const auto problem = [](const std::string& text) {
    const auto right = keys().check(read(text).config);
    return right ? "" : right.problem().sentence;
  };
  const testing::TemporaryDirectory directory;
  const std::string file = directory.path() + "/file";
  const auto problem_of_log = [&](const std::string& log) {
    return problem("[log]\nfile = '" + log + "'\n");
  };
  EXPECT_EQ(problem_of_log(file), "");
  EXPECT_EQ(problem_of_log("leat.log"), "");
  EXPECT_EQ(problem_of_log(directory.path() + "/missing/log"), "") << "it is made";
  std::ofstream{file} << "text";
  EXPECT_EQ(problem_of_log(file), "");
  EXPECT_EQ(problem_of_log(directory.path()),
            "log.file: '" + directory.path() + "' is a directory: choose a file in it");
  EXPECT_EQ(problem_of_log(file + "/sub/log"),
            "log.file: '" + file + "/sub/log' is in " + file +
                ", which is not a directory: choose another file");
}

TEST(Config, SomeChangesCountAtOnceAndTheOthersAreNamed) {
  Config running;
  const Config before;
  Config after;
  after.data_auth = DataAuth::open;
  after.topic_idle_time = std::chrono::milliseconds{1500};
  after.slow_subscriber = SlowSubscriber::wait;
  after.of<Net>().port = 6000;
  after.log_file = "elsewhere";
  EXPECT_EQ(keys().take_changes(running, before, after),
            (std::vector<std::string>{"log.file", "net.port"}));
  EXPECT_EQ(running.data_auth, DataAuth::open);
  EXPECT_EQ(running.topic_idle_time, std::chrono::milliseconds{1500});
  EXPECT_EQ(running.slow_subscriber, SlowSubscriber::wait);
  EXPECT_EQ(running.of<Net>().port, before.of<Net>().port);
  for (const ConfigKey& key : keys().all())  // What is printed can be read.
    EXPECT_TRUE(!key.is_live || key.set(running, key.print(before))) << key.name;
}

TEST(Config, RandomTextNeverCrashes) {
  const std::string text = "insecure = true\n[net]\nport = 5600\naddresses = [\"0.0.0.0\"]\n";
  std::mt19937 random{20261125};
  for (int round = 0; round < 5'000; ++round) {
    std::string changed = text;
    for (int i = 0; i < 3; ++i) changed[random() % changed.size()] = static_cast<char>(random());
    const Read got = read(changed);
    EXPECT_EQ(got.problem.sentence.find('\n'), std::string::npos) << changed;
  }
}

}  // namespace
}  // namespace leat::broker
