// If this failed, a process could open a half-created or damaged topic, or a
// topic could be deleted while it is in use.
#include <grp.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <fstream>

#include "testing.hpp"

namespace leat {
namespace {

namespace fs = std::filesystem;

TopicOptions small(const TestDirectory& directory) {
  return {.capacity_bytes = 4 * kSegment, .segment_bytes = kSegment, .directory = directory.path()};
}

TEST(Topic, IsCreatedOpenedListedAndRemoved) {
  const TestDirectory directory;
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::not_found);
  EXPECT_EQ(code(Topic::create("a", small(directory))), Errc::ok);
  EXPECT_EQ(code(Topic::create("b", small(directory))), Errc::ok);
  EXPECT_EQ(code(Topic::create("a", small(directory))), Errc::exists);
  EXPECT_EQ(must(Topic::open("a", 0s, directory.path())).name(), "a");

  auto names = must(Topic::list(directory.path()));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"a", "b"}));

  EXPECT_EQ(code(Topic::delete_topic("a", {.directory = directory.path()})), Errc::ok);
  EXPECT_EQ(code(Topic::delete_topic("a", {.directory = directory.path()})), Errc::not_found);
  EXPECT_EQ(code(Topic::open("a", 0s, directory.path())), Errc::not_found);
  EXPECT_EQ(must(Topic::list(directory.path())), std::vector<std::string>{"b"});
}

TEST(Topic, NamesOutsideTheRulesAreRefusedEverywhere) {
  const TestDirectory directory;
  const std::string long_name(201, 'x');
  for (const std::string& name :
       std::vector<std::string>{"", ".", "..", "+new-1", "a/b", "/a", "a b", "a\n", "\xc3\xa4",
                                "a:b", long_name, std::string{"a\0b", 3}}) {
    EXPECT_EQ(code(Topic::create(name, small(directory))), Errc::invalid_argument) << name;
    EXPECT_EQ(code(Topic::open(name, 0s, directory.path())), Errc::invalid_argument) << name;
    EXPECT_EQ(code(Topic::open_or_create(name, small(directory))), Errc::invalid_argument) << name;
    EXPECT_EQ(code(Topic::delete_topic(name, {.directory = directory.path()})),
              Errc::invalid_argument);
  }
  EXPECT_TRUE(directory.is_empty());
  for (const std::string& name :
       {std::string{"a"}, std::string{"A-z_0.9"}, std::string(200, 'x')}) {
    EXPECT_EQ(code(Topic::create(name, small(directory))), Errc::ok) << name;
  }
}

TEST(Topic, OptionsThatCannotBeAreRefused) {
  const TestDirectory directory;
  const std::string path = directory.path();
  const std::vector<TopicOptions> wrong = {
      {.capacity_bytes = (1ULL << 40) + 1, .directory = path},
      {.capacity_bytes = 1ULL << 40, .segment_bytes = kSegment, .directory = path},
      {.segment_bytes = (1ULL << 30) + 1, .directory = path},
      {.segment_bytes = ~0ULL, .directory = path},
      {.policy = static_cast<Policy>(4), .directory = path},
      {.partitions = 0, .directory = path},
      {.partitions = 1025, .directory = path},
      {.revoke_after = -1ns, .directory = path},
      {.evict_after = -1ns, .directory = path},
      {.participants = 0, .directory = path},
      {.participants = 4097, .directory = path},
      {.mode = 0700, .directory = path},
      {.mode = 04600, .directory = path},
      {.file_group = "no-such-group-here", .directory = path},
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    EXPECT_EQ(code(Topic::create("a", wrong[i])), Errc::invalid_argument) << "options " << i;
  }
  EXPECT_TRUE(directory.is_empty());
}

