// If these tests failed, programs in C would crash when they close handles in another order than they made them,
// or grow without end when they open and close many.
#include <dirent.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <thread>

#include "capi.hpp"

using namespace leat_capi_test;

namespace {

std::size_t entries_of(const char* directory) {
  std::size_t count = 0;
  DIR* const all = ::opendir(directory);
  while (::readdir(all) != nullptr) ++count;
  ::closedir(all);
  return count;
}

std::size_t resident_kib() {
  std::ifstream file{"/proc/self/status"};
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("VmRSS:")) return std::stoul(line.substr(6));
  }
  return 0;
}

// One handle of each kind, and a claim; descriptors of subscriber and member that the helper thread sleeps on.
struct OneOfEach {
  enum Kind { kTopic, kPublisher, kSubscriber, kGroup, kMember, kClaim, kKinds };

  OneOfEach() {
    must(leat_topic_open("topic", 5, 0, nullptr, topic.out(), nullptr));
    must(leat_topic_publisher(topic.get(), nullptr, publisher.out(), nullptr));
    must(leat_topic_subscriber(topic.get(), nullptr, subscriber.out(), nullptr));
    must(leat_topic_find_group(topic.get(), "group", 5, group.out(), nullptr));
    must(leat_group_join(group.get(), nullptr, member.out(), nullptr));
    std::uint64_t offset = 0;
    must(leat_publisher_publish(publisher.get(), "held", 4, 0, &offset, nullptr));
    std::uint32_t count = 0;
    do {  // Past what the one before has left.
      must(leat_member_acknowledge_all(member.get(), nullptr));
      must(leat_member_receive(member.get(), &delivery, 1, &count, 10 * kSecond, nullptr));
    } while (delivery.record.offset != offset);
    must(leat_publisher_claim(publisher.get(), 4, 0, &claim, nullptr));
    leat_record record;
    must(leat_subscriber_receive(subscriber.get(), &record, 1, &count, 10 * kSecond, nullptr));
    std::int32_t fd = -1;
    must(leat_subscriber_wait_fd(subscriber.get(), &fd, nullptr));
    must(leat_member_wait_fd(member.get(), &fd, nullptr));
    do {  // Until there is nothing: that arms them.
      must(leat_subscriber_poll(subscriber.get(), &record, 1, &count, nullptr));
    } while (count != 0);
    leat_delivery none;
    EXPECT_EQ(leat_member_receive(member.get(), &none, 1, &count, 0, nullptr), LEAT_ERR_TIMEOUT);
  }

  std::int32_t close(int kind) {
    switch (kind) {
      case kTopic: return topic.close();
      case kPublisher: return publisher.close();
      case kSubscriber: return subscriber.close();
      case kGroup: return group.close();
      case kMember: return member.close();
      default: return leat_publisher_commit(publisher.get(), &claim, 4, nullptr);
    }
  }

  // That what is left works as before.
  void expect_use(const std::array<bool, kKinds>& is_closed) {
    if (!is_closed[kTopic]) {
      std::uint32_t count = 0;
      EXPECT_EQ(leat_topic_partitions(topic.get(), &count), LEAT_OK);
    }
    if (!is_closed[kGroup]) {
      std::uint64_t offset = 0;
      EXPECT_EQ(leat_group_position(group.get(), 0, &offset), LEAT_OK);
    }
    if (!is_closed[kPublisher]) {
      EXPECT_EQ(leat_publisher_publish(publisher.get(), "", 0, 0, nullptr, nullptr),
                is_closed[kClaim] ? LEAT_OK : LEAT_ERR_BUSY);
    }
    leat_record record;
    std::uint32_t count = 0;
    if (!is_closed[kSubscriber]) {
      EXPECT_EQ(leat_subscriber_poll(subscriber.get(), &record, 1, &count, nullptr), LEAT_OK);
    }
    if (!is_closed[kMember]) {
      EXPECT_EQ(text_of(delivery.record), "held");
      std::uint64_t in_flight = 0;
      EXPECT_EQ(leat_member_in_flight(member.get(), &in_flight), LEAT_OK);
      EXPECT_GE(in_flight, 1U);
    }
  }

  TopicHandle topic;
  PublisherHandle publisher;
  SubscriberHandle subscriber;
  GroupHandle group;
  MemberHandle member;
  leat_delivery delivery{};
  leat_claim claim{};
};

// Small, so that making it anew costs nothing but that.
GroupHandle create_small_group(const TopicHandle& topic) {
  leat_group_options options = LEAT_GROUP_OPTIONS_INIT;
  options.members = 2;
  options.in_flight = 8;
  GroupHandle group;
  must(leat_topic_group(topic.get(), "group", 5, &options, group.out(), nullptr, nullptr));
  return group;
}

}  // namespace

// Of the six all 720 orders; each time another of them is closed, and closed again, by another thread.
TEST_F(CapiTest, HandlesCloseInAnyOrderOnAnyThread) {
  auto topic = create();
  auto group = create_small_group(topic);
  std::array<int, OneOfEach::kKinds> order{0, 1, 2, 3, 4, 5};
  unsigned number = 0;
  do {
    if (LEAT_TEST_SANITIZED != 0 && number % 7 != 0) continue;
    OneOfEach all;
    std::array<bool, OneOfEach::kKinds> is_closed{};
    for (const int kind : order) {
      const bool is_late = kind == OneOfEach::kClaim && is_closed[OneOfEach::kPublisher];
      const auto close_twice = [&] {
        EXPECT_EQ(all.close(kind), is_late ? LEAT_ERR_INVALID_ARGUMENT : LEAT_OK);
        const bool is_commit = kind == OneOfEach::kClaim && !is_late;
        EXPECT_EQ(all.close(kind), is_commit ? LEAT_ERR_NOT_IN_FLIGHT : LEAT_ERR_INVALID_ARGUMENT);
      };
      if (static_cast<unsigned>(kind) == number % OneOfEach::kKinds) {
        std::thread{close_twice}.join();
      } else {
        close_twice();
      }
      is_closed[static_cast<std::size_t>(kind)] = true;
      all.expect_use(is_closed);
    }
    if (testing::Test::HasFailure()) break;
  } while (++number, std::ranges::next_permutation(order).found);
  EXPECT_EQ(number, 720U);
  leat_topic_info info{};
  info.size = sizeof(info);
  must(leat_topic_get_info(topic.get(), &info, nullptr, 0, nullptr, 0, nullptr));
  EXPECT_EQ(info.participant_count, 0U);
}

// Of each kind the same number, together 10,000. Their owners' destructors close them.
TEST_F(CapiTest, TenThousandHandlesLeaveNothingBehind) {
  auto topic = create();
  auto group = create_small_group(topic);
  const auto open_and_close = [&](int rounds) {
    for (int i = 0; i < rounds; ++i) OneOfEach{};
    ::malloc_trim(0);
  };
  const int rounds = LEAT_TEST_SANITIZED != 0 ? 100 : 10'000 / OneOfEach::kKinds + 1;
  open_and_close(rounds / 10);
  const std::size_t descriptors = entries_of("/proc/self/fd");
  const std::size_t threads = entries_of("/proc/self/task");
  [[maybe_unused]] const std::size_t memory = resident_kib();
  open_and_close(rounds);
  EXPECT_LE(entries_of("/proc/self/fd"), descriptors);
  EXPECT_LE(entries_of("/proc/self/task"), threads);
#if !LEAT_TEST_SANITIZED  // Sanitizers keep memory that was freed.
  EXPECT_LE(resident_kib(), memory + 64);
#endif
}
