// Any damage to the files of a topic is found, costs only the frames that it hits, and never makes a
// record that nobody wrote. If this failed, a disk with bit rot could make subscribers act on garbage,
// or a damaged sector could cost all records behind it.
// Seeds are printed; LEAT_SEED=seed repeats a run.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "support/one_of.hpp"
#include "support/store_files.hpp"
#include "testing.hpp"

namespace leat::testing {
namespace {

constexpr std::uint64_t kFlipKey = 0x1234'5678'9abc'def1;

// A topic of one partition that was closed in order: files of two frames, of two records each.
struct Whole {
  explicit Whole(std::size_t size, int file_count = 2, bool is_closed = true,
                 const std::string& planted = "") {
    TestStore store;
    manifest = store.manifest;
    auto writer = store.writer();
    LogBytes log{kFlipKey};
    for (int i = 0; i < 2 * file_count; ++i) {
      if (i % 2 == 0) {
        EXPECT_TRUE(writer.finish_file());
      }
      log.record("value " + std::to_string(2 * i) +
                 std::string(size, static_cast<char>('a' + i % 26)));
      log.record("value " + std::to_string(2 * i + 1) + planted);
      store.append(writer, log);
      const std::uint64_t end = writer.file_position();
      frames.push_back(
          {writer.file_name().text(), end - detail::padded_frame(log.bytes().size()), end});
      log = log.next();
    }
    if (is_closed) store.checkpoint(writer, true);
    records = store.read();
    EXPECT_EQ(records.size(), static_cast<std::size_t>(4 * file_count));
    files = read_files(store.topic_path());
  }

  // Which records a change of one file may cost: of the frames that are not what they were.
  std::set<std::string> may_miss(const std::string& name, const std::string& changed) const {
    std::set<std::string> missing;
    for (std::size_t i = 0; i < frames.size(); ++i) {
      const Place& place = frames[i];
      if (place.file != name) continue;
      const std::uint64_t size = place.end - place.begin;
      if (changed.size() >= place.end &&
          changed.compare(place.begin, size, files.at(name), place.begin, size) == 0)
        continue;
      missing.insert(records[2 * i]);
      missing.insert(records[2 * i + 1]);
    }
    return missing;
  }