TEST(Topic, CapacityIsRoundedUpToWholeSegments) {
  const TestDirectory directory;
  const auto sizes = [&](const std::string& name, std::uint64_t capacity, std::uint64_t segment) {
    const TopicInfo info = must(Topic::create(name, {.capacity_bytes = capacity,
                                                     .segment_bytes = segment,
                                                     .directory = directory.path()}))
                               .info();
    return std::pair{info.capacity_bytes, info.segment_bytes};
  };
  using Sizes = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(sizes("eighths", 8 << 20, 0), (Sizes{8 << 20, 1 << 20}));
  EXPECT_EQ(sizes("tiny", 1, 0), (Sizes{8192, 4096}));
  EXPECT_EQ(sizes("odd", 100'000, 5000), (Sizes{106'496, 8192}));
  EXPECT_EQ(sizes("two", 8192, 65'536), (Sizes{131'072, 65'536}));
}

TEST(Topic, LargestRecordIsHalfASegmentLessTheHeader) {
  const TestTopic topic{{.segment_bytes = 8192}};
  EXPECT_EQ(topic->max_record_size(), 8192u / 2 - 16);
}

TEST(Topic, OneOfManyRacingCreatorsWins) {
  const TestDirectory directory;
  for (int round = 0; round < 50; ++round) {
    const std::string name = "race-" + std::to_string(round);
    std::atomic<int> won = 0;
    std::atomic<int> others = 0;
    std::vector<std::jthread> creators;
    for (int i = 0; i < 4; ++i) {
      creators.emplace_back([&] {
        const Errc result = code(Topic::create(name, small(directory)));
        won += result == Errc::ok;
        others += result == Errc::exists;
      });
    }
    creators.clear();
    ASSERT_EQ(won, 1) << name;
    ASSERT_EQ(others, 3) << name;
  }
  EXPECT_EQ(must(Topic::list(directory.path())).size(), 50u);
}

TEST(Topic, RacingOpenOrCreateAllGetTheSameTopic) {
  const TestDirectory directory;
  for (int round = 0; round < 20; ++round) {
    const std::string name = "race-" + std::to_string(round);
    {
      std::vector<std::jthread> users;
      for (int i = 0; i < 4; ++i) {
        users.emplace_back([&] {
          const Topic topic = must(Topic::open_or_create(name, small(directory)));
          must(must(topic.publisher()).publish("x"));
        });
      }
    }
    auto subscriber = from_beginning(must(Topic::open(name, 0s, directory.path())));
    ASSERT_EQ(drain(subscriber), repeated(4, "x"));
  }
}

TEST(Topic, OpenWaitsUntilItIsCreated) {
  const TestDirectory directory;
  std::jthread creator{[&] {
    std::this_thread::sleep_for(30ms);
    (void)must(Topic::create("late", small(directory)));
  }};
  EXPECT_EQ(code(Topic::open("late", 30s, directory.path())), Errc::ok);
}

TEST(Topic, OpenGivesUpAtItsDeadline) {
  const TestDirectory directory;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(code(Topic::open("never", 30ms, directory.path())), Errc::not_found);
  EXPECT_GE(std::chrono::steady_clock::now() - start, 30ms);
}

TEST(Topic, OpenWithoutDeadlineIsStoppedByItsToken) {
  const TestDirectory directory;
  std::stop_source source;
  std::jthread stopper{[&] {
    std::this_thread::sleep_for(20ms);
    source.request_stop();
  }};
  EXPECT_EQ(code(Topic::open("never", Deadline::never(), directory.path(), source.get_token())),
            Errc::stopped);
}

TEST(Topic, RemoveIsRefusedWhileSomebodyTakesPart) {
  const TestTopic topic;
  const DeleteOptions options{.directory = topic.directory()};
  {
    const auto publisher = must(topic->publisher());
    EXPECT_EQ(code(Topic::delete_topic(kTopicName, options)), Errc::busy);
  }
  {
    const auto subscriber = must(topic->subscriber());
    EXPECT_EQ(code(Topic::delete_topic(kTopicName, options)), Errc::busy);
  }
  // A Topic object alone is no participant.
  EXPECT_EQ(code(Topic::delete_topic(kTopicName, options)), Errc::ok);
  EXPECT_EQ(code(topic->publisher()), Errc::deleted);
  EXPECT_EQ(code(topic->subscriber()), Errc::deleted);
}

TEST(Topic, RefusedRemovalLeavesItUsable) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  EXPECT_EQ(code(Topic::delete_topic(kTopicName, {.directory = topic.directory()})), Errc::busy);
  must(publisher.publish("a"));
  auto subscriber = from_beginning(*topic);
  EXPECT_EQ(drain(subscriber), Log{"0 a"});
}

