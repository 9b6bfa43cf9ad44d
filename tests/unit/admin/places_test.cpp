// Names, places and sizes, as a program sees them before it makes or opens a topic. If these failed, a tool would refuse what the
// library accepts, look in other directories than it, or give advice that does not help.
#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "unit/admin/admin_testing.hpp"

namespace leat {
namespace {

class AdminPlaces : public AdminTest {};
class AdminSizes : public AdminTest {};

// Sets a variable of the environment until the end of a test.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_{name} {
    if (const char* before = std::getenv(name); before != nullptr) before_ = before;
    if (value != nullptr)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Variable() {
    if (before_)
      ::setenv(name_, before_->c_str(), 1);
    else
      ::unsetenv(name_);
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST_F(AdminPlaces, AreTheGivenOneThatOfTheEnvironmentOrTheDefault) {
  {
    const Variable none{"LEAT_DIR", nullptr};
    EXPECT_EQ(topics_directory(), default_topics_directory());
    EXPECT_EQ(default_topics_directory(), "/dev/shm/leat-" + std::to_string(::geteuid()));
  }
  const Variable topics{"LEAT_DIR", "/some/topics/"};
  EXPECT_EQ(topics_directory(), "/some/topics");
  EXPECT_EQ(topics_directory("/others//"), "/others");
  const Variable data{"LEAT_DATA_DIR", "/some/data/"};
  EXPECT_EQ(data_directory(), "/some/data");
  EXPECT_EQ(data_directory("/others/"), "/others");
  const Variable no_data{"LEAT_DATA_DIR", nullptr};
  const Variable xdg{"XDG_DATA_HOME", "/some/xdg"};
  EXPECT_EQ(data_directory(), "/some/xdg/leat");
}

TEST_F(AdminPlaces, AreCheckedAndMadeIfWanted) {
  const std::string topics = topics_ / "new";
  EXPECT_EQ(code(check_topics_directory(topics)), Errc::not_found);
  EXPECT_FALSE(std::filesystem::exists(topics));
  must(check_topics_directory(topics, true));
  struct stat status {};
  ASSERT_EQ(::stat(topics.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  const std::string data = data_ / "a" / "b";
  EXPECT_EQ(code(check_data_directory(data)), Errc::not_found);
  must(check_data_directory(data, true));
  EXPECT_TRUE(std::filesystem::is_directory(data));
  const std::string file = topics_ / "file";
  std::ofstream{file} << "x";
  EXPECT_EQ(check_topics_directory(file).error().system_error, ENOTDIR);
  EXPECT_EQ(check_data_directory(file).error().system_error, ENOTDIR);
}

TEST_F(AdminPlaces, KnowWhichNamesAreTaken) {
  EXPECT_FALSE(has_memory("m", topics_.path()));
  const Topic memory = create("m", in_memory());
  EXPECT_TRUE(has_memory("m", topics_.path()));
  EXPECT_FALSE(has_files("m", data_.path()));
  {
    const Topic durable_topic = create("d", durable());
    EXPECT_TRUE(has_memory("d", topics_.path()));
  }
  EXPECT_FALSE(has_memory("d", topics_.path()));  // No process has it open any more.
  EXPECT_TRUE(has_files("d", data_.path()));
  EXPECT_FALSE(has_files("d", data_.path() + "/missing"));
}

TEST_F(AdminPlaces, HaveThingsOfOtherPrograms) {
  const Topic topic = create("t", in_memory());
  std::ofstream{topics_ / "file"} << "x";
  std::filesystem::create_directory(topics_ / "directory");
  std::filesystem::create_symlink(topics_ / "t", topics_ / "link");
  const auto foreign = [&](const char* name) { return is_foreign(name, topics_.path()); };
  EXPECT_TRUE(foreign("file"));
  EXPECT_TRUE(foreign("directory"));
  EXPECT_TRUE(foreign("link"));
  EXPECT_FALSE(foreign("t"));
  EXPECT_FALSE(foreign("missing"));
  std::filesystem::remove(topics_ / "t" / "control");
  EXPECT_FALSE(foreign("t"));  // A damaged topic is one, too.
}

TEST_F(AdminPlaces, ValidNamesAreThoseThatTopicsCanHave) {
  const std::string longest(200, 'x');
  for (const std::string& name : {std::string{"a"}, std::string{"A-z_0.9"}, longest}) {
    EXPECT_TRUE(is_valid_name(name)) << name;
    EXPECT_TRUE(Topic::create(name, in_memory())) << name;
  }
  for (const std::string& name : {std::string{}, std::string{"."}, std::string{".."},
                                  std::string{"a/b"}, std::string{"a b"}, longest + "x"}) {
    EXPECT_FALSE(is_valid_name(name)) << name;
    EXPECT_EQ(code(Topic::create(name, in_memory())), Errc::invalid_argument) << name;
  }
}

TEST_F(AdminPlaces, DeadLetterTopicIsThatOfTheGroup) {
  const Topic topic = create("t", in_memory());
  for (const char* name : {"g", "a.b.c"}) {
    const Group group = must(topic.group(name, {.max_deliveries = 1}));
    EXPECT_EQ(dead_letter_topic("t", name), group.info().dead_letter_topic);
  }
}

TEST_F(AdminSizes, AreThoseOfTheTopicThatIsMade) {
  std::vector<TopicOptions> all(6, {.directory = topics_.path()});
  all[1].capacity_bytes = 1;
  all[2].capacity_bytes = 100'000;
  all[3].segment_bytes = 5000;
  all[4].capacity_bytes = 100'000;
  all[4].segment_bytes = 60'000;
  all[5] = durable();
  all[5].capacity_bytes = all[5].segment_bytes = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == 3) all[i].capacity_bytes = 50'000;
    const Topic topic = create("t" + std::to_string(i), all[i]);
    const TopicInfo info = topic.info();
    EXPECT_EQ(sizes_of(all[i]).segment_bytes, info.segment_bytes) << i;
    EXPECT_EQ(sizes_of(all[i]).capacity_bytes, info.capacity_bytes) << i;
    EXPECT_EQ(max_record_bytes(info.segment_bytes), topic.max_record_size()) << i;
  }
}

TEST_F(AdminSizes, LimitsAreWhatCreateAccepts) {
  int made = 0;
  const auto result = [&](const auto& change, TopicOptions options) {
    change(options);
    return code(Topic::create("t" + std::to_string(++made), options));
  };
  const auto expect_limit = [&](const auto& change, auto last, auto beyond, TopicOptions options) {
    EXPECT_EQ(result([&](TopicOptions& one) { change(one, last); }, options), Errc::ok) << made;
    EXPECT_EQ(result([&](TopicOptions& one) { change(one, beyond); }, options),
              Errc::invalid_argument)
        << made;
  };
  const auto partitions = [](TopicOptions& one, std::uint32_t value) { one.partitions = value; };
  TopicOptions small = in_memory();
  small.segment_bytes = TopicLimits::kMinSegment;
  small.capacity_bytes = TopicLimits::kMinCapacity;
  small.participants = 1;
  expect_limit(partitions, TopicLimits::kMaxPartitions, TopicLimits::kMaxPartitions + 1, small);
  const auto participants = [](TopicOptions& one, std::uint32_t value) {
    one.participants = value;
  };
  expect_limit(participants, TopicLimits::kMaxParticipants, TopicLimits::kMaxParticipants + 1,
               in_memory());
  const auto capacity = [](TopicOptions& one, std::uint64_t value) { one.capacity_bytes = value; };
  small.segment_bytes = TopicLimits::kMinSegment;
  expect_limit(capacity, TopicLimits::kMaxSegments * TopicLimits::kMinSegment,
               TopicLimits::kMaxSegments * TopicLimits::kMinSegment + 1, small);
  const auto file = [](TopicOptions& one, std::uint64_t value) { one.file_bytes = value; };
  expect_limit(file, TopicLimits::kMinFile, TopicLimits::kMinFile - 1, durable());
  expect_limit(file, TopicLimits::kMaxFile, TopicLimits::kMaxFile + 1, durable());
  TopicOptions at_intervals = durable();
  at_intervals.durable = Durability::interval;
  const auto interval = [](TopicOptions& one, std::chrono::nanoseconds value) {
    one.sync_interval = value;
  };
  expect_limit(interval, TopicLimits::kMinSyncInterval, TopicLimits::kMinSyncInterval - 1ns,
               at_intervals);
  expect_limit(interval, TopicLimits::kMaxSyncInterval, TopicLimits::kMaxSyncInterval + 1ns,
               at_intervals);
  for (const auto& [segment, capacity_bytes] :
       {std::pair{TopicLimits::kMaxSegment + 1, 4 * TopicLimits::kMaxSegment},
        std::pair{TopicLimits::kMaxSegment, TopicLimits::kMaxCapacity + 1}}) {
    TopicOptions large = in_memory();
    large.segment_bytes = segment;
    large.capacity_bytes = capacity_bytes;
    EXPECT_EQ(code(Topic::create("large", large)), Errc::invalid_argument);
  }
}

TEST_F(AdminSizes, LargestRecordFitsAndOneByteMoreDoesNot) {
  TopicOptions options = in_memory();
  options.timestamps = true;
  const Topic topic = create("t", options);
  auto publisher = must(topic.publisher());
  const Header header{"name", "a value"};
  NewRecord record{.key = "key", .headers = {&header, 1}};
  const std::uint64_t rest = record_bytes(record, true);
  const std::string value(topic.max_record_size() - rest + 1, 'v');
  record.value = std::string_view{value}.substr(1);
  EXPECT_EQ(record_bytes(record, true), topic.max_record_size());
  EXPECT_TRUE(publisher.publish(record));
  record.value = value;
  EXPECT_EQ(code(publisher.publish(record)), Errc::too_large);
}

TEST_F(AdminSizes, RoomOfARecordIsWhatItTakes) {
  const Topic topic = create("t", in_memory());
  auto publisher = must(topic.publisher());
  for (const unsigned size : {0U, 1U, 8U, 9U, 100U, 1000U}) {
    const std::uint64_t before = topic.info().partitions[0].used_bytes;
    must(publisher.publish(std::string(size, 'x')));
    EXPECT_EQ(topic.info().partitions[0].used_bytes - before, room_of_record(size)) << size;
  }
}

}  // namespace
}  // namespace leat
