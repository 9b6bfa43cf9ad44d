// If this failed, the TAB key would offer what the command line does not understand.
#include "tool/completion.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "testing.hpp"
#include "tool/program.hpp"

namespace leat::tool {
namespace {

using Words = std::vector<std::string>;

// A part of leat's commands, of every kind of option and argument.
class CompletionTest : public ::testing::Test {
 protected:
  CompletionTest() {
    add_common_options(app_);
    CLI::App* topic = app_.add_subcommand("topic", "Topics");
    CLI::App* create = topic->add_subcommand("create", "Make one");
    create->add_option("NAME", text_)->required();
    create->add_option("--policy", text_)->type_name("block|fail");
    create->add_flag("--timestamps", flag_, "With times");
    create->add_flag("--old-name", flag_)->group("");
    topic->add_subcommand("list", "Show them")->alias("ls");
    topic->add_subcommand("info", "Show one")->add_option("NAME", text_);
    CLI::App* sub = app_.add_subcommand("sub", "Read");
    sub->add_option("TOPIC", text_)->required();
    sub->add_option("-g,--group", text_)->type_name("NAME");
    sub->add_option("--member", text_)->type_name("NAME");
    CLI::App* pub = app_.add_subcommand("pub", "Write");
    pub->add_option("TOPIC", text_);
    pub->add_option("-l,--file", text_)->type_name("FILE");
    CLI::App* rm = app_.add_subcommand("rm", "Delete");
    rm->add_option("NAME", many_);
    CLI::App* group = app_.add_subcommand("group", "Groups")->add_subcommand("info", "Show one");
    group->add_option("TOPIC", text_);
    group->add_option("NAME", text_);
    app_.add_subcommand("secret", "Not shown")->group("");
  }
  ~CompletionTest() override { ::unsetenv("LEAT_DIR"); }  // --dir sets it.
  Words words(Words typed) {
    Words all;
    for (const Candidate& one : complete(app_, std::move(typed))) all.push_back(one.word);
    std::sort(all.begin(), all.end());
    return all;
  }

  TestTopic topic_;  // And with it a directory.
  CLI::App app_{"For tests", "leat"};
  std::string text_;
  std::vector<std::string> many_;
  bool flag_ = false;
};

TEST_F(CompletionTest, CommandsByTheirBeginning) {
  EXPECT_EQ(words({""}), (Words{"group", "pub", "rm", "sub", "topic"}));
  EXPECT_EQ(words({}), (Words{"group", "pub", "rm", "sub", "topic"}));
  EXPECT_EQ(words({"t"}), Words{"topic"});
  EXPECT_EQ(words({"topic", ""}), (Words{"create", "info", "list"}));
  EXPECT_EQ(words({"topic", "c"}), Words{"create"});
  EXPECT_EQ(words({"x"}), Words{});
  EXPECT_EQ(complete(app_, {"top"}), (std::vector<Candidate>{{"topic", "Topics"}}));
}

TEST_F(CompletionTest, OptionsOfTheCommandAndThoseAboveIt) {
  EXPECT_EQ(words({"topic", "create", "news", "--"}),
            (Words{"--data-dir", "--dir", "--help", "--policy", "--timestamps", "--version"}));
  EXPECT_EQ(words({"topic", "create", "--t"}), Words{"--timestamps"});
  EXPECT_EQ(words({"--d"}), (Words{"--data-dir", "--dir"}));
}

TEST_F(CompletionTest, ValuesOfAnOption) {
  EXPECT_EQ(words({"topic", "create", "--policy", ""}), (Words{"block", "fail"}));
  EXPECT_EQ(words({"topic", "create", "--policy", "f"}), Words{"fail"});
  EXPECT_EQ(words({"topic", "create", "--policy=f"}), Words{"--policy=fail"});
  // As bash takes it apart.
  EXPECT_EQ(words({"topic", "create", "--policy", "=", "f"}), Words{"fail"});
  EXPECT_EQ(words({"topic", "create", "--policy", "="}), (Words{"block", "fail"}));
  EXPECT_EQ(words({"--dir", "/"}), Words{kDirectories});
  EXPECT_EQ(words({"pub", "t", "--file", "x"}), Words{kFiles});
  EXPECT_EQ(words({"pub", "t", "-l", "x"}), Words{kFiles});
}

TEST_F(CompletionTest, TopicsThatThereAre) {
  const Words dir{"--dir", topic_->directory()};
  const auto behind_dir = [&](Words typed) {
    typed.insert(typed.begin(), dir.begin(), dir.end());
    return words(std::move(typed));
  };
  const Words the_topic{topic_->name()};
  EXPECT_EQ(behind_dir({"sub", ""}), the_topic);
  EXPECT_EQ(behind_dir({"topic", "info", ""}), the_topic);
  EXPECT_EQ(words({"topic", "info", "--dir", topic_->directory(), ""}), the_topic);
  EXPECT_EQ(words({"--dir=" + topic_->directory(), "topic", "info", ""}), the_topic);
  EXPECT_EQ(behind_dir({"sub", "no-such"}), Words{});
  EXPECT_EQ(behind_dir({"sub", "one", ""}), Words{});  // It takes one.
  EXPECT_EQ(behind_dir({"rm", "one", ""}), the_topic);
  EXPECT_EQ(behind_dir({"topic", "create", ""}), Words{});  // A new name.
  EXPECT_EQ(words({"--dir", "/no/such/place", "sub", ""}), Words{});
}

TEST_F(CompletionTest, GroupsOfTheTopic) {
  must(topic_->group("workers"));
  const std::string dir = "--dir=" + topic_->directory();
  EXPECT_EQ(words({dir, "sub", topic_->name(), "--group", ""}), Words{"workers"});
  EXPECT_EQ(words({dir, "sub", topic_->name(), "-g", "w"}), Words{"workers"});
  EXPECT_EQ(words({dir, "sub", topic_->name(), "--member", ""}), Words{});
  EXPECT_EQ(words({dir, "sub", "no-such-topic", "--group", ""}), Words{});
  EXPECT_EQ(words({dir, "group", "info", ""}), Words{topic_->name()});
  EXPECT_EQ(words({dir, "group", "info", topic_->name(), ""}), Words{"workers"});
}

TEST(CompletionScript, IsForTheExecutableAndKnownShells) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const auto script = completion_script(shell, "leat-bench");
    ASSERT_TRUE(script) << shell;
    EXPECT_NE(script->find("leat-bench"), std::string::npos);
    EXPECT_EQ(script->find("PROGRAM"), std::string::npos);
  }
  EXPECT_FALSE(completion_script("csh", "leat"));
}

}  // namespace
}  // namespace leat::tool
