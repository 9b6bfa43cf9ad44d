// If this failed, a symbolic link or another user's directory could make a
// program write to a wrong place.
#include "leat/os/directory.hpp"

#include <fstream>

#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Directory, OnlyOnesOwnIsTaken) {
  const TestDirectory directory;
  EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::ok);
  EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::ok);
  std::filesystem::create_directory_symlink(directory / "new", directory / "link");
  EXPECT_EQ(code(open_directory_path(directory / "link", true, true)), Errc::permission);
  EXPECT_EQ(code(open_directory_path(directory / "link", true, false)), Errc::ok);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown((directory / "new").c_str(), 12345, static_cast<::gid_t>(-1)), 0);
    EXPECT_EQ(code(open_directory_path(directory / "new", true, true)), Errc::permission);
  }
}

TEST(Directory, RenamingTakesNoNameAway) {
  const TestDirectory path;
  const Fd directory = must(open_directory_path(path.path(), false, false));
  must(make_directory_at(directory.get(), "a"));
  must(make_directory_at(directory.get(), "b"));
  EXPECT_EQ(code(rename_at(directory.get(), "a", "b")), Errc::exists);
  EXPECT_EQ(code(rename_at(directory.get(), "a", "c")), Errc::ok);
  EXPECT_EQ(code(rename_at(directory.get(), "a", "d")), Errc::not_found);
}

TEST(Directory, LinksAreNotFollowed) {
  const TestDirectory path;
  const Fd directory = must(open_directory_path(path.path(), false, false));
  std::ofstream{path / "file"} << "x";
  std::filesystem::create_symlink(path / "file", path / "link");
  EXPECT_EQ(code(open_at(directory.get(), "file", O_RDONLY)), Errc::ok);
  EXPECT_NE(code(open_at(directory.get(), "link", O_RDONLY)), Errc::ok);
}

// Opening a FIFO for reading waits for a writer, and opening a device may do
// anything. Neither must happen.
TEST(Directory, OnlyFilesAreOpenedAsFiles) {
  const TestDirectory path;
  const Fd directory = must(open_directory_path(path.path(), false, false));
  ASSERT_EQ(::mkfifoat(directory.get(), "fifo", 0600), 0);
  ASSERT_EQ(::mknodat(directory.get(), "socket", S_IFSOCK | 0600, 0), 0);
  std::filesystem::create_directory(path / "folder");
  std::filesystem::create_symlink("file", path / "link");
  Child child{[&] {
    ::alarm(10);
    for (const int flags : {O_RDONLY, O_RDWR, O_RDWR | O_CREAT}) {
      if (!open_file_at(directory.get(), "file", O_RDWR | O_CREAT, 0600)) return 1;
      for (const char* name : {"fifo", "socket", "folder", "link"}) {
        const Errc error = code(open_file_at(directory.get(), name, flags, 0600));
        if (error != Errc::wrong_format) {
          std::fprintf(stderr, "%s with %o: %s\n", name, flags, describe({error, 0}).c_str());
          return 2;
        }
      }
    }
    return 0;
  }};
  EXPECT_EQ(child.join(), 0);
}

// A buffer that all threads share would give a topic the group that another thread has just looked up.
TEST(Directory, LookingUpAGroupLeavesThatOfOthersAlone) {
  const ::group* const others = ::getgrnam("daemon");
  ASSERT_NE(others, nullptr);
  const ::gid_t number = others->gr_gid;
  EXPECT_EQ(find_file_group("root"), ::gid_t{0});
  EXPECT_EQ(name_of_file_group(0), "root");
  EXPECT_EQ(others->gr_gid, number);
  EXPECT_EQ(find_file_group("no-such-group"), std::nullopt);
}

// Groups with many members have long entries.
TEST(Directory, AGroupMayHaveALongEntry) {
  int calls = 0;
  const FileGroup group{[&](::group* entry, char*, std::size_t size, ::group** found) {
    ++calls;
    if (size < 100'000) return ERANGE;
    *found = entry;
    return 0;
  }};
  EXPECT_EQ(group.found, &group.entry);
  const FileGroup endless{[](::group*, char*, std::size_t, ::group**) { return ERANGE; }};
  EXPECT_EQ(endless.found, nullptr);
  EXPECT_GT(calls, 1);
}

// FUSE and 9p may not open again what has no name, and say ENOENT, which is not a lack of /proc.
TEST(Directory, AMissingFileIsNoMissingProc) {
  errno = ENOENT;
  const Error error = error_below_proc();
  EXPECT_EQ(error.code, Errc::not_found);
  EXPECT_EQ(error.system_error, ENOENT);
}

// The message about a refusal names its cause by the errno: 0 means that the file itself is locked in place.
TEST(Directory, AStrangersLinkInAStickyDirectoryIsRefusedWithAReason) {
  if (::geteuid() != 0) GTEST_SKIP() << "being another user needs root";
  const TestDirectory path;
  std::filesystem::permissions(path.path(),
                               std::filesystem::perms::all | std::filesystem::perms::sticky_bit);
  std::filesystem::create_symlink("nowhere", path / "link");
  Child child{[&] {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) return 1;
    const Fd directory = must(open_directory_path(path.path(), false, false));
    const Error error = may_delete_at(directory.get(), "link").error();
    return error.code == Errc::permission && error.system_error == EPERM ? 0 : 2;
  }};
  EXPECT_EQ(child.join(), 0);
}

}  // namespace
}  // namespace leat::detail
