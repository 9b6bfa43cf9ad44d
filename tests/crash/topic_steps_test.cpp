// If this failed, a process that dies or stops while it creates or deletes a topic could make the
// topic's name unusable for others, or leave an incomplete topic.
#include <algorithm>

#include "leat/os/being_made.hpp"
#include "scenarios.hpp"

namespace leat::testing {
namespace {

struct Case {
  std::string step;
  int signal = SIGKILL;
  bool force = false;
};
std::ostream& operator<<(std::ostream& out, const Case& one) {
  return out << one.step << (one.signal == SIGKILL ? " killed" : " stopped")
             << (one.force ? ", forced" : "");
}
std::string name_of_case(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.step + (info.param.signal == SIGKILL ? "_killed" : "_stopped") +
                     (info.param.force ? "_forced" : "");
  std::replace(name.begin(), name.end(), ':', '_');
  return name;
}

constexpr int kOldRecords = 3;

class TopicSteps : public ::testing::TestWithParam<Case> {
 protected:
  TopicOptions options() const {
    return {.capacity_bytes = 16384, .segment_bytes = 4096, .directory = directory_.path()};
  }
  Result<Topic> open(const char* name = "topic") {
    return Topic::open(name, Deadline::immediate(), directory_.path());
  }
  Result<void> remove(const char* name, bool force) {
    return Topic::delete_topic(name, {.force = force, .directory = directory_.path()});
  }
  std::vector<std::string> names() {
    auto listed = Topic::list(directory_.path());
    EXPECT_TRUE(listed) << describe(listed.error());
    if (!listed) return {};
    std::sort(listed->begin(), listed->end());
    return *listed;
  }

  // A child that runs `body` and is killed or stopped at the step of this case.
  Child hurt(const std::function<int()>& body) {
    const Case& one = GetParam();
    Child victim{[&] {
      arm({one.step, 1, one.signal});
      return body();
    }};
    victim.wait();
    EXPECT_TRUE(one.signal == SIGKILL ? victim.was_killed()
                                      : victim.poll() == Child::State::stopped)
        << victim.describe();
    return victim;
  }

  // All records of the topic, from the beginning.
  std::vector<std::string> texts(Topic& topic) {
    std::vector<std::string> found;
    auto reader = topic.subscriber({.from = From::beginning});
    EXPECT_TRUE(reader) << describe(reader.error());
    if (!reader) return found;
    EXPECT_TRUE(
        reader->poll(1000, [&](const Record& record) { found.emplace_back(record.text()); }));
    return found;
  }
  void expect_works(Topic& topic, const std::vector<std::string>& old) {
    auto publisher = topic.publisher();
    ASSERT_TRUE(publisher) << describe(publisher.error());
    auto offset = publisher->publish("one more");
    ASSERT_TRUE(offset) << describe(offset.error());
    EXPECT_EQ(*offset, old.size());
    std::vector<std::string> expected = old;
    expected.emplace_back("one more");
    EXPECT_EQ(texts(topic), expected);
  }

  TemporaryDirectory directory_;
};

// ---- Creation -----------------------------------------------------------------------------------

class CreateSteps : public TopicSteps {};

TEST_P(CreateSteps, NameIsFreeForOthers) {
  Child victim = hurt([&]() -> int {
    auto created = Topic::create("topic", options());
    CHILD_CHECK(created.error().code == Errc::exists);
    return 0;
  });
  EXPECT_EQ(names(), std::vector<std::string>{});
  EXPECT_EQ(open().error().code, Errc::not_found);
  auto topic = Topic::create("topic", options());
  ASSERT_TRUE(topic) << describe(topic.error());
  expect_works(*topic, {});
  if (GetParam().signal == SIGSTOP) {
    victim.go_on();
    victim.wait();
    EXPECT_TRUE(victim.succeeded()) << victim.describe();
    // The process that lost the race has cleaned up.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator{directory_.path()}, {}), 1);
  }
  EXPECT_EQ(names(), std::vector<std::string>{"topic"});
  expect_works(*topic, {"one more"});
}

// `leat doctor --clean` removes what a dead process leaves, and nothing that a living one still makes.
TEST_P(CreateSteps, ACleanerTellsTheDeadFromTheLiving) {
  Child victim = hurt([&]() -> int {
    CHILD_CHECK_OK(Topic::create("topic", options()));
    return 0;
  });
  const auto place = detail::open_directory_path(directory_.path(), false, false);
  ASSERT_TRUE(place);
  const auto left = detail::names_in(place->get());
  ASSERT_TRUE(left);
  ASSERT_EQ(left->size(), 1U);
  const bool is_locked = GetParam().signal == SIGSTOP && GetParam().step != "make:made";
  {
    const detail::Fd lock = detail::lock_left_over(place->get(), left->front().c_str());
    EXPECT_EQ(static_cast<bool>(lock), !is_locked);
    if (lock) std::filesystem::remove_all(directory_.path() + "/" + left->front());
  }
  if (GetParam().signal == SIGKILL) return;
  victim.go_on();
  victim.wait();
  EXPECT_TRUE(victim.succeeded()) << victim.describe();
  EXPECT_EQ(names(), std::vector<std::string>{"topic"});
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator{directory_.path()}, {}), 1);
}

