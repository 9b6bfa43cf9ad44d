// If this failed, a client would send another password than its user wrote, or leave one where others can read it.
#include "lightq/client/password.hpp"

#include <fcntl.h>

#include <fstream>

#include "fake_broker.hpp"
#include "support/process.hpp"

namespace leat::lightq {
namespace {

struct ClientPassword : ::testing::Test {
  leat::testing::TemporaryDirectory directory;
  std::string path = directory.path() + "/password";

  Outcome<std::string> read(std::string_view content) {
    std::ofstream{path} << content;
    return password_from_file(path);
  }
};

TEST_F(ClientPassword, IsTheFirstLineOfAFile) {
  EXPECT_EQ(must(read("secret")), "secret");
  EXPECT_EQ(must(read("secret\n")), "secret");
  EXPECT_EQ(must(read("two words \nand more\n")), "two words ");
  EXPECT_EQ(must(read(std::string(kMaxPassword, 'x') + "\n")), std::string(kMaxPassword, 'x'));
}

TEST_F(ClientPassword, NoneIsRefused) {
  for (const std::string& content : {std::string{}, std::string{"\nsecret"},
                                     std::string(kMaxPassword + 1, 'x'), std::string(99'999, 'x')})
    EXPECT_EQ(code_of(read(content)), Errc::invalid_argument);
  EXPECT_EQ(code_of(password_from_file(path + "-missing")), Errc::not_found);
  EXPECT_EQ(code_of(password_from_file(directory.path())), Errc::io_error);
}

TEST_F(ClientPassword, GoesThroughAPipe) {
  const detail::Fd pipe = must(password_pipe("secret"));
  EXPECT_NE(::fcntl(pipe.get(), F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_EQ(must(password_from_file("/dev/fd/" + std::to_string(pipe.get()))), "secret");
  for (const std::string& password :
       {std::string{}, std::string{"a\nb"}, std::string(kMaxPassword + 1, 'x')})
    EXPECT_EQ(code_of(password_pipe(password)), Errc::invalid_argument);
}

}  // namespace
}  // namespace leat::lightq
