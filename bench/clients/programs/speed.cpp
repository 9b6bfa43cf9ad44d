// What a record costs in C++, for `leat bench clients`: cpp TOPIC SIZE RECORDS. Prints nanoseconds as a line of JSON.
//
// The topic holds all records. Each part runs twice, and the second time counts.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "leat/leat.hpp"

namespace {

constexpr std::size_t kBatch = 64;

volatile std::uint64_t seen = 0;  // So that the compiler cannot leave out looking at the values.

template <class T>
T value_of(leat::Result<T> result, const char* what) {
  if (result) return std::move(*result);
  throw std::runtime_error(std::string("cannot ") + what + ": " + leat::describe(result.error()));
}

template <class Work>
double ns_each(std::size_t records, Work&& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / static_cast<double>(records);
}

template <class Publish>
double time_publishing(leat::Topic& topic, std::size_t records, Publish&& publish) {
  leat::Publisher publisher = value_of(topic.publisher(), "make a publisher");
  publish(publisher);
  return ns_each(records, [&] { publish(publisher); });
}

// Reads the last records of the topic; `visit` returns the last byte of each.
template <class Visit>
double read_all(leat::Topic& topic, std::size_t records, Visit&& visit) {
  leat::Subscriber subscriber =
      value_of(topic.subscriber({.from = leat::From::last(records)}), "make a subscriber");
  return ns_each(records, [&] {
    std::uint64_t sum = 0;
    for (std::size_t left = records; left != 0;) {
      left -= value_of(
          subscriber.poll(kBatch, [&](const leat::Record& record) { sum += visit(record); }),
          "poll");
    }
    seen = sum;
  });
}

void run(const std::string& name, std::size_t size, std::size_t records) {
  leat::Topic topic = value_of(leat::Topic::open(name), "open the topic");
  const std::vector<std::byte> value(size);
  const double publish_ns = time_publishing(topic, records, [&](leat::Publisher& publisher) {
    for (std::size_t i = 0; i < records; ++i) (void)value_of(publisher.publish(value), "publish");
  });
  const double batch_ns = time_publishing(topic, records, [&](leat::Publisher& publisher) {
    for (std::size_t i = 0; i < records; i += kBatch) {
      leat::Batch batch = value_of(publisher.batch(), "make a batch");
      for (std::size_t j = 0; j < kBatch; ++j) {
        if (!batch.add(value)) throw std::runtime_error("cannot add to a batch");
      }
      (void)value_of(batch.commit(), "publish a batch");
    }
  });
  const auto copied = [](const leat::Record& record) {
    const std::string own{record.text()};
    return static_cast<unsigned char>(own.back());
  };
  const auto in_place = [](const leat::Record& record) {
    return static_cast<unsigned char>(record.value.back());
  };
  (void)read_all(topic, records, copied);
  const double read_ns = read_all(topic, records, copied);
  (void)read_all(topic, records, in_place);
  const double view_ns = read_all(topic, records, in_place);
  std::printf(
      "{\"runtime\": \"GCC %d.%d\", \"publish_ns\": %.2f, \"batch_ns\": %.2f, \"read_ns\": %.2f, "
      "\"view_ns\": %.2f}\n",
      __GNUC__, __GNUC_MINOR__, publish_ns, batch_ns, read_ns, view_ns);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: cpp TOPIC SIZE RECORDS\n", stderr);
    return 2;
  }
  try {
    run(argv[1], std::strtoull(argv[2], nullptr, 10), std::strtoull(argv[3], nullptr, 10));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
