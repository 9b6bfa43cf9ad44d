// A deliberate race: a publisher that makes its record visible with a relaxed store of the commit
// word. ThreadSanitizer must report that the subscriber reads the payload without synchronization.
// If it did not, its silence about the real publisher would prove nothing.
//
// Everything else is real: the topic, the claim, the layout, and the subscriber in another thread.
// The same program runs first with the release store of the real publisher,
// and must cause no report.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string_view>
#include <thread>

#include "leat/leat.hpp"
#include "leat/log/segments.hpp"
#include "support/process.hpp"

namespace leat::inline v0 {

// A friend of the library that gives tests access to the mapping behind a Topic.
struct TopicTesting {
  static detail::MappedTopic& shared(const Topic& topic) noexcept { return *topic.topic_; }
};

namespace {

// Does what PartitionWriter does for one record, in the topic's first segment.
void publish(const Topic& topic, std::string_view text, bool release) {
  detail::MappedTopic& shared = TopicTesting::shared(topic);
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
    // The race: nothing orders the payload before this store.
    detail::store_relaxed(header.commit, commit);
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
      auto polled = subscriber->poll(10, [&](const Record& record) {
        arrived += record.text() == "a record like any other" ? 1 : 0;
      });
      // This publisher announces no claims. A subscriber that looks while one is open finds that
      // nobody made it.
      if (polled.error() == Errc::corrupt)
        subscriber = topic->subscriber({.from = From::offset(static_cast<std::uint64_t>(arrived))});
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
  // A report about the correct program ends the process here (halt_on_error), with its text hidden.
  // Then ctest does not find the expected report, and the test fails.
  const int errors = ::dup(STDERR_FILENO);
  const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ::dup2(nowhere, STDERR_FILENO);
  if (leat::run(true) != 0) return 1;
  ::dup2(errors, STDERR_FILENO);
  return leat::run(false);
}