TEST(Topic, RemoveTakesNoNoticeOfTheDead) {
  const TestTopic topic;
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher());
    must(publisher.publish("a"));
    ::_exit(0);  // Exits without destructors, as if killed.
    return 1;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(code(Topic::delete_topic(kTopicName, {.directory = topic.directory()})), Errc::ok);
}

TEST(Topic, RemovedByForceTellsItsParticipants) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  auto subscriber = from_beginning(*topic);
  must(publisher.publish("a"));
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));

  EXPECT_EQ(code(publisher.publish("b")), Errc::deleted);
  // Earlier records are still delivered, then the error that explains why nothing more comes.
  const auto ignore = [](const Record&) {};
  EXPECT_EQ(must(subscriber.poll(1, ignore)), 1u);
  while (true) {
    auto polled = subscriber.poll(1, ignore);
    if (!polled) {
      EXPECT_EQ(code(polled), Errc::deleted);
      break;
    }
    ASSERT_EQ(*polled, 1u);
  }
  EXPECT_EQ(code(subscriber.receive()), Errc::deleted);
}

TEST(Topic, TellsWhereAPartitionEnds) {
  const TestDirectory directory;
  TopicOptions options = small(directory);
  options.partitions = 2;
  const Topic topic = must(Topic::create("a", options));
  Publisher publisher = must(topic.publisher({.partition = 1}));
  EXPECT_EQ(topic.end_offset(1), 0u);
  for (std::uint64_t i = 1; i <= 1000; ++i) {  // More than a segment has.
    must(publisher.publish("record"));
    ASSERT_EQ(topic.end_offset(1), i);
  }
  EXPECT_EQ(topic.end_offset(0), 0u);
  const auto claimed = must(publisher.claim(8));
  EXPECT_EQ(topic.end_offset(1), 1001u);
}

TEST(Topic, TellsThatItIsDeletedHoweverThatWasDone) {
  const TestDirectory directory;
  const Topic topic = must(Topic::create("a", small(directory)));
  EXPECT_FALSE(topic.is_deleted());
  must(Topic::delete_topic("a", {.force = true, .directory = directory.path()}));
  EXPECT_TRUE(topic.is_deleted());

  const Topic removed = must(Topic::create("a", small(directory)));
  ASSERT_GT(fs::remove_all(directory.path() + "/a"), 0U);
  EXPECT_TRUE(removed.is_deleted());
  const Topic next = must(Topic::create("a", small(directory)));
  EXPECT_TRUE(removed.is_deleted()) << "the name belongs to the next one";
  EXPECT_FALSE(next.is_deleted());
}

TEST(Topic, RemovedByForceEndsWaits) {
  const TestTopic topic{{.capacity_bytes = 2 * kSegment}};
  auto gate = from_beginning(*topic);
  std::atomic<int> waiting = 0;
  std::jthread reader{[&] {
    auto subscriber = must(topic->subscriber({.partition = 0}));
    ++waiting;
    while (true) {
      auto record = subscriber.receive();
      if (record) continue;
      EXPECT_EQ(code(record), Errc::deleted);
      break;
    }
  }};
  std::jthread writer{[&] {
    auto publisher = must(topic->publisher());
    ++waiting;
    while (true) {
      auto published = publisher.publish(std::string(kHalf, 'x'));
      if (published) continue;
      EXPECT_EQ(code(published), Errc::deleted);
      break;
    }
  }};
  while (waiting != 2) std::this_thread::yield();
  std::this_thread::sleep_for(20ms);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));
}

