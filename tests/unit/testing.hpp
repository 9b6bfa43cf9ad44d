// Shared by the unit tests: topics in a private directory, and short ways to fill and read them.
//
//     TestTopic topic{{.capacity_bytes = 4 * kSegment}};
//     auto publisher = must(topic->publisher());
//     must(publisher.publish("a"));
//     EXPECT_EQ(drain(subscriber), (Log{"0 a", "1+2 aborted"}));  // a record, a gap of two
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "leat/leat.hpp"
#include "leat/log/directory.hpp"
#include "leat/log/mapped_topic.hpp"
#include "support/calm_fork.hpp"

namespace leat::inline v0 {

using namespace std::chrono_literals;

// The smallest segment. Three records of kThird bytes fill one, or two of kHalf bytes.
inline constexpr std::size_t kSegment = detail::Geometry::kMinSegmentSize;
inline constexpr std::size_t kThird = 1344;
inline constexpr std::size_t kHalf = 2032;
inline const std::string kHalfText(kHalf, 'h');

// A callback for polls that only count records.
inline constexpr auto kIgnore = [](const Record&) {};

// The value of a Result. If it has none, the test fails with its error.
template <class T>
T must(Result<T> result) {
  if (!result) throw std::runtime_error{describe(result.error())};
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Make failed comparisons print text instead of bytes.
inline void PrintTo(const Error& error, std::ostream* out) { *out << describe(error); }
inline void PrintTo(Errc code, std::ostream* out) { *out << describe({code, 0}); }

// The code of a Result, Errc::ok with a value: EXPECT_EQ(code(publisher.publish("x")), Errc::full).
template <class T>
Errc code(const Result<T>& result) {
  return result.error().code;
}

// A new directory in shared memory, removed at the end.
class TestDirectory {
 public:
  TestDirectory() {
    char path[] = "/dev/shm/leat-unit-XXXXXX";
    if (::mkdtemp(path) == nullptr) throw std::runtime_error{"mkdtemp failed in /dev/shm"};
    path_ = path;
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  ~TestDirectory() {
    if (::getpid() == owner_) std::filesystem::remove_all(path_);
  }
  const std::string& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const {
    return std::filesystem::path{path_} / name;
  }
  // Opens the file; creates it if it does not exist.
  detail::Fd open_file(const char* name) const {
    return detail::Fd{::open((*this / name).c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)};
  }
  bool is_empty() const {
    for (const auto& entry : std::filesystem::directory_iterator{path_}) {
      if (entry.path().filename() != detail::kDirectoryLock) return false;
    }
    return true;
  }

 private:
  std::string path_;
  pid_t owner_ = ::getpid();  // A forked child does not remove it.
};

inline constexpr char kTopicName[] = "topic";

// A topic of small segments in a directory of its own; options.directory is set to that.
class TestTopic {
 public:
  explicit TestTopic(TopicOptions options = {}) : topic_{must(create(options))} {}
  // For tests of wrap-around: a topic that begins at any segment and offset.
  TestTopic(const TopicOptions& options, std::uint64_t first_segment, std::uint64_t first_offset);

  const Topic* operator->() const { return &topic_; }
  const Topic& operator*() const { return topic_; }
  const std::string& directory() const { return directory_.path(); }
  Topic open_again() const {
    return must(Topic::open(kTopicName, 0s, directory(), {}, data_.path()));
  }
  // Only for tests of internals.
  detail::MappedTopic& shared() const;

 private:
  TopicOptions complete(TopicOptions options) const {
    if (options.segment_bytes == 0) options.segment_bytes = kSegment;
    if (options.capacity_bytes == TopicOptions{}.capacity_bytes)
      options.capacity_bytes = 4 * options.segment_bytes;
    options.directory = directory();
    // The tests of groups run a second time, on durable topics.
    if (const char* level = std::getenv("LEAT_TEST_DURABLE"); level != nullptr) {
      options.durable = std::string{level} == "fsync" ? Durability::fsync : Durability::os;
      options.data_directory = data_.path();
    }
    return options;
  }
  Result<Topic> create(const TopicOptions& options) const {
    return Topic::create(kTopicName, complete(options));
  }

  TestDirectory directory_;
  TestDirectory data_;
  Topic topic_;
};

// The library declares this name as a friend.
struct TopicTesting {
  static Result<detail::NewTopic> new_topic(const TopicOptions& options) {
    return Topic::new_topic(options);
  }
  static Result<Topic> create(const std::string& name, const detail::NewTopic& topic,
                              const std::string& directory) {
    return Topic::create(name, topic, directory);
  }
  static Topic make(std::shared_ptr<detail::MappedTopic> topic, const std::string& directory) {
    return Topic{kTopicName, std::move(topic), directory};
  }
  static detail::MappedTopic& shared(const Topic& topic) { return *topic.topic_; }
  static std::shared_ptr<detail::MappedTopic> shared_pointer(const Topic& topic) {
    return topic.topic_;
  }
};

inline TestTopic::TestTopic(const TopicOptions& options, std::uint64_t first_segment,
                            std::uint64_t first_offset)
    : topic_{[&] {
        auto created = must(TopicTesting::new_topic(complete(options)));
        created.first_segment = first_segment;
        created.first_offset = first_offset;
        return must(TopicTesting::create(kTopicName, created, directory()));
      }()} {}

// How many mappings of topics' records this process has.
inline int count_mapped_records() {
  std::ifstream maps{"/proc/self/maps"};
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.ends_with("/records") ? 1 : 0;
  return count;
}

inline detail::MappedTopic& TestTopic::shared() const { return TopicTesting::shared(topic_); }

// What a subscriber delivered: "offset text" for a record, "first+count reason" for a gap.
using Log = std::vector<std::string>;

inline std::string to_text(const Event& event) {
  return std::to_string(event.first) + "+" + std::to_string(event.count) + " " +
         name_of(event.reason);
}
inline std::string to_text(const Record& record) {
  return std::to_string(record.offset) + " " + std::string{record.text()};
}

// Everything that is available, read in calls of poll(limit).
inline Log drain(Subscriber& subscriber, std::size_t limit = 1000) {
  Log log;
  bool had_event = false;
  subscriber.on_event([&](const Event& event) {
    log.push_back(to_text(event));
    had_event = true;
  });
  while (true) {
    had_event = false;
    const std::size_t count =
        must(subscriber.poll(limit, [&](const Record& record) { log.push_back(to_text(record)); }));
    if (count > limit) throw std::runtime_error{"more records than the limit"};
    if (count == 0 && !had_event) break;
  }
  subscriber.on_event({});
  return log;
}

// The same, but waits until everything below the offset `end` of the partition was read.
inline Log read_until(Subscriber& subscriber, std::uint64_t end, std::uint32_t partition = 0) {
  Log log = drain(subscriber);
  while (subscriber.offset(partition) < end) {
    must(subscriber.wait(30s));
    const Log more = drain(subscriber);
    log.insert(log.end(), more.begin(), more.end());
  }
  return log;
}

inline Subscriber from_beginning(const Topic& topic) {
  return must(topic.subscriber({.from = From::beginning}));
}

// "0 x", "1 x", …: the log of `count` records with the same text.
inline Log repeated(std::uint64_t count, const std::string& text, std::uint64_t first = 0) {
  Log log;
  for (std::uint64_t i = 0; i < count; ++i) log.push_back(std::to_string(first + i) + " " + text);
  return log;
}

// The seed of a randomized test. It is printed; LEAT_SEED=seed repeats the run.
inline std::uint64_t test_seed() {
  const char* given = std::getenv("LEAT_SEED");
  const std::uint64_t seed =
      given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
  std::printf("LEAT_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// A forked child that runs `body` and exits with its result; 99 for an exception. `fork` may be ::fork, where other
// threads must not be waited for.
class Child {
 public:
  template <class Body>
  explicit Child(Body body, ::pid_t (*fork)() = calm_fork) : pid_{fork()} {
    if (pid_ != 0) return;
    int status = 99;
    try {
      status = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
    }
    ::_exit(status);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (pid_ > 0) kill(SIGKILL);
  }

  pid_t pid() const { return pid_; }
  // Its exit status, or the negated number of the signal that ended it.
  int join() {
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int kill(int signal) {
    ::kill(pid_, signal);
    return join();
  }

 private:
  pid_t pid_;
};

// A publisher of another process is killed while a claim is open.
inline void claim_and_die(const TestTopic& topic, const PublisherOptions& options = {}) {
  Child child{[&] {
    auto publisher = must(topic.open_again().publisher(options));
    auto claim = must(publisher.try_claim(1));
    ::raise(SIGKILL);
    return 0;
  }};
  EXPECT_EQ(child.join(), -SIGKILL);
}

}  // namespace leat::inline v0
