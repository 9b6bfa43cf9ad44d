// If this failed, keys, headers or timestamps would arrive changed, or a
// damaged payload could be read beyond its end.
#include "leat/record.hpp"

#include <array>
#include <memory>

#include "testing.hpp"

namespace leat {
namespace {

using detail::kHasExtension;
using detail::kHasHeaders;
using detail::kHasKey;
using detail::kHasTimestamp;

// Bytes in a heap block of exactly their size, so that AddressSanitizer detects a read beyond them.
class Exact {
 public:
  explicit Exact(Bytes bytes) : size_{bytes.size()}, data_{new std::byte[bytes.size()]} {
    std::copy(bytes.begin(), bytes.end(), data_.get());
  }
  operator Bytes() const { return {data_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<std::byte[]> data_;
};

std::vector<std::byte> encode(const NewRecord& record, bool timestamp, std::uint32_t& flags) {
  const detail::ExtensionSizes sizes = detail::extension_sizes(record, timestamp);
  flags = sizes.flags;
  std::vector<std::byte> payload(sizes.total + record.value.size());
  std::byte* at = detail::write_extension(payload.data(), record, sizes);
  EXPECT_EQ(static_cast<std::uint64_t>(at - payload.data()), sizes.total);
  std::copy(record.value.begin(), record.value.end(), at);
  return payload;
}

TEST(Bytes, ComesFromWhateverHoldsBytes) {
  const std::string text = "abc";
  const std::vector<std::byte> vector(3, std::byte{'x'});
  EXPECT_EQ(Bytes{text}.text(), "abc");
  EXPECT_EQ(Bytes{"abc"}.text(), "abc");
  EXPECT_EQ(Bytes{std::string_view{"abc"}}.text(), "abc");
  EXPECT_EQ(Bytes{vector}.text(), "xxx");
  EXPECT_EQ((Bytes{text.data(), 2}.text()), "ab");
  EXPECT_TRUE(Bytes{}.empty());
}

TEST(RecordPayload, WithoutExtensionIsTheValue) {
  std::uint32_t flags = 0;
  const auto payload = encode({.value = "hello"}, false, flags);
  EXPECT_EQ(flags, 0u);
  EXPECT_EQ(payload.size(), 5u);
  Record record;
  EXPECT_TRUE(detail::read_payload(flags, payload, record));
  EXPECT_EQ(record.text(), "hello");
  EXPECT_FALSE(record.has_key);
}

TEST(RecordPayload, EachExtensionCostsOnlyItself) {
  const Header header{"n", "v"};
  EXPECT_EQ(detail::extension_sizes({}, false).total, 0u);
  EXPECT_EQ(detail::extension_sizes({}, true).total, 8u);
  EXPECT_EQ(detail::extension_sizes({.key = "abc"}, false).total, 4u + 3);
  EXPECT_EQ(detail::extension_sizes({.headers = {&header, 1}}, false).total, 4u + 8 + 2);
  EXPECT_EQ(detail::extension_sizes({.key = "", .headers = {&header, 1}}, true).total,
            8u + 4 + 4 + 10);
}

TEST(RecordPayload, EveryCombinationComesBackAsItWas) {
  const std::array<Header, 3> headers{{{"first", "1"}, {"", ""}, {"first", Bytes{"\0\xff", 2}}}};
  for (int bits = 0; bits < 16; ++bits) {
    NewRecord record;
    if ((bits & 1) != 0) record.key = "the key";
    if ((bits & 2) != 0) record.headers = headers;
    if ((bits & 8) != 0) record.value = "the value";
    std::uint32_t flags = 0;
    const Exact payload{encode(record, (bits & 4) != 0, flags)};
    Record read;
    ASSERT_TRUE(detail::read_payload(flags, payload, read)) << bits;
    EXPECT_EQ(read.has_key, (bits & 1) != 0);
    EXPECT_EQ(read.key.text(), (bits & 1) != 0 ? "the key" : "");
    EXPECT_EQ(read.text(), (bits & 8) != 0 ? "the value" : "");
    EXPECT_EQ(read.timestamp_ms >= 0, (bits & 4) != 0);
    std::size_t count = 0;
    for (const Header header : read.headers) {
      EXPECT_EQ(header.name, headers[count].name);
      EXPECT_EQ(header.value.text(), headers[count].value.text());
      ++count;
    }
    EXPECT_EQ(count, (bits & 2) != 0 ? headers.size() : 0);
  }
}

TEST(RecordPayload, CutAnywhereInItsExtensionIsRefused) {
  const std::array<Header, 2> headers{{{"name", "value"}, {"other", "x"}}};
  const NewRecord record{.key = "key", .headers = headers};
  std::uint32_t flags = 0;
  const auto payload = encode(record, true, flags);
  for (std::size_t size = 0; size < payload.size(); ++size) {
    const Exact cut{Bytes{payload}.first(size)};
    Record read;
    EXPECT_FALSE(detail::read_payload(flags, cut, read)) << size;
  }
}

TEST(RecordPayload, SizesBeyondItAreRefused) {
  const auto with_sizes = [](std::uint32_t key, std::uint32_t headers) {
    std::byte bytes[16] = {};
    std::memcpy(bytes, &key, 4);
    std::memcpy(bytes + 4, &headers, 4);
    Record read;
    return detail::read_payload(kHasKey | kHasHeaders, Exact{Bytes{bytes, 16}}, read);
  };
  EXPECT_TRUE(with_sizes(0, 0));
  EXPECT_TRUE(with_sizes(8, 0));
  EXPECT_TRUE(with_sizes(0, 8));  // One header with an empty name and value.
  EXPECT_FALSE(with_sizes(9, 0));
  EXPECT_FALSE(with_sizes(0, 9));
  EXPECT_FALSE(with_sizes(4, 5));
  EXPECT_FALSE(with_sizes(~0U, 0));
  EXPECT_FALSE(with_sizes(~0U, 1));  // Must not wrap around to 0.
  EXPECT_FALSE(with_sizes(1, ~0U));
}

Headers headers_of(const Exact& bytes) { return Headers{bytes}; }

TEST(Headers, EmptyIsWellFormed) {
  EXPECT_TRUE(Headers{}.is_well_formed());
  EXPECT_TRUE(Headers{}.empty());
  EXPECT_TRUE(Headers{}.begin() == Headers{}.end());
}

TEST(Headers, MalformedOnesAreNoticedAndEndTheList) {
  const std::array<Header, 2> headers{{{"name", "value"}, {"x", "y"}}};
  std::uint32_t flags = 0;
  auto payload = encode({.headers = headers}, false, flags);
  payload.erase(payload.begin(), payload.begin() + 4);
  ASSERT_TRUE(headers_of(Exact{payload}).is_well_formed());
  for (std::size_t size = 1; size < payload.size(); ++size) {
    const Exact cut{Bytes{payload}.first(size)};
    const Headers read = headers_of(cut);
    const bool first_is_whole = size == 8 + 4 + 5;
    EXPECT_EQ(read.is_well_formed(), first_is_whole) << size;
    std::size_t count = 0;
    for (const Header header : read) {
      EXPECT_LE(header.name.size(), size);
      ++count;
    }
    EXPECT_EQ(count, size >= 8 + 4 + 5 ? 1u : 0u) << size;
  }
}

TEST(Headers, WithAnySizesNothingIsReadBeyondThem) {
  std::mt19937_64 random{test_seed()};
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::byte> bytes(random() % 64);
    for (auto& byte : bytes)
      byte = random() % 3 == 0 ? std::byte(random()) : std::byte(random() % 9);
    const Exact exact{bytes};
    Record record;
    const auto flags = static_cast<std::uint32_t>(random()) & kHasExtension;
    std::size_t sum = 0;
    if (detail::read_payload(flags, exact, record)) {
      ASSERT_LE(record.value.size() + record.key.size(), bytes.size());
      for (const Header header : record.headers) sum += header.name.size() + header.value.size();
      ASSERT_LE(sum, bytes.size());
    }
    for (const Header header : headers_of(exact)) sum += header.name.size();
    ASSERT_LE(sum, 2 * bytes.size());
  }
}

TEST(GapReason, EveryOneHasAName) {
  EXPECT_STREQ(name_of(GapReason::aborted), "aborted");
  EXPECT_STREQ(name_of(GapReason::died), "died");
  EXPECT_STREQ(name_of(GapReason::revoked), "revoked");
  EXPECT_STREQ(name_of(GapReason::overwritten), "overwritten");
  EXPECT_STREQ(name_of(static_cast<GapReason>(77)), "unknown");
}

}  // namespace
}  // namespace leat
