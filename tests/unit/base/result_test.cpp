// If this failed, a program could use an error as a value, or destroy a value twice.
#include "leat/result.hpp"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "testing.hpp"

namespace leat {
namespace {

// Counts its live objects.
struct Counted {
  explicit Counted(int& alive) : alive_{&alive} { ++*alive_; }
  Counted(Counted&& other) noexcept : alive_{other.alive_} { ++*alive_; }
  ~Counted() { --*alive_; }
  int* alive_;
};

TEST(Result, HoldsAValueOrAnError) {
  const Result<int> value = 5;
  EXPECT_TRUE(value);
  EXPECT_EQ(*value, 5);
  EXPECT_EQ(value.error(), Errc::ok);
  const Result<int> error = Errc::full;
  EXPECT_FALSE(error);
  EXPECT_EQ(error.error(), Errc::full);
  const Result<int> with_number = Error{Errc::io_error, EIO};
  EXPECT_EQ(with_number.error().system_error, EIO);
}

TEST(Result, IsSmallForSmallValues) {
  EXPECT_EQ(sizeof(Error), 8u);
  EXPECT_LE(sizeof(Result<std::uint64_t>), 16u);
  EXPECT_EQ(sizeof(Result<void>), sizeof(Error));
}

TEST(Result, MovesWhatCannotBeCopied) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(5);
  Result<std::unique_ptr<int>> moved = std::move(result);
  EXPECT_EQ(**moved, 5);
  moved = Result<std::unique_ptr<int>>{Errc::busy};
  EXPECT_EQ(moved.error(), Errc::busy);
  moved = std::make_unique<int>(6);
  EXPECT_EQ(**moved, 6);
}

TEST(Result, DestroysItsValueOnce) {
  int alive = 0;
  {
    Result<Counted> one = Counted{alive};
    EXPECT_EQ(alive, 1);
    Result<Counted> two = std::move(one);
    EXPECT_EQ(alive, 2);
    two = Result<Counted>{Errc::busy};
    EXPECT_EQ(alive, 1);
    one = Result<Counted>{Counted{alive}};
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Result, WithoutAValueKnowsOnlyTheError) {
  EXPECT_TRUE(Result<void>{});
  EXPECT_FALSE(Result<void>{Errc::deleted});
  EXPECT_EQ(Result<void>{Errc::deleted}.error(), Errc::deleted);
}

TEST(ResultDeathTest, AskingAnErrorForItsValueSaysWhatWentWrong) {
  Result<int> error = Errc::full;
  EXPECT_DEATH((void)*error, "^leat: a Result without a value was used: the topic is full\n");
  EXPECT_DEATH((void)error.value(), "used: the topic is full, at .*result_test\\.cpp:[0-9]+\n");
}

TEST(Error, EveryCodeHasASentenceOfItsOwn) {
  std::vector<std::string> seen;
  for (int code = 0; code <= static_cast<int>(Errc::io_error); ++code) {
    const std::string sentence = describe({static_cast<Errc>(code), 0});
    EXPECT_NE(sentence, "unknown error") << code;
    EXPECT_NE(sentence.back(), '.');
    for (const std::string& other : seen) EXPECT_NE(sentence, other);
    seen.push_back(sentence);
  }
}

TEST(Error, TellsWhatTheSystemSaid) {
  EXPECT_EQ(describe({Errc::permission, EACCES}), "permission denied (Permission denied)");
}

// "no space" alone would send a user who has hit a limit to look for bytes, and "no such file" to look for a topic.
TEST(Error, NamesWhatIsNotTheDisks) {
  EXPECT_NE(describe({Errc::no_space, EFBIG}).find("`ulimit -f`"), std::string::npos);
  EXPECT_NE(describe({Errc::no_space, ENOSPC}).find("inodes"), std::string::npos);
  EXPECT_NE(describe({Errc::no_space, EDQUOT}).find("quota"), std::string::npos);
  for (const int number : {EMFILE, ENFILE, EACCES, ENOMEM}) {
    EXPECT_EQ(describe({Errc::no_space, number}), "the archiver cannot write the topic's files (" +
                                                      std::string{std::strerror(number)} + ')');
  }
  EXPECT_EQ(describe(detail::kNoProc), "this needs /proc, which is not mounted here");
}

// "invalid argument" alone, or "not supported by this kernel" of a broker's address, would name neither thing nor cause.
TEST(Error, NamesWhatElseACodeStandsFor) {
  EXPECT_NE(describe(Error{Errc::invalid_argument}).find(": a name, a number or a combination"),
            std::string::npos);
  EXPECT_EQ(describe({Errc::invalid_argument, ENAMETOOLONG}),
            "a system call refused an argument (File name too long)");
  EXPECT_NE(describe(Error{Errc::unsupported}).find("a topic at a broker"), std::string::npos);
  EXPECT_EQ(
      describe({Errc::unsupported, EOPNOTSUPP}),
      "not supported by this kernel, file system or version of Leat (Operation not supported)");
  EXPECT_EQ(describe(Error{Errc::not_found}), "no such topic or group");
  EXPECT_EQ(describe({Errc::not_found, ENOENT}),
            "no such topic, group or directory (No such file or directory)");
}

// Clients in other languages have them in their sources.
TEST(Error, NumbersNeverChange) {
  EXPECT_EQ(static_cast<int>(Errc::invalid_argument), 1);
  EXPECT_EQ(static_cast<int>(Errc::timeout), 11);
  EXPECT_EQ(static_cast<int>(Errc::expired), 29);
  EXPECT_EQ(static_cast<int>(Errc::no_memory), 31);
  EXPECT_EQ(static_cast<int>(Errc::not_with_durable), 36);
}

TEST(Error, SystemErrorsMapToTheirCodes) {
  const auto code_of = [](int number) {
    errno = number;
    const Error error = last_system_error();
    EXPECT_EQ(error.system_error, number);
    return error.code;
  };
  EXPECT_EQ(code_of(ENOENT), Errc::not_found);
  EXPECT_EQ(code_of(EEXIST), Errc::exists);
  EXPECT_EQ(code_of(EACCES), Errc::permission);
  EXPECT_EQ(code_of(EPERM), Errc::permission);
  EXPECT_EQ(code_of(ENOSPC), Errc::no_space);
  EXPECT_EQ(code_of(EDQUOT), Errc::no_space);
  EXPECT_EQ(code_of(ENOMEM), Errc::no_memory);
  EXPECT_EQ(code_of(ENOSYS), Errc::unsupported);
  EXPECT_EQ(code_of(EIO), Errc::io_error);
}

}  // namespace
}  // namespace leat