TEST(Topic, NameIsFreeAfterRemovalAndTheOldOneStaysApart) {
  const TestTopic topic;
  auto old_publisher = must(topic->publisher());
  auto old_subscriber = from_beginning(*topic);
  must(Topic::delete_topic(kTopicName, {.force = true, .directory = topic.directory()}));

  const Topic fresh = must(Topic::create(
      kTopicName,
      {.capacity_bytes = 4 * kSegment, .segment_bytes = kSegment, .directory = topic.directory()}));
  must(must(fresh.publisher()).publish("new"));
  (void)old_publisher.publish("old");
  auto subscriber = from_beginning(fresh);
  EXPECT_EQ(drain(subscriber), Log{"0 new"});
  EXPECT_EQ(code(topic->publisher()), Errc::deleted);
}

// Topics of the same name are created and deleted; every record contains its
// topic's generation. A process that opens the topic must see records of one
// generation only, or get `deleted`, or find no topic.
TEST(Topic, AttachNeverMixesTwoTopicsOfOneName) {
  const TestDirectory directory;
  std::atomic<bool> done = false;
  std::atomic<int> read = 0;
  std::vector<std::jthread> readers;
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      while (!done) {
        auto topic = Topic::open(kTopicName, 0s, directory.path());
        if (!topic) {
          ASSERT_EQ(code(topic), Errc::not_found);
          continue;
        }
        auto subscriber = topic->subscriber({.from = From::beginning});
        if (!subscriber) {
          ASSERT_EQ(code(subscriber), Errc::deleted);
          continue;
        }
        std::string generation;
        (void)subscriber->poll(1000, [&](const Record& record) {
          if (generation.empty()) generation = record.text();
          ASSERT_EQ(record.text(), generation);
          ++read;
        });
      }
    });
  }
  for (int generation = 0; generation < 300 || (read == 0 && generation < 3000); ++generation) {
    const Topic topic = must(Topic::create(kTopicName, small(directory)));
    {
      auto publisher = must(topic.publisher());
      for (int i = 0; i < 10; ++i) must(publisher.publish(std::to_string(generation)));
    }
    must(Topic::delete_topic(kTopicName, {.force = true, .directory = directory.path()}));
  }
  done = true;
  readers.clear();
  EXPECT_GT(read, 0);
}

TEST(Topic, FileOrLinkInItsPlaceIsWrongFormat) {
  const TestDirectory directory;
  TopicOptions options = small(directory);
  (void)std::fclose(std::fopen((directory / "file").c_str(), "w"));
  fs::create_symlink("nowhere", directory / "link");
  fs::create_directory(directory / "empty");
  for (const char* name : {"file", "link", "empty"}) {
    EXPECT_EQ(code(Topic::open(name, 0s, directory.path())), Errc::wrong_format) << name;
    EXPECT_EQ(code(Topic::open_or_create(name, options)), Errc::wrong_format) << name;
    EXPECT_EQ(code(Topic::create(name, options)), Errc::wrong_format) << name;
    EXPECT_EQ(code(Topic::delete_topic(name, {.force = true, .directory = directory.path()})),
              Errc::wrong_format)
        << name;
  }
}

TEST(Topic, DirectoryIsMadeOnlyWhereATopicIsToBe) {
  const TestDirectory parent;
  const std::string missing = parent / "missing";
  EXPECT_EQ(code(Topic::open("a", 0s, missing)), Errc::not_found);
  EXPECT_EQ(code(Topic::delete_topic("a", {.directory = missing})), Errc::not_found);
  EXPECT_TRUE(must(Topic::list(missing)).empty());
  EXPECT_FALSE(fs::exists(missing));
}

