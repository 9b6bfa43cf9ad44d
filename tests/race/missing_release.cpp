// A race put in on purpose: a publisher that makes its record visible with a relaxed store of the
// commit word. ThreadSanitizer must report that the subscriber reads the payload too early; or its
// silence about the real publisher would mean nothing.
//
// Everything else is real: the topic, the claim, the layout, and the subscriber in another thread.
// First the same with the store that the real publisher makes: there nothing may be reported.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <thread>

#include "leat/leat.hpp"
#include "leat/log/segments.hpp"
#include "support/process.hpp"

namespace leat::inline v0 {

// The library's friend for tests: lets them see the mapping behind a Topic.
struct TopicTesting {
  static detail::SharedTopic& shared(const Topic& topic) noexcept { return *topic.topic_; }
};

namespace {

// What PartitionWriter does for one record, in the topic's first segment.
void publish(const Topic& topic, std::string_view text, bool release) {
  detail::SharedTopic& shared = TopicTesting::shared(topic);
  const detail::Geometry& geometry = shared.geometry();
  const detail::PartitionView view = shared.partition(0);
  const std::uint64_t granules = detail::granules_for(text.size());

  std::uint64_t word = detail::load_acquire<detail::Edge::claim>(view.control->claim);
  while (!detail::compare_exchange<detail::Edge::claim>(
      view.control->claim, word, word + geometry.claim_layout.increment(1, granules))) {
  }
  const std::uint64_t segment = geometry.claim_layout.segment(word);
  const std::uint64_t granule = geometry.claim_layout.granules(word);
  auto place = detail::find_segment(shared, view, segment);
  LEAT_ASSERT(place);
  std::byte* records = *shared.records_for_writing() + place->physical * geometry.segment_size;
  auto& header = *reinterpret_cast<detail::RecordHeader*>(records + granule * detail::kGranule);
  detail::store_relaxed(header.claim, static_cast<std::uint32_t>(granules));
  detail::store_relaxed(header.detail, static_cast<std::uint32_t>(text.size()));
  detail::copy_in(reinterpret_cast<std::byte*>(&header + 1), text.data(), text.size());

  const std::uint64_t commit =
      detail::position_tag(segment * geometry.segment_granules + granule, geometry.key) |
      static_cast<std::uint64_t>(detail::RecordKind::data);
  if (release) {
    detail::store_release<detail::Edge::record_ready>(header.commit, commit);
  } else {
    detail::store_relaxed(header.commit,
                          commit);  // The race: nothing orders the payload before it.
  }
}

int run(bool release) {
  const testing::TemporaryDirectory directory;
  auto topic = Topic::create("topic", {.capacity_bytes = 65536, .directory = directory.path()});
  if (!topic) return 1;
  int arrived = 0;
  std::thread reader{[&] {
    auto subscriber = topic->subscriber({.from = From::beginning});
    const Deadline late{std::chrono::seconds{20}};
    while (subscriber && arrived < 100 && !late.passed()) {
      (void)subscriber->poll(10, [&](const Record& record) {
        arrived += record.text() == "a record like any other" ? 1 : 0;
      });
    }
  }};
  for (int i = 0; i < 100; ++i) {
    publish(*topic, "a record like any other", release);
    std::this_thread::yield();
  }
  reader.join();
  std::printf("%d of 100 records arrived\n", arrived);
  return arrived == 100 ? 0 : 1;
}

}  // namespace
}  // namespace leat::inline v0

int main() {
  // A report about the right program ends it here (halt_on_error), unseen: then the one that is
  // waited for never comes.
  const int errors = ::dup(STDERR_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  if (leat::run(true) != 0) return 1;
  ::dup2(errors, STDERR_FILENO);
  return leat::run(false);
}
