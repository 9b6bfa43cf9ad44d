// What all rivals in C++ share: the roles, and the protocol by which they talk with run.py. Payloads,
// clock and timing are those of bench/harness. A rival adds the two ends of a channel and main():
//
//     struct Pipe {
//       class Receiver {                                        // Makes the channel.
//        public:
//         Receiver(const Options& options, const std::string& channel);
//         // Passes what is there to on_record, or waits for it; may give up. Returns how many.
//         template <class OnRecord> std::size_t poll(const OnRecord& on_record);
//       };
//       class Sender {                                          // Joins it.
//        public:
//         Sender(const Options& options, const std::string& channel);
//         void send(std::span<const std::byte> record);         // Waits for room.
//         void flush();                                         // Sends what was held back.
//       };
//     };
//     int main(int argc, char** argv) { return run_peer<Pipe>(argc, argv); }
//
// Each role is a process. It prints "ready" when its receiver is there. When it reads the first "go" it
// joins and warms up, then prints "warm". When it reads the second "go" it measures, then prints one
// line of JSON. It exits when stdin ends, so that none exits before all are done.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <fstream>
#include <iostream>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "bench/harness/clock.hpp"
#include "bench/harness/payload.hpp"
#include "bench/harness/spin.hpp"

namespace leat::peers {

using bench::now_ns;
using bench::OutgoingPayloads;
using bench::Payload;
using bench::relax;
using bench::Verify;

inline constexpr std::size_t kQueueRecords = 1024;  // For queues whose size is in records.
// After this time a worker that waits checks whether all records have been received.
inline constexpr std::chrono::milliseconds kIdle{20};
inline constexpr std::uint64_t kMaxWorkers = 64;

struct Options {
  std::string role;
  std::string directory;
  std::size_t size = 100;
  std::uint64_t records = 1000;  // Of each sender; a reader receives all of them.
  std::uint64_t warm_up = 100;   // The same.
  std::uint64_t batch =
      1;  // Records sent, or taken by a worker, at a time; 0: as many as are there.
  std::uint64_t index = 0;  // Which of the senders or workers this is.
  std::uint64_t senders = 1;
  std::uint64_t workers = 1;
  bool spin = false;

  bool is_group() const noexcept { return role == "sender" || role == "worker"; }
  bool is_round_trip() const noexcept { return role == "caller" || role == "answerer"; }
};

inline Options parse_options(int argc, char** argv) {
  Options options;
  if (argc < 2) throw std::invalid_argument("usage: ROLE --dir DIR [--size N] [--records N] …");
  options.role = argv[1];
  const auto number = [](const std::string& name, const std::string& text) {
    std::uint64_t value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size()) {
      throw std::invalid_argument(name + " takes a number, not '" + text + "'");
    }
    return value;
  };
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--spin") {
      options.spin = true;
      continue;
    }
    if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
    const std::string value = argv[++i];
    if (name == "--dir")
      options.directory = value;
    else if (name == "--size")
      options.size = number(name, value);
    else if (name == "--records")
      options.records = number(name, value);
    else if (name == "--warm-up")
      options.warm_up = number(name, value);
    else if (name == "--batch")
      options.batch = number(name, value);
    else if (name == "--index")
      options.index = number(name, value);
    else if (name == "--senders")
      options.senders = number(name, value);
    else if (name == "--workers")
      options.workers = number(name, value);
    else
      throw std::invalid_argument("unknown option " + name);
  }
  if (options.directory.empty()) throw std::invalid_argument("--dir is missing");
  if (options.size < sizeof(std::uint64_t)) throw std::invalid_argument("--size is at least 8");
  if (options.senders == 0 || options.workers == 0 || options.workers > kMaxWorkers) {
    throw std::invalid_argument("--senders and --workers are at least 1");
  }
  return options;
}

// After a spinning role has found nothing: the same for all, also in the other languages.
inline void pause_between_polls(const Options& options) noexcept {
  if (options.spin) relax();
}

inline void say(const std::string& line) { std::cout << line << std::endl; }

inline void await_go() {
  std::string line;
  if (!std::getline(std::cin, line) || line != "go") throw std::runtime_error("nobody said go");
}

inline void await_end() {
  std::string line;
  while (std::getline(std::cin, line)) {
  }
}

inline void expect(bool is_right, std::uint64_t sequence) {
  if (!is_right) [[unlikely]] {
    throw std::runtime_error("record " + std::to_string(sequence) + " has the wrong content");
  }
}

inline std::uint64_t word_at(std::span<const std::byte> record, std::size_t index) {
  std::uint64_t word = 0;
  if (record.size() < (index + 1) * sizeof word) throw std::runtime_error("a record is too short");
  std::memcpy(&word, record.data() + index * sizeof word, sizeof word);
  return word;
}

// --- One way, one to one -----------------------------------------------------------------------

template <class Rival>
void publish(typename Rival::Sender& sender, OutgoingPayloads& outgoing, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) sender.send(outgoing.next());
  sender.flush();
}

