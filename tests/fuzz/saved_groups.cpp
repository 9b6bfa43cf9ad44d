// A damaged file of a saved group whose checksum is right, as if somebody had written it. If this failed, a
// damaged disk, or somebody who writes to the files, could crash every process that opens the group.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "leat/group/stored_group.hpp"
#include "leat/leat.hpp"
#include "reseal.hpp"
#include "scribble.hpp"

namespace {

using leat::fuzz::Input;
using leat::fuzz::reseal_sections;
using namespace leat::detail;

constexpr std::uint32_t kPartitions = 2;

void require(bool condition) {
  if (!condition) std::abort();
}

constexpr std::uint64_t kSalt = 0x5a17;  // of the topic

std::vector<std::byte> whole() {
  SavedGroup group;
  group.facts = {7, 3, 1'700'000'000'000, kByKey, 4, 8, 5, 1'000'000'000, 1, 2};
  group.name = "workers";
  group.offsets = {40, 50};
  for (std::uint64_t i = 0; i < 6; ++i)
    group.in_flight.push_back(
        {i * 5, i << 62 | i, static_cast<std::int64_t>(i), i < 3 ? 0U : 1U, 1});
  return group.format(9, kSalt);
}

void change(Input& input, std::vector<std::byte>& file) {
  for (int i = 0; i < 12 && !input.empty(); ++i) {
    const auto how = input.take(1);
    const std::size_t at = file.empty() ? 0 : input.take(2) % file.size();
    const std::size_t left = file.size() - at;
    if (how % 8 == 0) {
      file.resize(at);
    } else if (how % 8 == 1) {
      file.resize(file.size() + input.take(1) * 8);
    } else {
      const std::uint64_t value = input.take(1 + how / 8 % 8);
      const std::size_t widths[] = {1, 2, 4, 8};
      if (left != 0) std::memcpy(file.data() + at, &value, std::min(widths[how % 4], left));
    }
  }
}

void check(const SavedGroup& group) {
  GroupGeometry geometry = geometry_of(group.facts);
  geometry.number = geometry.topic_key = 1;
  geometry.partition_count = kPartitions;
  require(geometry.is_valid() && group.offsets.size() == kPartitions);
  require(!group.name.empty() && group.name.size() <= kMaxGroupName);
  for (std::size_t i = 0; i < group.in_flight.size(); ++i) {
    const SavedInFlight& one = group.in_flight[i];
    require(one.partition < kPartitions && one.offset < group.offsets[one.partition]);
    const SavedInFlight* last = i == 0 ? nullptr : &group.in_flight[i - 1];
    require(last == nullptr || last->partition < one.partition || last->offset < one.offset);
  }
  // What is written of it is read as it was.
  auto file = SectionsFile::parse(group.format(1, 0), kSavedGroupMagic);
  auto again = file ? SavedGroup::read(*file, kPartitions) : file.error();
  require(again && again->name == group.name && again->offsets == group.offsets &&
          again->in_flight.size() == group.in_flight.size());
  if (geometry.file_size() > (std::size_t{1} << 22)) return;
  // A group in memory has room for all of it.
  std::vector<std::uint64_t> memory(geometry.file_size() / sizeof(std::uint64_t) + 16);
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  auto* const begin = reinterpret_cast<std::byte*>(memory.data()) + (64 - at % 64) % 64;
  require(restore_in_flight(begin, geometry, group));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  std::vector<std::byte> bytes = whole();
  change(input, bytes);
  reseal_sections(bytes);
  auto file = SectionsFile::parse(std::move(bytes), {kSavedGroupMagic, kSalt});
  if (!file) return 0;
  auto group = SavedGroup::read(*file, kPartitions);
  if (group) check(*group);
  return 0;
}
