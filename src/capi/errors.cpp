// The names and sentences of errors, and the versions.
#include <cstring>
#include <iterator>
#include <string>

#include "capi/handles.hpp"

namespace leat::capi {
namespace {

struct ErrorName {
  Errc code;
  const char* name;
};
// clang-format off
constexpr ErrorName kErrorNames[] = {
    // From spec/errors.csv, by tools/errors.py: begin
    {Errc::ok, "ok"},
    {Errc::invalid_argument, "invalid_argument"},
    {Errc::not_found, "not_found"},
    {Errc::exists, "exists"},
    {Errc::busy, "busy"},
    {Errc::permission, "permission"},
    {Errc::wrong_format, "wrong_format"},
    {Errc::corrupt, "corrupt"},
    {Errc::full, "full"},
    {Errc::no_space, "no_space"},
    {Errc::too_large, "too_large"},
    {Errc::timeout, "timeout"},
    {Errc::stopped, "stopped"},
    {Errc::deleted, "deleted"},
    {Errc::forked, "forked"},
    {Errc::revoked, "revoked"},
    {Errc::would_deadlock, "would_deadlock"},
    {Errc::not_allowed, "not_allowed"},
    {Errc::too_many, "too_many"},
    {Errc::unsupported, "unsupported"},
    {Errc::in_flight_full, "in_flight_full"},
    {Errc::redelivery_full, "redelivery_full"},
    {Errc::not_in_flight, "not_in_flight"},
    {Errc::lease_lost, "lease_lost"},
    {Errc::closed, "closed"},
    {Errc::buffer_too_small, "buffer_too_small"},
    {Errc::io_error, "io_error"},
    {Errc::read_only, "read_only"},
    {Errc::not_durable, "not_durable"},
    {Errc::expired, "expired"},
    {Errc::interrupted, "interrupted"},
    {Errc::no_memory, "no_memory"},
    {Errc::needs_durable, "needs_durable"},
    {Errc::needs_timestamps, "needs_timestamps"},
    {Errc::needs_growing, "needs_growing"},
    {Errc::not_with_overwrite, "not_with_overwrite"},
    {Errc::not_with_durable, "not_with_durable"},
    // From spec/errors.csv: end
};
// clang-format on

constexpr bool are_numbered() {
  std::int32_t number = 0;
  for (const ErrorName& one : kErrorNames) {
    if (static_cast<std::int32_t>(one.code) != number++) return false;
  }
  return true;
}
static_assert(are_numbered(), "a code of result.hpp has another number than in spec/errors.csv");

}  // namespace

std::int32_t what_was_thrown(std::int32_t* detail) noexcept {
  Error error{Errc::io_error, 0};
  try {
    throw;
  } catch (const std::bad_alloc&) {
    error.code = Errc::no_memory;
  } catch (const std::length_error&) {
    error.code = Errc::no_memory;
  } catch (const std::system_error& failure) {  // No thread could be started, for example.
    error.system_error = failure.code().value();
  } catch (...) {
  }
  return failed(error, detail);
}

}  // namespace leat::capi

using namespace leat;
using namespace leat::capi;

const char* leat_error_name(std::int32_t code) {
  const auto index = static_cast<std::size_t>(code);  // Below 0: huge.
  return index < std::size(kErrorNames) ? kErrorNames[index].name : "unknown";
}

std::int32_t leat_describe(std::int32_t code, std::int32_t detail, char* buffer,
                           std::uint64_t capacity) {
  if (buffer == nullptr || capacity == 0) return LEAT_ERR_INVALID_ARGUMENT;
  return guarded(nullptr, [&] {
    const std::string text = describe({static_cast<Errc>(code), detail});
    const std::size_t size = std::min<std::uint64_t>(text.size(), capacity - 1);
    std::memcpy(buffer, text.data(), size);
    buffer[size] = '\0';
    return size == text.size() ? LEAT_OK : LEAT_ERR_BUFFER_TOO_SMALL;
  });
}

const char* leat_gap_reason_name(std::uint32_t reason) {
  return name_of(static_cast<GapReason>(reason <= 0xFF ? reason : 0));
}

std::int32_t leat_abi_check(std::uint32_t version) {
  return version <= LEAT_ABI_VERSION ? LEAT_OK : LEAT_ERR_UNSUPPORTED;
}
std::uint32_t leat_abi_version() { return LEAT_ABI_VERSION; }
const char* leat_version() { return LEAT_CAPI_VERSION; }
