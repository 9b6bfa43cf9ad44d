// Checking, repairing and copying the files of durable topics, as a program does it. If these failed, damage would be found too
// late, a repair would take whole records, or a backup would not be a topic.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <stop_token>
#include <string>

#include "unit/admin/admin_testing.hpp"

namespace leat {
namespace {

class AdminFiles : public AdminTest {
 protected:
  static bool finds(const CheckReport& report, const std::string& file) {
    return std::ranges::any_of(
        report.findings, [&](const FileFinding& one) { return one.file == file && one.is_damage; });
  }
};

TEST_F(AdminFiles, AreOpenedByNameOrPath) {
  make_closed("d", 1);
  EXPECT_TRUE(must(files_of("d").is_topic()));
  EXPECT_TRUE(must(must(TopicFiles::open_path(path_of("d"))).is_topic()));
  EXPECT_FALSE(must(must(TopicFiles::open_path(data_.path())).is_topic()));
  EXPECT_EQ(code(TopicFiles::open("missing", data_.path())), Errc::not_found);
  EXPECT_EQ(code(TopicFiles::open_path(path_of("missing"))), Errc::not_found);
  std::filesystem::create_symlink(path_of("d"), path_of("link"));
  const auto link = TopicFiles::open("link", data_.path());
  EXPECT_EQ(code(link), Errc::wrong_format);
  EXPECT_EQ(link.error().system_error, ENOTDIR);
}

TEST_F(AdminFiles, OfAnEmptyObjectAreNone) {
  const TopicFiles files;
  EXPECT_EQ(code(files.check()), Errc::io_error);
  EXPECT_EQ(code(files.reader()), Errc::io_error);
  EXPECT_FALSE(files.is_open());
}

TEST_F(AdminFiles, ManifestDescribesTheTopic) {
  TopicOptions options = durable();
  options.partitions = 3;
  const Topic topic = create("d", options);
  const ManifestInfo manifest = must(files_of("d").manifest());
  EXPECT_EQ(manifest.id, topic.id());
  EXPECT_EQ(manifest.partitions, 3U);
  EXPECT_EQ(manifest.memory_bytes, std::filesystem::file_size(topics_ / "d" / "records"));
  EXPECT_EQ(manifest.memory_directory, topics_.path());
}

TEST_F(AdminFiles, ManifestIsMissingOrDamaged) {
  make_closed("d", 1);
  const TopicFiles files = files_of("d");
  spoil(path_of("d") / "manifest-0", 50);
  EXPECT_TRUE(files.manifest());
  spoil(path_of("d") / "manifest-1", 50);
  EXPECT_EQ(code(files.manifest()), Errc::corrupt);
  EXPECT_EQ(code(files.check()), Errc::corrupt);
  EXPECT_EQ(code(files.reader()), Errc::corrupt);
  std::filesystem::create_directory(path_of("other"));
  EXPECT_EQ(code(files_of("other").manifest()), Errc::not_found);
  EXPECT_EQ(code(files_of("other").inspect()), Errc::not_found);
}

TEST_F(AdminFiles, InspectTellsOpenClosedAndKilled) {
  make_unclosed("killed", 1);
  const FilesInfo killed = must(files_of("killed").inspect());
  EXPECT_TRUE(killed.needs_recovery);
  EXPECT_FALSE(killed.is_open);
  {
    const Topic topic = create("d", durable());
    const FilesInfo open = must(files_of("d").inspect());
    EXPECT_TRUE(open.is_open);
    EXPECT_FALSE(open.needs_recovery);
    EXPECT_TRUE(files_of("d").is_open());
  }
  const FilesInfo closed = must(files_of("d").inspect());
  EXPECT_FALSE(closed.is_open);
  EXPECT_FALSE(closed.needs_recovery);
  for (const CopiesInfo* copies : {&closed.manifest, &closed.checkpoint}) {
    EXPECT_EQ(copies->state, Errc::ok);
    EXPECT_EQ(copies->bad_copy, "");
  }
}

TEST_F(AdminFiles, InspectNamesTheBadCopy) {
  make_closed("d", 1);
  std::filesystem::remove(path_of("d") / "manifest-1");
  spoil(path_of("d") / "checkpoint-0", 50);
  FilesInfo info = must(files_of("d").inspect());
  EXPECT_EQ(info.manifest.state, Errc::ok);
  EXPECT_EQ(info.manifest.bad_copy, "manifest-1");
  EXPECT_TRUE(info.manifest.is_missing);
  EXPECT_EQ(info.checkpoint.bad_copy, "checkpoint-0");
  EXPECT_FALSE(info.checkpoint.is_missing);
  spoil(path_of("d") / "checkpoint-1", 50);
  info = must(files_of("d").inspect());
  EXPECT_EQ(info.checkpoint.state, Errc::corrupt);
  EXPECT_EQ(info.checkpoint.bad_copy, "");
}

TEST_F(AdminFiles, CheckOfAWholeTopicCountsItsRecords) {
  make_closed("d", 10);
  const CheckReport report = must(files_of("d").check());
  EXPECT_FALSE(report.is_damaged()) << report.findings.front().text;
  EXPECT_EQ(report.records, 10U);
  EXPECT_EQ(report.files, 1U);
  EXPECT_TRUE(report.was_closed);
}

TEST_F(AdminFiles, CheckFindsDamage) {
  make_closed("d", 10);
  const std::filesystem::path segment = segment_of("d");
  spoil(segment, static_cast<std::streamoff>(std::filesystem::file_size(segment)) - 20);
  const CheckReport report = must(files_of("d").check());
  EXPECT_TRUE(report.is_damaged());
  EXPECT_TRUE(finds(report, segment.filename()));
  EXPECT_GT(report.damaged, 0U);
  EXPECT_EQ(report.records + report.damaged, 10U);
}

TEST_F(AdminFiles, LockIsMadeUnlessSomethingHasItsName) {
  make_closed("d", 1);
  const std::filesystem::path lock = path_of("d") / TopicFiles::kLock;
  std::filesystem::remove(lock);
  EXPECT_TRUE(finds(must(files_of("d").check()), TopicFiles::kLock));
  must(files_of("d").make_lock());
  EXPECT_TRUE(std::filesystem::is_regular_file(lock));
  must(files_of("d").make_lock());
  EXPECT_EQ(open("d").info().partitions[0].end, 1U);
  std::filesystem::remove(lock);
  std::filesystem::create_directory(lock);
  EXPECT_EQ(code(files_of("d").make_lock()), Errc::exists);
  EXPECT_EQ(must(files_of("d").irregular_file()), TopicFiles::kLock);
}

TEST_F(AdminFiles, RepairNeedsTheTopicForItself) {
  const Topic topic = create("d", durable());
  RepairReport report;
  EXPECT_EQ(code(files_of("d").repair(report)), Errc::busy);
}

TEST_F(AdminFiles, RepairTakesOutWhatWasNeverWrittenWhole) {
  make_unclosed("d", 10);
  const std::filesystem::path segment = segment_of("d");
  std::filesystem::resize_file(segment, std::filesystem::file_size(segment) / 2 * 2);
  std::ofstream{segment, std::ios::app | std::ios::binary} << std::string(100, 'x');
  std::filesystem::remove(path_of("d") / "manifest-0");
  RepairReport report;
  must(files_of("d").repair(report));
  EXPECT_GE(report.cut_bytes, 100U);
  EXPECT_TRUE(report.deleted_groups.empty());
  const FilesInfo info = must(files_of("d").inspect());
  EXPECT_EQ(info.cut_files, 1U);
  EXPECT_GT(info.cut_bytes, 0U);
  EXPECT_EQ(info.manifest.bad_copy, "");
  EXPECT_FALSE(info.needs_recovery);
  const CheckReport checked = must(files_of("d").check());
  EXPECT_FALSE(checked.is_damaged());
  EXPECT_EQ(checked.records, 10U);
}

TEST_F(AdminFiles, RepairDeletesAGroupOfWhichNothingCanBeRead) {
  {
    const Topic topic = create("d", durable());
    must(topic.group("g"));
  }
  EXPECT_FALSE(must(files_of("d").has_unreadable_group()));
  for (const auto& entry : std::filesystem::directory_iterator{path_of("d")}) {
    if (entry.path().filename().string().starts_with("group-")) spoil(entry.path(), 50);
  }
  EXPECT_TRUE(must(files_of("d").has_unreadable_group()));
  RepairReport report;
  must(files_of("d").repair(report));
  EXPECT_EQ(report.deleted_groups.size(), 1U);
  EXPECT_FALSE(must(files_of("d").has_unreadable_group()));
  EXPECT_TRUE(must(open("d").group_names()).empty());
}

TEST_F(AdminFiles, BackupOfATopicInUseBecomesATopic) {
  const Topic topic = create("d", durable());
  publish_numbers(topic, 10);
  must(topic.sync(10s));
  const TestDirectory backups;
  const CopyReport backup = must(files_of("d").back_up(backups / "d"));
  EXPECT_EQ(backup.offsets, 10U);
  EXPECT_EQ(backup.files, 1U);
  EXPECT_EQ(backup.damaged, 0U);

  const TopicFiles copy = must(TopicFiles::open_path(backups / "d"));
  EXPECT_FALSE(must(copy.manifest()).id.is_known());
  const CopyReport restored = must(copy.restore("again", {}, topics_.path(), data_.path()));
  EXPECT_EQ(restored.offsets, 10U);
  const Topic again = open("again");
  EXPECT_NE(again.id(), topic.id());
  EXPECT_TRUE(again.id().is_known());
  EXPECT_EQ(again.info().partitions[0].end, 10U);
}

TEST_F(AdminFiles, BackupOfATopicThatNobodyHasOpenIsRecovered) {
  make_closed("closed", 3);
  make_unclosed("killed", 3);
  const TestDirectory backups;
  const auto backup_of = [&](const char* name) {
    EXPECT_EQ(must(files_of(name).back_up(backups / name)).offsets, 3U) << name;
    FilesReader reader = must(must(TopicFiles::open_path(backups / name)).reader());
    return read(reader);
  };
  EXPECT_EQ(backup_of("closed"), (Log{"0 0", "1 1", "2 2"}));
  // Somebody may know of offsets behind its records.
  const Log killed = backup_of("killed");
  ASSERT_EQ(killed.size(), 4U);
  EXPECT_EQ(killed[2], "2 2");
  EXPECT_TRUE(killed[3].ends_with("lost")) << killed[3];
  EXPECT_TRUE(must(files_of("killed").inspect()).needs_recovery);  // The topic is as it was.
}

TEST_F(AdminFiles, BackupNeedsANewNameInAnotherDirectory) {
  const Topic topic = create("d", durable());
  const TopicFiles files = files_of("d");
  const TestDirectory backups;
  must(files.back_up(backups / "d", {.copies = true}));
  EXPECT_EQ(code(files.back_up(backups / "d")), Errc::exists);
  EXPECT_EQ(code(files.back_up(backups / "missing" / "d")), Errc::not_found);
  EXPECT_EQ(code(files.back_up(path_of("d") / "inside")), Errc::invalid_argument);
  EXPECT_EQ(code(files.back_up(backups.path() + "/")), Errc::invalid_argument);
  EXPECT_EQ(code(files.back_up(backups.path() + "/..")), Errc::invalid_argument);
}

TEST_F(AdminFiles, StoppedCopiesLeaveNothing) {
  const Topic topic = create("d", durable());
  publish_numbers(topic, 1);
  must(topic.sync(10s));
  std::stop_source stop;
  stop.request_stop();
  const TestDirectory backups;
  EXPECT_EQ(code(files_of("d").back_up(backups / "d", {.stop = stop.get_token()})), Errc::stopped);
  EXPECT_TRUE(backups.is_empty());
  must(files_of("d").back_up(backups / "d"));
  const TopicFiles backup = must(TopicFiles::open_path(backups / "d"));
  EXPECT_EQ(code(backup.restore("new", stop.get_token(), topics_.path(), data_.path())),
            Errc::stopped);
  EXPECT_FALSE(has_files("new", data_.path()));
}

TEST_F(AdminFiles, BackupOfADeletedTopicIsRefused) {
  create("d", durable());
  const TopicFiles files = files_of("d");
  must(Topic::delete_topic("d", {.directory = topics_.path(), .data_directory = data_.path()}));
  const TestDirectory backups;
  EXPECT_FALSE(files.back_up(backups / "d"));
  EXPECT_TRUE(backups.is_empty());
}

TEST_F(AdminFiles, RestoreReplacesNothing) {
  make_closed("d", 1);
  const Topic memory = create("m", in_memory());
  const TopicFiles files = files_of("d");
  const auto restore = [&](const std::string& name) {
    return code(files.restore(name, {}, topics_.path(), data_.path()));
  };
  EXPECT_EQ(restore("d"), Errc::exists);
  EXPECT_EQ(restore("m"), Errc::exists);
  EXPECT_EQ(restore("a/b"), Errc::invalid_argument);
  EXPECT_EQ(code(files.restore("new", {}, topics_.path(), data_.path() + "/missing")),
            Errc::not_found);
}

TEST_F(AdminFiles, ShowWhetherTheTopicIsOpenElsewhere) {
  const Topic topic = create("d", durable());
  const TestDirectory others;
  EXPECT_FALSE(files_of("d").is_open_elsewhere("d", topics_.path()));
  EXPECT_TRUE(files_of("d").is_open_elsewhere("d", others.path()));
  make_closed("closed", 1);
  EXPECT_FALSE(files_of("closed").is_open_elsewhere("closed", others.path()));
}

TEST_F(AdminFiles, SyncWaitsForStableStorage) {
  const Topic topic = create("d", durable());
  publish_numbers(topic, 10);
  must(topic.sync(10s));
  EXPECT_EQ(topic.info().partitions[0].durable, 10U);
  EXPECT_EQ(code(create("m", in_memory()).sync()), Errc::needs_durable);
}

}  // namespace
}  // namespace leat
