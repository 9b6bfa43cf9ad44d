// Resuming from a saved offset: adds up the numbers in a topic, and goes on where it was when it is started again.
//
//     seq 1000 | leat pub numbers
//     resume numbers state             # "500500 in 1000 records"; kill it at any moment, and start it again
//
// The result is saved together with the offset that it belongs to, in one step, so each record counts exactly once. The
// topic's id is saved as well: in a topic that was deleted and made anew, the same offset is another record.
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>

#include "leat/leat.hpp"

using namespace std::chrono_literals;

namespace {

int fail(const char* what, leat::Error error) {
  std::fprintf(stderr, "%s: %s\n", what, leat::describe(error).c_str());
  return 1;
}

struct State {
  std::string topic_id = "-";
  std::uint64_t offset = 0;  // Of the next record.
  std::uint64_t count = 0;
  std::uint64_t sum = 0;
};

// The beginning if there is no file; nothing if it has something else in it.
std::optional<State> load(const std::string& path) {
  State state;
  std::ifstream file{path};
  if (!file || file >> state.topic_id >> state.offset >> state.count >> state.sum) return state;
  return std::nullopt;
}

// Replaces the file as a whole, so that a kill leaves the old state or the new one. After a failure of the machine, that
// needs an fsync before the rename, and a durable topic.
bool save(const State& state, const std::string& path) {
  const std::string unfinished = path + ".new";
  std::ofstream file{unfinished};
  file << state.topic_id << ' ' << state.offset << ' ' << state.count << ' ' << state.sum << '\n';
  file.close();
  return file && std::rename(unfinished.c_str(), path.c_str()) == 0;
}

void add(const leat::Record& record, State& state) {
  const std::string_view text = record.text();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) {
    std::fprintf(stderr, "record %llu is no number and does not count\n",
                 static_cast<unsigned long long>(record.offset));
    return;
  }
  ++state.count;
  state.sum += number;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("usage: resume TOPIC FILE\n", stderr), 2;
  const std::string path = argv[2];
  auto topic = leat::Topic::open(argv[1]);
  if (!topic) return fail(argv[1], topic.error());
  const std::optional<State> loaded = load(path);
  if (!loaded) {
    std::fprintf(stderr, "%s is no state of this program: remove it to start over\n", path.c_str());
    return 1;
  }
  State state = *loaded;
  const std::string id = topic->id().text();
  if (state.topic_id != id) {
    if (state.topic_id != "-") std::fprintf(stderr, "%s was made anew: starting over\n", argv[1]);
    state = {.topic_id = id};
  }
  auto subscriber = topic->subscriber({.from = leat::From::offset(state.offset), .partition = 0});
  if (!subscriber) return fail("cannot subscribe", subscriber.error());
  subscriber->on_event([](const leat::Event& gap) {
    std::fprintf(stderr, "%llu records from offset %llu on are not there: %s\n",
                 static_cast<unsigned long long>(gap.count),
                 static_cast<unsigned long long>(gap.first), leat::name_of(gap.reason));
  });
  const std::uint64_t end = topic->end_offset(0);
  while (subscriber->offset() < end) {
    auto count = subscriber->poll(100, [&](const leat::Record& record) { add(record, state); });
    if (!count) return fail("cannot read", count.error());
    state.offset = subscriber->offset();  // Behind gaps, too.
    if (!save(state, path)) return std::perror(path.c_str()), 1;
    if (*count == 0) (void)subscriber->wait(100ms);  // A publisher is still writing its record.
  }
  std::printf("%llu in %llu records\n", static_cast<unsigned long long>(state.sum),
              static_cast<unsigned long long>(state.count));
  return 0;
}
