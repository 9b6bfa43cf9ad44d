// What `leat demo` sends: the three workloads that ShmFifo was measured with.
//
//     std::string buffer;
//     for (const Workload& workload : workloads()) publisher.publish(workload.make(buffer));
//     if (!workload.is_right(record.text())) …
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace leat::cli {

// The request of ShmFifo's demonstration, field by field; no padding.
struct CheckImeiReq {
  char imei[16];
  char imsi[16];
  char msisdn[19];
};
static_assert(sizeof(CheckImeiReq) == 51);

struct Workload {
  const char* name;
  const char* what;  // For the table.
  std::size_t record_size;
  // The next record's content. Valid as long as `buffer` is left alone.
  std::string_view (*make)(std::string& buffer);
  // Whether a record's content is what make() makes, to the last byte.
  bool (*is_right)(std::string_view content);
};

std::span<const Workload> workloads();

}  // namespace leat::cli
