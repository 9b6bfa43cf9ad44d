// If this failed, some sequence of calls could give a record a wrong offset, reuse a segment too
// early, or deliver the wrong records or gaps.
//
// Random operations of several publishers and subscribers on a tiny topic are compared step by step
// with a naive model. A failure prints its seed; LEAT_SEED=seed repeats it.
#include <deque>
#include <map>
#include <set>

#include "testing.hpp"

namespace leat {
namespace {

constexpr std::uint64_t kSegments = 4;
constexpr std::uint64_t kSegmentGranules = kSegment / 16;

struct Entry {
  enum class State { open, record, aborted } state = State::open;
  std::string text;
  std::uint64_t segment = 0;
  std::uint64_t batch = 1;  // Number of records from this one to the end of its batch.
};

// A topic as it could be written without concurrency.
class Model {
 public:
  explicit Model(bool retain_all) : retain_all_{retain_all} { live_.push_back({1, 0, 0}); }

  struct Reader {
    bool lossy = false;
    std::uint64_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t skip_until = 0;
    std::uint64_t batch_left = 0;
    std::string pending_gap = {};
  };

  std::uint64_t start() const { return live_.front().base; }
  std::uint64_t end() const { return entries_.size(); }

  // The first offset, or nothing if the topic is full. `who` publishes.
  std::optional<std::uint64_t> claim(std::uint64_t records, std::uint64_t granules, int who) {
    if (live_.back().used + granules > kSegmentGranules && !roll(who)) return std::nullopt;
    live_.back().used += granules;
    const std::uint64_t first = end();
    for (std::uint64_t i = 0; i < records; ++i)
      entries_.push_back({Entry::State::open, "", live_.back().number, records - i});
    open_claims_[who] = live_.back().number;
    return first;
  }
  void commit(std::uint64_t offset, const std::string& text) {
    entries_[offset].state = Entry::State::record;
    entries_[offset].text = text;
  }
  void abort(std::uint64_t offset) { entries_[offset].state = Entry::State::aborted; }
  void finished(int who) { open_claims_.erase(who); }

  void join(int who, bool lossy, const std::string& from, std::uint64_t offset) {
    Reader reader;
    reader.lossy = lossy;
    if (from == "end") {
      reader.segment = live_.back().number;
      reader.offset = end();
    } else {
      std::size_t index = 0;
      if (from == "offset") {
        while (index + 1 < live_.size() && live_[index + 1].base <= offset) ++index;
        reader.skip_until = offset;
        if (offset < live_[index].base)
          reader.pending_gap = gap(offset, live_[index].base, "overwritten");
      }
      reader.segment = live_[index].number;
      reader.offset = live_[index].base;
    }
    readers_[who] = reader;
  }
  void leave(int who) { readers_.erase(who); }

  Log poll(int who, std::uint64_t limit) {
    Reader& reader = readers_.at(who);
    Log log;
    if (limit == 0) return log;
    if (!reader.pending_gap.empty()) log.push_back(std::exchange(reader.pending_gap, ""));
    std::uint64_t count = 0;
    while (count < limit) {
      const bool overtaken = reader.lossy && live_.front().number > reader.segment;
      if (reader.batch_left == 0 && overtaken) {
        const std::uint64_t from = std::max(reader.offset, reader.skip_until);
        reader.segment = live_.front().number;
        reader.offset = live_.front().base;
        if (reader.offset > from) log.push_back(gap(from, reader.offset, "overwritten"));
        continue;
      }
      if (reader.batch_left == 0 &&
          (reader.offset == end() || entries_[reader.offset].segment != reader.segment)) {
        if (reader.segment == live_.back().number) break;
        ++reader.segment;
        continue;
      }
      const Entry& entry = entries_[reader.offset];
      if (entry.state == Entry::State::open) break;
      const bool shown = reader.offset >= reader.skip_until;
      if (entry.state == Entry::State::aborted) {
        if (shown) log.push_back(gap(reader.offset, reader.offset + 1, "aborted"));
        ++reader.offset;
        continue;
      }
      reader.batch_left = entry.batch - 1;
      if (shown) {
        log.push_back(std::to_string(reader.offset) + " " + entry.text);
        ++count;
      }
      ++reader.offset;
    }
    return log;
  }