TEST(Topic, OptionsThatContradictEachOtherAreRefused) {
  const TestDirectory directory;
  const auto refused = [&](TopicOptions options) {
    options.directory = directory.path();
    return code(Topic::create("a", options));
  };
  EXPECT_EQ(refused({.policy = Policy::overwrite, .retain_all = true}), Errc::invalid_argument);
  EXPECT_EQ(refused({.retain_all = true, .evict_after = 1s}), Errc::invalid_argument);
  EXPECT_EQ(refused({.mode = 0444}), Errc::invalid_argument);
}

TEST(Topic, FilesAndDirectoryHaveTheModeAskedFor) {
  const TestDirectory directory;
  TopicOptions options = small(directory);
  options.mode = 0640;
  (void)must(Topic::create("a", options));
  const auto mode = [&](const fs::path& path) {
    struct stat status {};
    EXPECT_EQ(::stat(path.c_str(), &status), 0) << path;
    return status.st_mode & 07777;
  };
  EXPECT_EQ(mode(directory / "a" / "control"), 0640u);
  EXPECT_EQ(mode(directory / "a" / "records"), 0640u);
  EXPECT_EQ(mode(directory / "a") & 0111, 0110u);
}

TEST(Topic, FilesBelongToTheGroupAskedFor) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a file to another group needs root";
  const ::group* group = ::getgrnam("daemon");
  ASSERT_NE(group, nullptr);
  const TestDirectory directory;
  TopicOptions options = small(directory);
  options.mode = 0660;
  options.file_group = "daemon";
  (void)must(Topic::create("a", options));
  for (const char* file : {"", "control", "records"}) {
    struct stat status {};
    ASSERT_EQ(::stat((directory / "a" / file).c_str(), &status), 0);
    EXPECT_EQ(status.st_gid, group->gr_gid) << file;
  }
}

TEST(Topic, WithoutTheRightItIsPermission) {
  const TestDirectory directory;
  (void)must(Topic::create("a", small(directory)));
  Child child{[&] {
    if (::geteuid() == 0) {  // Root may do anything, so the test continues as another user.
      fs::permissions(directory.path(), fs::perms::all);
      if (::setuid(65534) != 0) return 1;
    } else {
      fs::permissions(directory / "a" / "control", fs::perms::none);
    }
    return code(Topic::open("a", 0s, directory.path())) == Errc::permission ? 0 : 2;
  }};
  EXPECT_EQ(child.join(), 0);
}