  struct Place {
    std::string file;
    std::uint64_t begin;
    std::uint64_t end;
  };
  detail::Manifest manifest;
  std::vector<Place> frames;
  std::vector<std::string> records;
  StoreFiles files;
};

// What is read has every record but those, and none that was not written. Empty if so.
std::string compare(const Whole& whole, const std::vector<std::string>& lines,
                    const std::set<std::string>& missing) {
  std::vector<std::string> found;
  for (const std::string& line : lines)
    if (!line.starts_with("gap ")) found.push_back(line);
  std::size_t next = 0;
  for (const std::string& record : whole.records) {
    if (next < found.size() && found[next] == record) {
      ++next;
    } else if (!missing.contains(record)) {
      return "not delivered: " + record.substr(0, 40);
    }
  }
  return next == found.size() ? "" : "not written, or twice: " + found[next].substr(0, 40);
}

// Reads, recovers, and reads again. Empty if all is as it must be.
std::string trial(PlacedFiles& placed, const Whole& whole, const std::set<std::string>& missing,
                  bool must_be_found = true) {
  if (must_be_found && !placed.is_damaged()) return "the damage is not found";
  auto manifest = detail::load_manifest(detail::Disk::system(), placed.directory());
  if (!manifest) return "manifest: " + describe(manifest.error());
  if (auto bad = compare(whole, placed.read(*manifest), missing); !bad.empty()) return bad;
  auto recovered = detail::recover(detail::Disk::system(), placed.directory(), *manifest);
  if (!recovered) return "recover: " + describe(recovered.error());
  if (recovered->partitions[0].next_offset < whole.records.size()) return "offsets are used again";
  if (auto bad = compare(whole, placed.read(*manifest), missing); !bad.empty())
    return "after recovery: " + bad;
  if (!missing.empty() && !placed.is_damaged()) return "after recovery the damage is not found";
  return {};
}

TEST(BitFlip, OfAnyBitIsFoundAndCostsOneFrame) {
  const Whole whole{120};
  PlacedFiles placed{whole.files};
  ASSERT_FALSE(placed.is_damaged());
  std::size_t bits = 0;
  for (const auto& [name, bytes] : whole.files) {
    for (std::size_t bit = 0; bit < 8 * bytes.size(); bit += testing::kOneOf, ++bits) {
      std::string changed = bytes;
      changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
      placed.reset();
      placed.put(name, changed);
      ASSERT_EQ(trial(placed, whole, whole.may_miss(name, changed)), "")
          << name << " byte " << bit / 8 << " bit " << bit % 8;
    }
  }
  EXPECT_GT(bits, 10'000U / testing::kOneOf);
}

// The same for runs of zeros and random bytes in any file, and frames of some KiB.
TEST(BitFlip, OfManyBytesIsFoundAndCostsTheFramesThatItHits) {
  Random random{test_seed()};
  const Whole whole{2000, 3};
  PlacedFiles placed{whole.files};
  for (int round = 0; round < 3000 / testing::kOneOf; ++round) {
    auto chosen = whole.files.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(below(random, whole.files.size())));
    const auto& [name, bytes] = *chosen;
    if (bytes.empty()) continue;
    std::string changed = bytes;
    const std::size_t begin = below(random, bytes.size());
    const std::size_t size = 1 + below(random, std::min<std::size_t>(bytes.size() - begin, 5000));
    const bool is_zero = below(random, 3) == 0;
    for (std::size_t i = 0; i < size; ++i)
      changed[begin + i] = is_zero ? '\0' : static_cast<char>(random());
    placed.reset();
    placed.put(name, changed);
    ASSERT_EQ(trial(placed, whole, whole.may_miss(name, changed), changed != bytes), "")
        << name << ' ' << begin << '+' << size << " round " << round;
  }
}

// Bytes that are a frame elsewhere are none here.
TEST(BitFlip, FramesCountNowhereElse) {
  const Whole whole{1000, 3};
  PlacedFiles placed{whole.files};
  for (const auto& from : whole.frames) {
    const std::string frame = whole.files.at(from.file).substr(from.begin, from.end - from.begin);
    for (const auto& to : whole.frames) {
      if (from.file == to.file && from.begin == to.begin) continue;
      // Over another frame, within one, and behind the last.
      for (const std::uint64_t at : {to.begin, to.begin + 64, to.end}) {
        std::string changed = whole.files.at(to.file);
        changed.resize(std::max(changed.size(), at + frame.size()));
        changed.replace(at, frame.size(), frame);
        if (changed == whole.files.at(to.file)) continue;
        placed.reset();
        placed.put(to.file, changed);
        const auto missing = whole.may_miss(to.file, changed);
        ASSERT_EQ(trial(placed, whole, missing, !missing.empty()), "")
            << from.file << ' ' << from.begin << " to " << to.file << ' ' << at;
      }
    }
  }
}

TEST(BitFlip, SwappedFilesDeliverNothing) {
  const Whole whole{1000, 3};
  const auto names = segments_of(whole.files);
  PlacedFiles placed{whole.files};
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = i + 1; j < names.size(); ++j) {
      placed.reset();
      placed.put(names[i], whole.files.at(names[j]));
      placed.put(names[j], whole.files.at(names[i]));
      auto missing = whole.may_miss(names[i], "");
      missing.merge(whole.may_miss(names[j], ""));
      EXPECT_EQ(trial(placed, whole, missing), "") << i << ' ' << j;
    }
  }
}

// A file that is missing, empty, or only a header costs its records, not its offsets.
TEST(BitFlip, MissingAndEmptyFilesAreDamage) {
  const Whole whole{1000, 3};
  const auto names = segments_of(whole.files);
  PlacedFiles placed{whole.files};
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{100}, std::size_t{128}}) {
      placed.reset();
      placed.put(names[i], whole.files.at(names[i]).substr(0, size));
      EXPECT_EQ(trial(placed, whole, whole.may_miss(names[i], "")), "") << i << " size " << size;
    }
    placed.reset();
    placed.erase(names[i]);
    // Old files are deleted in order: the first one may be gone for that reason.
    const std::string bad = trial(placed, whole, whole.may_miss(names[i], ""), i != 0);
    EXPECT_EQ(bad, i == 0 ? "after recovery the damage is not found" : "") << i << " missing";
  }
}