 private:
  struct Segment {
    std::uint64_t number;
    std::uint64_t base;
    std::uint64_t used;
  };

  static std::string gap(std::uint64_t from, std::uint64_t to, const char* reason) {
    return std::to_string(from) + "+" + std::to_string(to - from) + " " + reason;
  }

  bool roll(int who) {
    while (true) {
      std::uint64_t taken = live_.size();
      for (auto retired = retired_.begin(); retired != retired_.end();) {
        bool held = false;
        for (const auto& [owner, segment] : open_claims_)
          held |= owner != who && segment == *retired;
        taken += held;
        retired = held ? std::next(retired) : retired_.erase(retired);
      }
      if (taken < kSegments) {
        live_.push_back({live_.back().number + 1, end(), 0});
        return true;
      }
      if (retain_all_ || live_.size() == 1) return false;
      for (const auto& [reader_id, reader] : readers_) {
        if (!reader.lossy && reader.segment <= live_.front().number) return false;
      }
      retired_.insert(live_.front().number);
      live_.pop_front();
    }
  }

  bool retain_all_;
  std::deque<Segment> live_;
  std::set<std::uint64_t> retired_;  // An open claim may still hold their memory.
  std::vector<Entry> entries_;
  std::map<int, std::uint64_t> open_claims_;  // Publisher -> segment.
  std::map<int, Reader> readers_;
};

class Driver {
 public:
  Driver(std::uint64_t seed, const TopicOptions& options)
      : random_{seed},
        gating_{options.policy != Policy::overwrite},
        topic_{options},
        model_{options.retain_all} {}

  void step() {
    switch (pick(12)) {
      case 0: change_publishers(); break;
      case 1: change_subscribers(); break;
      case 2:
      case 3:
      case 4: publish(); break;
      case 5: batch(); break;
      case 6:
      case 7: claim(); break;
      default: poll(); break;
    }
    const PartitionInfo info = topic_->info().partitions[0];
    ASSERT_EQ(info.start, model_.start());
    ASSERT_EQ(info.end, model_.end());
  }

 private:
  struct Writer {
    Publisher publisher;
    std::optional<Claim> claim;
  };

  std::uint64_t pick(std::uint64_t below) { return random_() % below; }
  template <class Map>
  auto any(Map& map) {
    return std::next(map.begin(), static_cast<std::ptrdiff_t>(pick(map.size())));
  }
  std::string text() {
    const std::size_t size = pick(2) == 0 ? pick(kHalf + 1) : pick(200);
    return std::string(size, static_cast<char>('a' + pick(26)));
  }
  static std::uint64_t granules(std::size_t size) { return (16 + size + 15) / 16; }

  void change_publishers() {
    if (writers_.size() < 4 && pick(2) == 0) {
      writers_.emplace(next_id_++, Writer{must(topic_->publisher()), std::nullopt});
    } else if (!writers_.empty()) {
      const auto at = any(writers_);
      if (at->second.claim) {
        model_.abort(at->second.claim->offset());
        model_.finished(at->first);
        at->second.claim.reset();
      }
      writers_.erase(at);
    }
  }

  void change_subscribers() {
    if (subscribers_.size() >= 3 || (!subscribers_.empty() && pick(2) == 0)) {
      const auto at = any(subscribers_);
      model_.leave(at->first);
      subscribers_.erase(at);
      return;
    }
    const bool lossy = !gating_ || pick(3) == 0;
    const std::uint64_t offset = pick(model_.end() + 5);
    const char* from = std::array{"beginning", "end", "offset"}[pick(3)];
    const From where = from == std::string{"beginning"} ? From::beginning
                       : from == std::string{"end"}     ? From::end
                                                        : From::offset(offset);
    subscribers_.emplace(next_id_, must(topic_->subscriber({.from = where, .gating = !lossy})));
    model_.join(next_id_++, lossy, from, offset);
  }