TEST(Topic, WhatIsNotATopicIsRefusedAndLeftAlone) {
  const TestDirectory directory;
  const auto expect_refused = [&](const std::string& name) {
    EXPECT_EQ(code(Topic::open(name, 0s, directory.path())), Errc::wrong_format) << name;
    EXPECT_EQ(code(Topic::create(name, small(directory))), Errc::wrong_format) << name;
    EXPECT_TRUE(fs::exists(directory / name));
  };
  fs::create_directory(directory / "empty");
  expect_refused("empty");

  fs::create_directory(directory / "short");
  std::ofstream{directory / "short" / "control"} << "hello";
  expect_refused("short");

  fs::create_directory(directory / "zeros");
  std::ofstream{directory / "zeros" / "control"} << std::string(65'536, '\0');
  expect_refused("zeros");

  std::ofstream{directory / "file"} << "hello";
  EXPECT_NE(code(Topic::open("file", 0s, directory.path())), Errc::ok);
  EXPECT_NE(code(Topic::create("file", small(directory))), Errc::ok);
  EXPECT_TRUE(fs::exists(directory / "file"));

  fs::create_symlink(directory / "zeros", directory / "link");
  EXPECT_NE(code(Topic::open("link", 0s, directory.path())), Errc::ok);
}

// One wrong field at a time, in an otherwise valid header.
TEST(Topic, EveryWrongHeaderFieldIsRefused) {
  const TestTopic topic;
  const std::string path = topic.directory() + "/topic/control";
  const auto with = [&](std::size_t offset, auto value) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    char old[sizeof(value)];
    file.seekg(static_cast<std::streamoff>(offset)).read(old, sizeof(old));
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof(value)).flush();
    const Errc result = code(Topic::open(kTopicName, 0s, topic.directory()));
    file.seekp(static_cast<std::streamoff>(offset)).write(old, sizeof(old)).flush();
    EXPECT_EQ(code(Topic::open(kTopicName, 0s, topic.directory())), Errc::ok);
    return result;
  };
  using detail::TopicHeader;
  EXPECT_EQ(with(offsetof(TopicHeader, magic), std::uint64_t{0}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(TopicHeader, format_version), std::uint32_t{1}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(TopicHeader, format_version), detail::kFormatVersion + 1),
            Errc::wrong_format);
  EXPECT_EQ(with(offsetof(TopicHeader, flags), std::uint32_t{1 << 20}), Errc::wrong_format);
  for (const std::uint64_t size : {0ULL, 1ULL, 4097ULL, 8192ULL, 1ULL << 31, ~0ULL}) {
    EXPECT_EQ(with(offsetof(TopicHeader, segment_size), size),
              size == 8192 ? Errc::ok : Errc::wrong_format)
        << size;  // A doubled segment size is noticed when the records are mapped, below.
  }
  for (const std::uint32_t count : {0U, 1U, 1024U, 1025U, ~0U}) {
    EXPECT_EQ(with(offsetof(TopicHeader, segment_count), count), Errc::wrong_format) << count;
    if (count != 1) {
      EXPECT_EQ(with(offsetof(TopicHeader, partition_count), count), Errc::wrong_format) << count;
    }
    EXPECT_EQ(with(offsetof(TopicHeader, participant_capacity), count), Errc::wrong_format);
  }
  EXPECT_EQ(with(offsetof(TopicHeader, policy), std::uint32_t{4}), Errc::wrong_format);
  // Policy grow, without the initial capacity.
  EXPECT_EQ(with(offsetof(TopicHeader, policy), std::uint32_t{3}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(TopicHeader, revoke_after_ns), std::int64_t{-1}), Errc::wrong_format);
  EXPECT_EQ(with(offsetof(TopicHeader, evict_after_ns), std::int64_t{-1}), Errc::wrong_format);
}

TEST(Topic, RecordsFileOfAnotherSizeIsRefused) {
  const TestTopic topic;
  fs::resize_file(topic.directory() + "/topic/records", 3 * kSegment);
  EXPECT_EQ(code(topic->publisher()), Errc::wrong_format);
  EXPECT_EQ(code(topic->subscriber()), Errc::wrong_format);
}

TEST(Topic, TooLittleSpaceIsAnErrorThatLeavesNothingBehind) {
  const TestDirectory directory;
  EXPECT_EQ(code(Topic::create("huge", {.capacity_bytes = 1ULL << 37,
                                        .segment_bytes = 1ULL << 30,
                                        .partitions = 1024,
                                        .directory = directory.path()})),
            Errc::no_space);
  EXPECT_TRUE(directory.is_empty());
}

TEST(Topic, DirectoryComesFromTheEnvironment) {
  const TestDirectory directory;
  Child child{[&] {
    ::setenv("LEAT_DIR", directory.path().c_str(), 1);
    TopicOptions options = small(directory);
    options.directory.clear();
    (void)must(Topic::create("here", options));
    return must(Topic::list()) == std::vector<std::string>{"here"} ? 0 : 1;
  }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(must(Topic::list(directory.path())), std::vector<std::string>{"here"});
}

TEST(Topic, MissingDirectoryIsMadePrivate) {
  const TestDirectory directory;
  const std::string path = directory / "inner";
  EXPECT_EQ(code(Topic::create("a", {.capacity_bytes = 1, .directory = path})), Errc::ok);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_all);
  EXPECT_EQ(code(Topic::create("a", {.capacity_bytes = 1, .directory = path + "/no/such"})),
            Errc::not_found);
}

}  // namespace
}  // namespace leat
