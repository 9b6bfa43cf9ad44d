// If this failed, a broker would start with a password that everybody knows, or that nobody knows.
#include "broker/auth/admin_password.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "support/process.hpp"

namespace leat::broker {
namespace {

struct AdminPassword : ::testing::Test {
  leat::testing::TemporaryDirectory root;
  std::string path = root.path() + "/+broker";
  std::string file = path + "/admin-password";

  TopicStore open() const { return std::move(*TopicStore::open(path)); }
  std::string written() const {
    std::ostringstream text;
    text << std::ifstream{file}.rdbuf();
    return text.str();
  }
};

TEST_F(AdminPassword, IsRandom) {
  std::set<std::string> passwords;
  std::set<char> letters;
  for (int i = 0; i < 200; ++i) {
    const Secret password = random_password();
    EXPECT_GE(password.text().size(), 20u);
    for (const char letter : password.text()) {
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(letter)));
      letters.insert(letter);
    }
    passwords.emplace(password.text());
  }
  EXPECT_EQ(passwords.size(), 200u);
  EXPECT_EQ(letters.size(), 62u);
}

TEST_F(AdminPassword, OfAFileIsTakenInsteadOfTheOneBefore) {
  const std::string given = root.path() + "/given";
  TopicStore store = open();
  for (const char* text : {"first\n", "second\nand more\n", "third"}) {
    std::ofstream{given} << text;
    ASSERT_TRUE(take_admin_password(store, given));
    const auto version = (*store.administrator())->verifier_version;
    ASSERT_TRUE(take_admin_password(store, given));  // As at the next start.
    EXPECT_EQ((*store.administrator())->verifier_version, version);
    const std::string_view all{text};
    const std::string_view password = all.substr(0, all.find('\n'));
    EXPECT_TRUE(*check_password(password, (*store.administrator())->verifier));
  }
}

TEST_F(AdminPassword, OfAWrongFileIsRefused) {
  const std::string given = root.path() + "/given";
  TopicStore store = open();
  EXPECT_EQ(take_admin_password(store, given).problem().code, Errc::not_found);
  EXPECT_FALSE(take_admin_password(store, root.path()));
  for (const std::string& text : {std::string{}, std::string{"\nx"}, std::string(1025, 'x')}) {
    std::ofstream{given} << text;
    EXPECT_EQ(take_admin_password(store, given).problem().code, Errc::invalid_argument);
  }
  EXPECT_FALSE(*store.administrator());
  std::ofstream{given} << std::string(1024, 'x');
  EXPECT_TRUE(take_admin_password(store, given));
}

TEST_F(AdminPassword, IsMadeAtTheFirstStartAndShownOnce) {
  std::string shown;
  const auto show = [&](std::string_view password) -> Outcome<void> {
    shown += password;
    return {};
  };
  {
    TopicStore store = open();
    EXPECT_TRUE(*ensure_administrator(store, show));
    EXPECT_FALSE(*ensure_administrator(store, show));
  }
  TopicStore store = open();
  EXPECT_FALSE(*ensure_administrator(store, show));
  EXPECT_TRUE(*check_password(shown, (*store.administrator())->verifier));
}

TEST_F(AdminPassword, ThatCouldNotBeShownIsNotKept) {
  TopicStore store = open();
  const auto failed = ensure_administrator(store, [](std::string_view) -> Outcome<void> {
    return Problem{Errc::no_space, "no room to write it"};
  });
  EXPECT_EQ(failed.problem().sentence, "no room to write it");
  EXPECT_FALSE(*store.administrator());
}

TEST_F(AdminPassword, IsWrittenForTheOwnerOnly) {
  const ::mode_t before = ::umask(0);
  TopicStore store = open();
  std::ofstream{file} << "an older one, readable for all, and longer than the new one";
  ASSERT_TRUE(write_admin_password(path, "abc"));
  EXPECT_EQ(written(), "abc\n");
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600u);
  EXPECT_FALSE(std::filesystem::exists(file + ".new"));
  ::umask(before);
}

TEST_F(AdminPassword, DoesNotFollowALink) {
  TopicStore store = open();
  const std::string target = root.path() + "/target";
  std::ofstream{target} << "mine";
  std::filesystem::create_symlink(target, file);
  std::filesystem::create_symlink(target, file + ".new");
  ASSERT_TRUE(write_admin_password(path, "abc"));
  EXPECT_EQ(written(), "abc\n");
  EXPECT_FALSE(std::filesystem::is_symlink(file));
  std::ostringstream text;
  text << std::ifstream{target}.rdbuf();
  EXPECT_EQ(text.str(), "mine");
}

TEST_F(AdminPassword, ThatCannotBeWrittenSaysWhere) {
  const auto failed = write_admin_password(root.path() + "/none", "abc");
  EXPECT_EQ(failed.problem().sentence,
            "cannot write '" + root.path() + "/none/admin-password': No such file or directory");
  const TopicStore store = open();
  std::filesystem::create_directory(file + ".new");
  EXPECT_EQ(write_admin_password(path, "abc").problem().sentence,
            "cannot write '" + file + ".new': File exists");
}

}  // namespace
}  // namespace leat::broker