// Values that are copies of this topic's frames and files are values, and nothing else; not even if
// the frame that has them is damaged.
TEST(BitFlip, ValuesThatLookLikeFilesAreValues) {
  const Whole first{300};
  const std::string copy = first.files.at(segments_of(first.files).front());
  for (const std::size_t shift :
       {std::size_t{0}, std::size_t{16}, std::size_t{32}, std::size_t{48}}) {
    // The same frames at multiples of 64 bytes of the file, whatever is before them.
    const Whole whole{300, 2, true, std::string(shift, '.') + copy};
    PlacedFiles placed{whole.files};
    ASSERT_FALSE(placed.is_damaged());
    EXPECT_EQ(compare(whole, placed.read(whole.manifest), {}), "");
    for (const auto& frame : whole.frames) {
      for (const std::uint64_t at : {frame.begin + 8, frame.begin + 64, frame.end - 1}) {
        std::string changed = whole.files.at(frame.file);
        changed[at] = static_cast<char>(changed[at] ^ 4);
        placed.reset();
        placed.put(frame.file, changed);
        EXPECT_EQ(trial(placed, whole, whole.may_miss(frame.file, changed)), "") << at;
      }
    }
  }
}

// A file that is used again has frames of its earlier life behind its new ones.
TEST(BitFlip, FramesOfAnEarlierLifeDoNotCount) {
  const Whole whole{1000, 2, false};
  const auto names = segments_of(whole.files);
  PlacedFiles placed{whole.files};
  const std::string& older = whole.files.at(names[0]);
  std::string last = whole.files.at(names[1]);
  const std::uint64_t end = whole.frames.back().end;
  last.resize(end);
  last += older.substr(std::min<std::size_t>(older.size(), 128));
  placed.put(names[1], last);
  EXPECT_EQ(trial(placed, whole, {}, false), "");
  EXPECT_FALSE(placed.is_damaged());
  EXPECT_EQ(placed.get(names[1]).size(), end);
}

// Without any checkpoint everything is read, and numbering goes on far behind.
TEST(BitFlip, OfBothCheckpointsCostsNoRecord) {
  for (const bool is_closed : {true, false}) {
    const Whole whole{1000, 3, is_closed};
    PlacedFiles placed{whole.files};
    for (const bool is_missing : {true, false}) {
      placed.reset();
      for (const char* name : {"checkpoint-0", "checkpoint-1"}) {
        if (is_missing) {
          placed.erase(name);
        } else {
          placed.put(name, "rubbish");
        }
      }
      EXPECT_EQ(trial(placed, whole, {}), "");
      EXPECT_FALSE(placed.is_damaged());  // Recovery made new ones.
    }
  }
}

// The checkpoint is of any earlier moment: what was written since is found.
TEST(BitFlip, OfTheNewestCheckpointCostsNoRecord) {
  const Whole before{1000, 1};
  TestStore store{before.manifest};
  auto writer = store.writer();
  LogBytes log{kFlipKey};
  for (int i = 0; i < 6; ++i) {
    store.append(writer, log.record(std::to_string(i)));
    log = log.next();
    if (i % 2 == 1) store.checkpoint(writer, i == 5);
    if (i == 2) {
      EXPECT_TRUE(writer.finish_file());
    }
  }
  const auto records = store.read();
  PlacedFiles placed{read_files(store.topic_path())};
  for (const char* name : {"checkpoint-0", "checkpoint-1"}) {
    placed.reset();
    placed.put(name, "");
    EXPECT_TRUE(placed.is_damaged());
    EXPECT_EQ(placed.read(store.manifest), records);
    auto recovered = detail::recover(detail::Disk::system(), placed.directory(), store.manifest);
    ASSERT_TRUE(recovered);
    EXPECT_EQ(recovered->cut_bytes() + recovered->damaged(), 0U);
    EXPECT_EQ(recovered->partitions[0].frames_end, 6U);
  }
}

TEST(BitFlip, OfBothManifestsIsReported) {
  const Whole whole{100};
  PlacedFiles placed{whole.files};
  placed.put("manifest-0", "rubbish");
  placed.put("manifest-1", "rubbish");
  EXPECT_EQ(detail::load_manifest(detail::Disk::system(), placed.directory()).error().code,
            Errc::corrupt);
  EXPECT_EQ(detail::check_store(detail::Disk::system(), placed.directory()).error().code,
            Errc::corrupt);
}

}  // namespace
}  // namespace leat::testing
