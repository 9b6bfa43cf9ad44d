// The two other tables of `leat bench broker`.
#pragma once

#include <cstdint>
#include <vector>

#include "bench/broker/served_broker.hpp"
#include "bench/leat/durable.hpp"
#include "bench/leat/topics.hpp"
#include "bench/output/output.hpp"

namespace leat::bench {

// Directories for one broker, which are removed with it. Topics of type file are on a disk.
class BrokerPlaces {
 public:
  broker::Places places() const { return {topics_.directory(), data_.path()}; }

 private:
  TemporaryTopics topics_;
  tool::PrivateDirectory data_ = make_data_directory("/var/tmp");
};

// --lightq-tables: what LightQ published about itself, measured in the same way.
struct LightqTables {
  std::uint64_t messages = 1'000'000;  // Of one run.
  int runs = 5;
  std::vector<int> cpus;
  JsonOption json;
};
void run_lightq_tables(const LightqTables& plan);

// --disturbed: what well-behaved clients notice of others.
struct Disturbed {
  double seconds = 2;  // How long each disturbance lasts.
  std::uint32_t idle = 10'000;
  int runs = 5;
  JsonOption json;
};
void run_disturbed(const Disturbed& plan);

}  // namespace leat::bench
