// Shared by the tests of the C library: a private directory of topics, and handles that close themselves.
//
//     TEST_F(CapiTest, …) {
//       auto topic = create();
//       auto publisher = open_publisher(topic);
//       EXPECT_EQ(leat_publisher_publish(publisher.get(), "a", 1, 0, nullptr, nullptr), LEAT_OK);
#pragma once

#include <gtest/gtest.h>
#include <leat/leat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "support/calm_fork.hpp"

namespace leat_capi_test {

constexpr std::int64_t kSecond = 1'000'000'000;

// Fails the test that ignores an error.
inline void must(std::int32_t code) {
  if (code != LEAT_OK) throw std::runtime_error{leat_error_name(code)};
}

template <class Object, std::int32_t (*kClose)(Object**)>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : object_{std::exchange(other.object_, nullptr)} {}
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (object_ != nullptr) kClose(&object_);
  }
  Object* get() const { return object_; }
  Object** out() { return &object_; }
  std::int32_t close() { return kClose(&object_); }

 private:
  Object* object_ = nullptr;
};
using TopicHandle = Handle<leat_topic, leat_topic_close>;
using PublisherHandle = Handle<leat_publisher, leat_publisher_close>;
using SubscriberHandle = Handle<leat_subscriber, leat_subscriber_close>;
using GroupHandle = Handle<leat_group, leat_group_close>;
using MemberHandle = Handle<leat_member, leat_member_close>;

inline std::string text_of(const leat_record& record) {
  return {reinterpret_cast<const char*>(record.value), record.value_size};
}
inline leat_bytes bytes_of(const std::string& text) { return {text.data(), text.size()}; }

// What a call of a function that returns a text gives: call(buffer, capacity, size).
template <class Call>
std::string text_from(Call&& call) {
  std::uint64_t size = 0;
  if (const std::int32_t code = call(nullptr, std::uint64_t{0}, &size); code == LEAT_OK) return {};
  std::string text(size, '\0');
  must(call(text.data(), text.size(), &size));
  EXPECT_EQ(size, text.size());
  return text;
}

class CapiTest : public testing::Test {
 protected:
  CapiTest() {
    char path[] = "/dev/shm/leat-capi-XXXXXX";
    if (::mkdtemp(path) == nullptr) throw std::runtime_error{"mkdtemp failed in /dev/shm"};
    directory_ = path;
    ::setenv("LEAT_DIR", (directory_ + "/topics").c_str(), 1);
    ::setenv("LEAT_DATA_DIR", (directory_ + "/data").c_str(), 1);
    std::filesystem::create_directory(directory_ + "/topics");
    std::filesystem::permissions(directory_ + "/topics", std::filesystem::perms::owner_all);
  }
  ~CapiTest() override { std::filesystem::remove_all(directory_); }

  // The smallest topic, with these options otherwise.
  static TopicHandle create(leat_topic_options options = LEAT_TOPIC_OPTIONS_INIT) {
    if (options.segment_bytes == 0) options.segment_bytes = 4096;
    if (options.capacity_bytes == 0) options.capacity_bytes = 4 * options.segment_bytes;
    TopicHandle topic;
    must(leat_topic_create("topic", LEAT_TEXT, &options, topic.out(), nullptr));
    return topic;
  }
  static PublisherHandle open_publisher(const TopicHandle& topic) {
    PublisherHandle publisher;
    must(leat_topic_publisher(topic.get(), nullptr, publisher.out(), nullptr));
    return publisher;
  }
  static SubscriberHandle open_subscriber(
      const TopicHandle& topic, leat_subscriber_options options = LEAT_SUBSCRIBER_OPTIONS_INIT) {
    if (options.from == LEAT_FROM_END) options.from = LEAT_FROM_BEGINNING;
    SubscriberHandle subscriber;
    must(leat_topic_subscriber(topic.get(), &options, subscriber.out(), nullptr));
    return subscriber;
  }
  static GroupHandle open_group(const TopicHandle& topic,
                                leat_group_options options = LEAT_GROUP_OPTIONS_INIT) {
    options.from = LEAT_FROM_BEGINNING;
    GroupHandle group;
    must(
        leat_topic_group(topic.get(), "group", LEAT_TEXT, &options, group.out(), nullptr, nullptr));
    return group;
  }
  static MemberHandle join(const GroupHandle& group) {
    MemberHandle member;
    must(leat_group_join(group.get(), nullptr, member.out(), nullptr));
    return member;
  }

  static std::uint64_t publish(const PublisherHandle& publisher, const std::string& value) {
    std::uint64_t offset = 0;
    must(leat_publisher_publish(publisher.get(), value.data(), value.size(), 0, &offset, nullptr));
    return offset;
  }
  // Everything that is there; a gap as "first+count reason".
  static std::vector<std::string> drain(const SubscriberHandle& subscriber,
                                        std::uint32_t capacity = 16) {
    std::vector<std::string> all;
    std::vector<leat_record> records(capacity);
    std::uint32_t count = 0;
    do {
      must(leat_subscriber_poll(subscriber.get(), records.data(), capacity, &count, nullptr));
      EXPECT_LE(count, capacity);
      for (std::uint32_t i = 0; i < count; ++i) all.push_back(entry(records[i]));
    } while (count != 0);
    return all;
  }
  static std::string entry(const leat_record& record) {
    if (leat_record_is_gap(&record) == 0) return text_of(record);
    return std::to_string(record.offset) + "+" + std::to_string(leat_gap_count(&record)) + " " +
           leat_gap_reason_name(leat_gap_reason(&record));
  }

  // Runs `body` in a child; returns its exit status.
  template <class Body>
  static int in_child(Body&& body) {
    const pid_t child = leat::calm_fork();
    if (child == 0) {
      int status = 1;
      try {
        status = body() ? 0 : 1;
      } catch (...) {
      }
      ::_exit(status);
    }
    int status = -1;
    ::waitpid(child, &status, 0);
    return status;
  }

  std::string directory_;
};

}  // namespace leat_capi_test
