// Damaged files of a durable topic. The fuzzer overwrites, cuts, lengthens, swaps and deletes them, and may
// make the checksums right again afterwards, so that it gets behind them. Then everything is read, checked,
// recovered and continued. If this failed, a damaged disk, or somebody who writes to the files, could
// crash every process that opens the topic, or make it loop or use up the memory.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reseal.hpp"
#include "scribble.hpp"
#include "support/log_bytes.hpp"

namespace {

using leat::fuzz::directory;
using leat::fuzz::Input;
using leat::fuzz::reseal_sections;
using leat::testing::LogBytes;
using leat::testing::small_manifest;
using namespace leat::detail;

using Files = std::map<std::string, std::string>;

constexpr std::uint64_t kKey = 0x0f0f'1e1e'2d2d'3c3d;
std::size_t sum = 0;  // Makes sure that every byte is read.

void require(bool condition) {
  if (!condition) std::abort();
}

// A topic of two partitions: one with two files of a few frames, the other with one.
Files make_files() {
  std::filesystem::create_directories(directory());
  Disk& disk = Disk::system();
  auto data = open_directory_path(directory(), false, false);
  require(data && create_store(disk, data->get(), "t", small_manifest(2)));
  auto topic = open_directory_at(data->get(), "t");
  require(topic.has_value());
  Checkpoint checkpoint;
  for (std::uint32_t i = 0; i < 2; ++i) {
    SegmentWriter writer{disk, topic->get(), small_manifest(2).topic, i};
    writer.begin(1, 0, 0, true);
    LogBytes log{kKey};
    for (int frame = 0; frame < 5; ++frame) {
      log.record("value " + std::to_string(frame)).batch({"a", "bc", ""}).died();
      log.full({.key = "key", .value = "value"}, 1'700'000'000'000).aborted("junk");
      require(writer.append(log.facts(), log.bytes()).has_value());
      if (i == 0 && frame == 2) require(writer.finish_file().has_value());
      log = log.next();
    }
    require(writer.finish_file().has_value());
    const auto& synced = writer.synced();
    checkpoint.partitions.push_back({synced.end_offset, synced.end_offset + 1000,
                                     synced.file.base_offset, synced.file.generation, synced.bytes,
                                     synced.end_offset, synced.newest_ms});
  }
  auto file = CheckpointFile::load(disk, topic->get(), small_manifest(2));
  checkpoint.state = {1, 0, 1, 0};
  checkpoint.gaps = {{0, 0, 4, 5}, {1, 0, 4, 5}};
  require(file && file->store(disk, topic->get(), checkpoint));
  Files files;
  for (const auto& entry : std::filesystem::directory_iterator{directory() + "/t"}) {
    std::ifstream in{entry.path(), std::ios::binary};
    files[entry.path().filename()] = {std::istreambuf_iterator<char>{in}, {}};
  }
  return files;
}

// Makes whatever begins with a frame's first four bytes a frame of this file.
void reseal_frames(const SegmentName& name, std::string& file) {
  const FramesOf frames{small_manifest().topic.salt, name};
  for (std::size_t at = sizeof(SegmentHeader); at + sizeof(FrameHeader) <= file.size();
       at += kFrameAlignment) {
    FrameHeader header{};
    std::memcpy(&header, file.data() + at, sizeof(header));
    if (header.magic != kFrameMagic) continue;
    const std::size_t left = file.size() - at - sizeof(header);
    if (padded_frame(header.bytes) - sizeof(header) <= left) {
      header.payload_crc =
          crc32c(0, file.data() + at + sizeof(header), padded_frame(header.bytes) - sizeof(header));
    }
    header.header_crc = frames.header_checksum(header, at);
    std::memcpy(file.data() + at, &header, sizeof(header));
  }
}

void reseal_header(const SegmentName& name, std::string& file) {
  SegmentHeader header{};
  if (file.size() < sizeof(header)) return;
  std::memcpy(&header, file.data(), sizeof(header));
  header.generation = name.generation;
  header.base_offset = name.base_offset;
  header.crc = 0;
  header.crc = crc32c(0, &header, sizeof(header));
  std::memcpy(file.data(), &header, sizeof(header));
}

void change(Input& input, Files& files) {
  for (int i = 0; i < 12 && !input.empty(); ++i) {
    const auto how = input.take(1);
    auto file = std::next(files.begin(), static_cast<long>(input.take(1) % files.size()));
    std::string& content = file->second;
    const std::size_t at = content.empty() ? 0 : input.take(2) % content.size();
    switch (how % 8) {
      case 0: content.resize(at); break;
      case 1: content.append(input.take(1) * 16, static_cast<char>(input.take(1))); break;
      case 2: {
        auto other = std::next(files.begin(), static_cast<long>(input.take(1) % files.size()));
        std::swap(content, other->second);
        break;
      }
      case 3:
        if (files.size() > 3) files.erase(file);
        break;
      case 4: {  // Another segment file, perhaps of another generation.
        const SegmentName name{static_cast<std::uint32_t>(input.take(1) % 3), input.take(1) % 40,
                               input.take(1) % 5};
        files[name.text()] = content;
        break;
      }
      default: {
        const std::uint64_t value = input.take(1 + how / 8 % 8);
        const std::size_t width = std::min<std::size_t>(how % 2 == 0 ? 8 : 4, content.size() - at);
        std::memcpy(content.data() + at, &value, width);
      }
    }
  }
}

void reseal(Files& files) {
  for (auto& [name, content] : files) {
    if (const auto segment = SegmentName::parse(name)) {
      reseal_header(*segment, content);
      reseal_frames(*segment, content);
    } else {
      reseal_sections(content);
    }
  }
}

void write(const Files& files) {
  const std::string path = directory() + "/t";
  std::filesystem::remove_all(path);
  std::filesystem::create_directory(path);
  for (const auto& [name, content] : files)
    std::ofstream{path + '/' + name, std::ios::binary} << content;
}

void touch(const leat::Record& record) {
  for (const std::byte byte : record.value) sum += std::to_integer<std::size_t>(byte);
  for (const std::byte byte : record.key) sum += std::to_integer<std::size_t>(byte);
  for (const leat::Header header : record.headers) sum += header.name.size() + header.value.size();
}

// Reads a partition from an offset on. Offsets must rise, and the end must come.
void read(Disk& disk, int topic, const Manifest& manifest, std::uint32_t partition,
          std::uint64_t from) {
  auto lists = list_segments(topic, manifest.topic.partition_count);
  if (!lists || partition >= lists->size()) return;
  StoredRecords records{
      StoredFrames{disk, topic, manifest.topic.salt, partition, std::move((*lists)[partition])}};
  if (!records.seek(from)) return;
  StoredEntry entry;
  std::uint64_t next = from;
  for (int entries = 0;; ++entries) {
    require(entries < 1'000'000);
    auto more = records.next(entry);
    if (!more || !*more) return;
    const std::uint64_t first = entry.is_record ? entry.record.offset : entry.gap.first;
    require(first >= next && (entry.is_record || entry.gap.count > 0));
    next = first + (entry.is_record ? 1 : entry.gap.count);
    if (entry.is_record) touch(entry.record);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Files whole = make_files();
  Input input{data, size};
  const auto choices = input.take(1);
  const std::uint64_t from = input.take(1) % 64;
  Files files = whole;
  change(input, files);
  if ((choices & 1) != 0) reseal(files);
  write(files);
  Disk& disk = Disk::system();
  auto data_directory = open_directory_path(directory(), false, false);
  auto topic = open_directory_at(data_directory->get(), "t");
  auto report = check_store(disk, topic->get());
  auto manifest = load_manifest(disk, topic->get());
  if (!manifest || manifest->topic.partition_count > 8) return 0;
  for (std::uint32_t i = 0; i < manifest->topic.partition_count; ++i)
    read(disk, topic->get(), *manifest, i, from);
  auto recovered = recover(disk, topic->get(), *manifest);
  if (!recovered) return 0;
  const PartitionEnd& end = recovered->partitions[0];
  SegmentWriter writer{disk, topic->get(), manifest->topic, 0};
  writer.begin(recovered->generation, end.next_offset, end.frames_end, !end.has_file);
  LogBytes log{kKey + 2, 7, end.next_offset};
  log.record("behind the damage");
  if (end.next_offset < ~std::uint64_t{0} - 10 && manifest->topic.file_bytes < (1U << 20) &&
      writer.append(log.facts(), log.bytes())) {
    (void)writer.finish_file();
  }
  read(disk, topic->get(), *manifest, 0, 0);
  // A second recovery finds what the first one left; and perhaps a file of another version.
  auto again = recover(disk, topic->get(), *manifest);
  require(again || again.error() == leat::Errc::wrong_format);
  return 0;
}