template <class Rival>
void be_writer(const Options& options) {
  say("ready");
  await_go();
  const Payload payload(options.size, Verify::ends);
  OutgoingPayloads outgoing(payload, options.index, options.senders);
  typename Rival::Sender sender(options, "data");
  publish<Rival>(sender, outgoing, options.warm_up);
  say("warm");
  await_go();
  const std::uint64_t started_ns = now_ns();
  publish<Rival>(sender, outgoing, options.records);
  say("{\"started_ns\": " + std::to_string(started_ns) + "}");
  await_end();
}

// A spinning reader that has found nothing makes this many pauses, which take 25 us on our machine. One
// that polls again at once takes each cache line from the writer while it is being written, which can
// slow both down by a factor of 1.3 (Boost) to 3 (Disruptor).
inline constexpr int kBackOffPauses = 1000;

template <class Rival>
void be_reader(const Options& options) {
  const Payload payload(options.size, Verify::ends);
  typename Rival::Receiver receiver(options, "data");
  say("ready");
  await_go();
  std::uint64_t received = 0;
  const auto read = [&](std::uint64_t count) {
    std::uint64_t next = received;  // A copy: the compiler keeps it in a register.
    received += count;
    while (next < received) {
      const std::size_t polled = receiver.poll([&](std::span<const std::byte> record) {
        expect(record.size() == payload.size() && payload.check(record.data(), next), next);
        ++next;
      });
      for (int i = 0; options.spin && polled == 0 && i < kBackOffPauses; ++i) relax();
    }
  };
  read(options.warm_up);
  say("warm");
  await_go();
  read(options.records);
  say("{\"ended_ns\": " + std::to_string(now_ns()) + "}");
  await_end();
}

// --- Round trips -------------------------------------------------------------------------------

template <class Number>
void write_numbers(const std::string& file, const std::vector<Number>& numbers) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
}

// As 32-bit numbers; a duration of more than 4 s counts as 4 s.
inline void write_samples(const std::string& file, const std::vector<std::uint64_t>& samples_ns) {
  std::vector<std::uint32_t> clamped;
  for (const std::uint64_t sample_ns : samples_ns) {
    clamped.push_back(static_cast<std::uint32_t>(
        std::min<std::uint64_t>(sample_ns, std::numeric_limits<std::uint32_t>::max())));
  }
  write_numbers(file, clamped);
}

template <class Rival>
void be_caller(const Options& options) {
  const Payload payload(options.size, Verify::ends);
  OutgoingPayloads outgoing(payload);
  typename Rival::Receiver receiver(options, "back");
  auto samples_ns = bench::empty_samples(options.records);
  say("ready");
  await_go();
  typename Rival::Sender sender(options, "there");
  std::uint64_t sequence = 0;
  const auto call = [&] {
    sender.send(outgoing.next());
    sender.flush();
    const auto check = [&](std::span<const std::byte> record) {
      expect(record.size() == payload.size() && payload.check(record.data(), sequence), sequence);
    };
    while (receiver.poll(check) == 0) pause_between_polls(options);
    ++sequence;
  };
  for (std::uint64_t i = 0; i < options.warm_up; ++i) call();
  say("warm");
  await_go();

  // Two passes, so that reading the clock for each message is not part of the mean.
  const bench::Pass pass = bench::time_all(options.records, call);
  (void)bench::time_each(samples_ns, call);
  write_samples(options.directory + "/samples", samples_ns);
  say("{\"started_ns\": " + std::to_string(pass.started_ns) +
      ", \"ended_ns\": " + std::to_string(pass.ended_ns) + "}");
  await_end();
}

template <class Rival>
void be_answerer(const Options& options) {
  typename Rival::Receiver receiver(options, "there");
  say("ready");
  await_go();
  typename Rival::Sender sender(options, "back");
  const auto answer = [&](std::uint64_t count) {
    while (count != 0) {
      const std::size_t polled = receiver.poll([&](std::span<const std::byte> record) {
        sender.send(record);
        sender.flush();
      });
      if (polled == 0) pause_between_polls(options);
      count -= polled;
    }
  };
  answer(options.warm_up);
  say("warm");
  await_go();
  answer(2 * options.records);
  say("{}");
  await_end();
}

// --- Each record to one of several workers -----------------------------------------------------

// How many records each worker has received, in memory shared by all workers: so each knows when all
// records have been received.
class Counters {
 public:
  explicit Counters(const Options& options) : index_{options.index} {
    const std::string path = options.directory + "/counters";
    const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0 || ::ftruncate(file, kBytes) != 0) throw std::runtime_error("cannot make " + path);
    void* const at = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (at == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    words_ = static_cast<std::uint64_t*>(at);
  }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  ~Counters() { ::munmap(words_, kBytes); }