  void publish() {
    if (writers_.empty()) return;
    const auto at = any(writers_);
    const std::string value = text();
    auto published = at->second.publisher.publish(value);
    if (at->second.claim) {
      ASSERT_EQ(code(published), Errc::busy);
      return;
    }
    const auto expected = model_.claim(1, granules(value.size()), at->first);
    ASSERT_EQ(code(published), expected ? Errc::ok : Errc::full);
    if (!expected) return;
    ASSERT_EQ(*published, *expected);
    model_.commit(*expected, value);
    model_.finished(at->first);
  }

  void batch() {
    if (writers_.empty()) return;
    const auto at = any(writers_);
    if (at->second.claim) return;
    auto batch = must(at->second.publisher.batch());
    std::vector<std::string> values;
    std::uint64_t size = 8;
    for (std::uint64_t count = 1 + pick(20); count > 0; --count) {
      const std::string value = text().substr(0, pick(100));
      if (!batch.add(value)) break;
      values.push_back(value);
      size += (4 + value.size() + 7) / 8 * 8;
    }
    auto published = batch.commit();
    const auto expected = model_.claim(values.size(), granules(size), at->first);
    ASSERT_EQ(code(published), expected ? Errc::ok : Errc::full);
    if (!expected) return;
    ASSERT_EQ(*published, *expected);
    for (std::size_t i = 0; i < values.size(); ++i) model_.commit(*expected + i, values[i]);
    model_.finished(at->first);
  }

  void claim() {
    if (writers_.empty()) return;
    const auto at = any(writers_);
    std::optional<Claim>& open = at->second.claim;
    if (!open) {
      if (pick(8) != 0) return;  // Rarely, so that publishers are free to publish.
      const std::size_t size = text().size();
      auto made = at->second.publisher.try_claim(size);
      const auto expected = model_.claim(1, granules(size), at->first);
      ASSERT_EQ(code(made), expected ? Errc::ok : Errc::full);
      if (!expected) return;
      ASSERT_EQ(made->offset(), *expected);
      open.emplace(std::move(*made));
      return;
    }
    if (pick(8) != 0) return;  // Stays open for long, so that its segment is retired meanwhile.
    if (pick(3) == 0) {
      model_.abort(open->offset());
      if (pick(2) == 0) must(open->abort());
    } else {
      const std::size_t size = pick(open->payload().size() + 1);
      const std::string value(size, static_cast<char>('A' + pick(26)));
      std::copy_n(Bytes{value}.begin(), size, open->payload().begin());
      model_.commit(open->offset(), value);
      must(open->commit(size));
    }
    open.reset();
    model_.finished(at->first);
  }

  void poll() {
    if (subscribers_.empty()) return;
    const auto at = any(subscribers_);
    const std::uint64_t limit = pick(2) == 0 ? pick(5) : 1000;
    Log log;
    Subscriber& subscriber = at->second;
    subscriber.on_event([&](const Event& event) { log.push_back(to_text(event)); });
    const std::size_t count =
        must(subscriber.poll(limit, [&](const Record& record) { log.push_back(to_text(record)); }));
    subscriber.on_event({});
    ASSERT_EQ(log, model_.poll(at->first, limit)) << "limit " << limit;
    ASSERT_EQ(static_cast<std::size_t>(std::count_if(
                  log.begin(), log.end(),
                  [](const std::string& line) { return line.find('+') == std::string::npos; })),
              count);
  }

  std::mt19937_64 random_;
  bool gating_;
  TestTopic topic_;
  Model model_;
  std::map<int, Writer> writers_;
  std::map<int, Subscriber> subscribers_;
  int next_id_ = 0;
};

void run(const TopicOptions& options, int rounds, int steps) {
  const std::uint64_t seed = test_seed();
  for (int round = 0; round < rounds; ++round) {
    Driver driver{seed + static_cast<std::uint64_t>(round), options};
    for (int step = 0; step < steps; ++step) {
      driver.step();
      if (::testing::Test::HasFatalFailure())
        FAIL() << "seed " << seed << " round " << round << " step " << step;
    }
  }
}

TEST(Model, TopicThatFails) { run({.policy = Policy::fail}, 100, 2000); }
TEST(Model, TopicThatOverwrites) { run({.policy = Policy::overwrite}, 100, 2000); }
TEST(Model, TopicThatRetainsAll) { run({.policy = Policy::fail, .retain_all = true}, 50, 200); }

}  // namespace
}  // namespace leat