std::vector<Case> create_cases() {
  std::vector<Case> cases;
  for (const char* step : kCreateSteps) {
    for (const int signal : {SIGKILL, SIGSTOP}) cases.push_back({step, signal, false});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, CreateSteps, ::testing::ValuesIn(create_cases()), name_of_case);

// ---- Deletion -----------------------------------------------------------------------------------

class DeleteSteps : public TopicSteps {
 protected:
  static constexpr bool is_decided(std::string_view step) { return step != "delete:attempted"; }

  void make_topic(std::vector<std::string>& old) {
    auto topic = Topic::create("topic", options());
    ASSERT_TRUE(topic) << describe(topic.error());
    auto publisher = topic->publisher();
    ASSERT_TRUE(publisher) << describe(publisher.error());
    for (int i = 0; i < kOldRecords; ++i) {
      old.push_back("old " + std::to_string(i));
      ASSERT_TRUE(publisher->publish(old.back()));
    }
  }
  Child hurt_deleter() {
    return hurt([this]() -> int {
      auto removed = remove("topic", GetParam().force);
      // While it was stopped, others may have finished or cancelled its deletion.
      CHILD_CHECK(removed || removed.error().code == Errc::busy ||
                  removed.error().code == Errc::not_found);
      return 0;
    });
  }
};

TEST_P(DeleteSteps, OthersFinishOrCallOff) {
  std::vector<std::string> old;
  make_topic(old);
  Child victim = hurt_deleter();

  std::optional<Topic> topic;
  if (is_decided(GetParam().step)) {
    EXPECT_EQ(open().error().code, Errc::not_found);
    EXPECT_EQ(names(), std::vector<std::string>{});
    auto created = Topic::create("topic", options());
    ASSERT_TRUE(created) << describe(created.error());
    topic.emplace(std::move(*created));
    old.clear();
  } else {
    auto opened = open();
    ASSERT_TRUE(opened) << describe(opened.error());
    topic.emplace(std::move(*opened));
  }
  expect_works(*topic, old);
  old.emplace_back("one more");
  auto publisher = topic->publisher();
  ASSERT_TRUE(publisher) << describe(publisher.error());
  if (GetParam().signal == SIGSTOP) {
    victim.go_on();
    victim.wait();
    EXPECT_TRUE(victim.succeeded()) << victim.describe();
  }
  // The new topic of that name was not touched.
  EXPECT_EQ(names(), std::vector<std::string>{"topic"});
  EXPECT_EQ(remove("topic", false).error().code, Errc::busy);
  ASSERT_TRUE(publisher->publish("and more"));
  old.emplace_back("and more");
  EXPECT_EQ(texts(*topic), old);
  auto again = open();
  ASSERT_TRUE(again) << describe(again.error());
  EXPECT_EQ(texts(*again), old);
}

// A process that is stopped while it holds the directory's lock prevents
// others from deleting until it continues; they get `busy`
// (docs/guarantees.md, "Who may hold up whom"). A dead one holds no lock.
TEST_P(DeleteSteps, OthersMayDelete) {
  std::vector<std::string> old;
  make_topic(old);
  ASSERT_TRUE(Topic::create("other", options()));
  Child victim = hurt_deleter();
  if (GetParam().signal == SIGSTOP && GetParam().step == "delete:renamed") {
    EXPECT_EQ(remove("other", false).error().code, Errc::busy);
    victim.go_on();
    victim.wait();
  }
  auto removed = remove("topic", false);
  EXPECT_TRUE(removed || removed.error().code == Errc::not_found) << describe(removed.error());
  removed = remove("other", false);
  EXPECT_TRUE(removed) << describe(removed.error());
  EXPECT_EQ(names(), std::vector<std::string>{});
}

// Participants of a topic that is deleted by force get `deleted` once anybody
// comes across the deleted topic.
TEST_P(DeleteSteps, ParticipantsAreTold) {
  if (!GetParam().force) return;  // Participants keep a topic from being deleted.
  std::vector<std::string> old;
  make_topic(old);
  auto topic = open();
  ASSERT_TRUE(topic) << describe(topic.error());
  auto publisher = topic->publisher();
  auto reader = topic->subscriber({.from = From::beginning});
  ASSERT_TRUE(publisher && reader);
  Child victim = hurt_deleter();
  EXPECT_EQ(open().error().code, Errc::not_found);

  std::vector<std::string> texts;
  Errc error = Errc::ok;
  EXPECT_TRUE(eventually([&] {
    auto record = reader->receive(50ms);
    if (record) texts.emplace_back(record->text());
    error = record.error().code;
    return error == Errc::deleted;
  })) << "the subscriber got "
      << describe({error, 0});
  EXPECT_EQ(texts, old);
  EXPECT_TRUE(eventually([&] { return publisher->publish("late").error().code == Errc::deleted; }));
  EXPECT_EQ(topic->publisher().error().code, Errc::deleted);
  EXPECT_EQ(topic->subscriber().error().code, Errc::deleted);
}

std::vector<Case> delete_cases() {
  std::vector<Case> cases;
  for (const char* step : kDeleteSteps) {
    for (const int signal : {SIGKILL, SIGSTOP}) {
      // With force there is no attempt: the deletion is decided at once.
      if (std::string_view{step} != "delete:attempted") cases.push_back({step, signal, true});
      cases.push_back({step, signal, false});
    }
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Each, DeleteSteps, ::testing::ValuesIn(delete_cases()), name_of_case);

}  // namespace
}  // namespace leat::testing