  // relaxed, as the loads: only the counts themselves matter.
  void set(std::uint64_t count) noexcept {
    std::atomic_ref(words_[index_]).store(count, std::memory_order_relaxed);
  }
  std::uint64_t of_all() const noexcept {
    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < kMaxWorkers; ++i) {
      sum += std::atomic_ref(words_[i]).load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  static constexpr std::size_t kBytes = kMaxWorkers * sizeof(std::uint64_t);
  std::uint64_t index_;
  std::uint64_t* words_;
};

template <class Rival>
void be_worker(const Options& options) {
  const Payload payload(options.size, Verify::ends);
  typename Rival::Receiver receiver(options, "data");
  Counters counters(options);
  std::vector<std::uint64_t> received;
  received.reserve((options.records + options.warm_up) * options.senders);
  std::uint64_t last_ns = 0;
  say("ready");
  await_go();
  const auto receive = [&](std::uint64_t total) {
    while (true) {
      const std::size_t count = receiver.poll([&](std::span<const std::byte> record) {
        const std::uint64_t sequence = word_at(record, 0);
        expect(record.size() == payload.size() && payload.check(record.data(), sequence), sequence);
        received.push_back(sequence);
      });
      if (count != 0) {
        last_ns = now_ns();
        counters.set(received.size());
      } else if (counters.of_all() >= total) {
        return;
      }
    }
  };
  receive(options.warm_up * options.senders);
  say("warm");
  await_go();
  receive((options.warm_up + options.records) * options.senders);
  write_numbers(options.directory + "/received." + std::to_string(options.index), received);
  say("{\"ended_ns\": " + std::to_string(last_ns) + "}");
  await_end();
}

// --- A publisher dies ----------------------------------------------------------------------------
// A record holds who sent it (0: the victim, 1: the survivor), when, and when the victim was killed (0:
// not yet), then zeros.

template <class Rival>
void be_victim(const Options& options) {
  say("ready");
  await_go();
  const std::vector<std::byte> record(options.size);
  typename Rival::Sender sender(options, "data");
  sender.send(record);
  sender.flush();
  say("warm");
  while (true) {
    sender.send(record);
    sender.flush();
  }
}

// Publishes every 100 us, and tells the watcher when the victim was killed.
template <class Rival>
void be_survivor(const Options& options) {
  say("ready");
  await_go();
  std::atomic<std::uint64_t> killed_ns{0};
  std::thread listener([&] {
    std::string line;
    while (std::getline(std::cin, line)) killed_ns = std::stoull(line);
    std::_Exit(0);  // The other thread may be stuck forever; the driver has its result.
  });
  listener.detach();
  std::vector<std::byte> record(options.size);
  typename Rival::Sender sender(options, "data");
  for (bool is_first = true; true; is_first = false) {
    const std::uint64_t killed = killed_ns;  // Read before the clock, so the record is sent later.
    const std::array<std::uint64_t, 3> words = {1, now_ns(), killed};
    std::memcpy(record.data(), words.data(), sizeof words);
    sender.send(record);
    sender.flush();
    if (is_first) say("warm");
    std::this_thread::sleep_for(std::chrono::microseconds{100});
  }
}

template <class Rival>
void be_watcher(const Options& options) {
  struct Seen {
    std::uint64_t sent_ns, received_ns;
  };
  constexpr std::size_t kRemembered = 100'000;  // Several seconds of the survivor's records.
  typename Rival::Receiver receiver(options, "data");
  say("ready");
  await_go();
  std::array<bool, 2> has_seen{};
  std::deque<Seen> survivors;
  bool is_warm = false;
  std::uint64_t killed_ns = 0;
  while (killed_ns == 0) {
    const std::size_t polled = receiver.poll([&](std::span<const std::byte> record) {
      const bool is_survivor = word_at(record, 0) == 1;
      has_seen[is_survivor] = true;
      if (!is_survivor) return;
      survivors.push_back({word_at(record, 1), now_ns()});
      if (survivors.size() > kRemembered) survivors.pop_front();
      killed_ns = word_at(record, 2);
    });
    if (polled == 0) pause_between_polls(options);
    if (!is_warm && has_seen[0] && has_seen[1]) {
      is_warm = true;
      say("warm");
    }
  }
  const auto first = std::find_if(survivors.begin(), survivors.end(),
                                  [&](const Seen& seen) { return seen.sent_ns >= killed_ns; });
  say("{\"recovery_ns\": " + std::to_string(first->received_ns - killed_ns) + "}");
  await_end();
}

// The main() of every rival.
template <class Rival>
int run_peer(int argc, char** argv) {
  try {
    const Options options = parse_options(argc, argv);
    if (options.role == "writer" || options.role == "sender")
      be_writer<Rival>(options);
    else if (options.role == "reader")
      be_reader<Rival>(options);
    else if (options.role == "caller")
      be_caller<Rival>(options);
    else if (options.role == "answerer")
      be_answerer<Rival>(options);
    else if (options.role == "worker")
      be_worker<Rival>(options);
    else if (options.role == "victim")
      be_victim<Rival>(options);
    else if (options.role == "survivor")
      be_survivor<Rival>(options);
    else if (options.role == "watcher")
      be_watcher<Rival>(options);
    else
      throw std::invalid_argument("no such role: " + options.role);
    return 0;
  } catch (const std::invalid_argument& error) {
    std::cerr << error.what() << '\n';
    return 2;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

}  // namespace leat::peers
