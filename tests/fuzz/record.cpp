// Parsing of record payloads. Any bytes are either rejected, or parsed without reading beyond their
// end; encoding the parsed record again gives the same bytes. If this failed, a damaged record
// could make a subscriber read foreign memory or crash.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "leat/leat.hpp"

namespace {

using leat::Bytes;
using leat::Record;

void require(bool condition) {
  if (!condition) std::abort();
}

bool is_within(Bytes part, Bytes whole) {
  return part.empty() ||
         (part.data() >= whole.data() && part.data() + part.size() <= whole.data() + whole.size());
}

// Iterating over headers in unchecked bytes ends, and stays within the bytes.
void walk(Bytes bytes) {
  const leat::Headers headers{bytes};
  std::size_t sum = 0;
  for (const leat::Header header : headers) {
    require(is_within(Bytes{header.name}, bytes) && is_within(header.value, bytes));
    sum += 8 + header.name.size() + header.value.size();
  }
  require(sum <= bytes.size());
  require(headers.is_well_formed() == (sum == bytes.size()));
}

// The encoder takes the timestamp from the clock, so the original one is copied over it.
std::vector<std::byte> encode_again(const Record& record, bool has_headers) {
  std::vector<leat::Header> headers;
  for (const leat::Header header : record.headers) headers.push_back(header);
  leat::NewRecord again{.headers = headers, .value = record.value};
  if (record.has_key) again.key = record.key;
  const leat::detail::ExtensionSizes sizes =
      leat::detail::extension_sizes(again, record.timestamp_ms != -1);
  require(((sizes.flags & leat::detail::kHasHeaders) != 0) == (has_headers && !headers.empty()));
  std::vector<std::byte> payload(sizes.total + again.value.size());
  std::byte* at = leat::detail::write_extension(payload.data(), again, sizes);
  if (!again.value.empty()) std::memcpy(at, again.value.data(), again.value.size());
  if (record.timestamp_ms != -1) std::memcpy(payload.data(), &record.timestamp_ms, 8);
  return payload;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  // A buffer of the exact size, so that the sanitizer detects a read of even one byte beyond it.
  const std::unique_ptr<std::byte[]> copy{new std::byte[size - 1]};
  std::memcpy(copy.get(), data + 1, size - 1);
  const Bytes payload{copy.get(), size - 1};
  walk(payload);

  const std::uint32_t flags = (std::uint32_t{data[0]} << 29) & leat::detail::kHasExtension;
  Record record;
  if (!leat::detail::read_payload(flags, payload, record)) return 0;
  require(is_within(record.value, payload) && is_within(record.key, payload));
  require(record.has_key == ((flags & leat::detail::kHasKey) != 0));
  // Two encodings that publishers never produce: an empty header list, and a timestamp of -1.
  const bool has_headers = (flags & leat::detail::kHasHeaders) != 0;
  if (has_headers && record.headers.empty()) return 0;
  if ((flags & leat::detail::kHasTimestamp) != 0 && record.timestamp_ms == -1) return 0;
  const std::vector<std::byte> again = encode_again(record, has_headers);
  require(again.size() == payload.size() &&
          (again.empty() || std::memcmp(again.data(), payload.data(), again.size()) == 0));
  return 0;
}
