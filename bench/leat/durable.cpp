#include "durable.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <thread>

#include "bench/harness/clock.hpp"
#include "leat/store/recovery.hpp"

namespace leat::bench {
namespace {

constexpr std::chrono::seconds kTimeLimit{300};

// Until everything before the offset is where the topic's durability wants it.
void await_safe(const Topic& topic, std::uint64_t offset) {
  for (;;) {
    const TopicInfo info = topic.info();
    const PartitionInfo& partition = info.partitions[0];
    const bool is_os = info.durable && info.durable->durability == Durability::os;
    if ((is_os ? partition.written : partition.durable) >= offset) return;
    if (info.durable && info.durable->state != Errc::ok)
      throw topic_failure("write to disk", {info.durable->state, info.durable->reason});
    std::this_thread::sleep_for(std::chrono::microseconds{200});
  }
}

// Offset 0 is the record with which the process became the archiver.
constexpr std::uint64_t kFirstOffset = 1;

Topic open_durable(const std::string& directory, const std::string& data_directory) {
  return value_of(Topic::open(kLogTopic, Deadline::immediate(), directory, {}, data_directory),
                  "open the topic");
}

// The process that publishes the first record is the archiver from then on, unless it is too slow.
void become_archiver(const Topic& topic) {
  (void)value_of(TopicSender{topic, Mode::shared}.publisher().publish(Bytes{}), "publish");
  await_safe(topic, kFirstOffset);
}

struct DurableSender : TopicSender {
  DurableSender(const std::string& directory, const std::string& data_directory, Mode mode)
      : TopicSender{open_durable(directory, data_directory), mode, Stage::committed} {}
};

// Waits for the disk behind every so many records.
class InFlightSender {
 public:
  // `keeps`: not null makes this process the archiver; set to true when it is.
  InFlightSender(const std::string& directory, const std::string& data_directory, Mode mode,
                 std::uint32_t in_flight, std::atomic<bool>* keeps)
      : topic_{open_durable(directory, data_directory)}, in_flight_{in_flight} {
    if (keeps != nullptr) {
      become_archiver(topic_);
      *keeps = true;
    }
    sender_.emplace(topic_, mode, Stage::committed);
  }

  void send(Bytes message) {
    sender_->send(message);
    if (++waiting_ == in_flight_) settle();
  }
  void flush() {}

 private:
  void settle() {
    value_of(sender_->publisher().flush(), "sync");
    waiting_ = 0;
  }

  Topic topic_;
  std::optional<TopicSender> sender_;
  std::uint32_t in_flight_;
  std::uint32_t waiting_ = 0;
};

class DurableBatchSender {
 public:
  DurableBatchSender(const std::string& directory, const std::string& data_directory, Mode mode)
      : sender_{directory, data_directory, mode}, batch_{sender_} {}

  void send(Bytes message) { batch_.send(message); }
  void flush() { batch_.flush(); }

 private:
  DurableSender sender_;
  TopicBatch batch_;
};

struct StoredReceiver : TopicReceiver {
  explicit StoredReceiver(const Topic& topic)
      : TopicReceiver{topic, WhenEmpty::pause, From::offset(kFirstOffset)} {}
};

// Waits until what it receives is on disk. It keeps the topic, unless somebody else `keeps` it: then it
// opens the topic when that one does.
class ArchiverEnd {
 public:
  ArchiverEnd(const std::string& directory, const std::string& data_directory,
              std::uint32_t& changes, const std::atomic<bool>* keeps = nullptr)
      : directory_{directory}, data_directory_{data_directory}, keeps_{keeps}, changes_{changes} {
    if (keeps != nullptr) return;
    topic_ = open_durable(directory, data_directory);
    become_archiver(*topic_);
  }

  void receive(std::uint64_t count, RoleTimes& times) {
    if (!topic_) {
      while (!*keeps_) std::this_thread::sleep_for(std::chrono::milliseconds{1});
      topic_ = open_durable(directory_, data_directory_);
    }
    safe_ += count;
    await_safe(*topic_, safe_);
    times.end();
    const bool is_here =
        topic_->info().durable->archiver_pid == static_cast<std::uint32_t>(::getpid());
    changes_ = is_here == (keeps_ == nullptr) ? 0 : 1;
  }

 private:
  std::string directory_;
  std::string data_directory_;
  const std::atomic<bool>* keeps_;
  std::optional<Topic> topic_;
  std::uint32_t& changes_;
  std::uint64_t safe_ = kFirstOffset;
};

Load load_of_durable(const LogOptions& options, const DurableLevel& level) {
  const std::uint64_t each = (options.records + options.publishers - 1) / options.publishers;
  const std::uint64_t in_flight =
      level.in_flight;  // Whole groups, so that the last one waits, too.
  return {.size = options.size,
          .count = in_flight == 0 ? each : (each + in_flight - 1) / in_flight * in_flight,
          .warm_up = in_flight != 0 ? 10 * in_flight
                     : level.recycles
                         ? each  // Until there are files to be used again.
                         : warm_up_of_log(options.size, options.publishers, options.capacity_bytes),
          .verify = options.verify,
          .pattern = Pattern::oneway,
          .variant = Variant::spinning,
          .senders = options.publishers,
          .batch = options.batch,
          .rate = options.rate,
          .time_limit = kTimeLimit};
}

void create_durable(const TemporaryTopics& topics, const std::string& data_directory,
                    const DurableLevel& level, std::uint64_t capacity_bytes,
                    std::uint64_t file_bytes) {
  topics.create(kLogTopic, {.capacity_bytes = capacity_bytes,
                            .durable = level.durable,
                            .sync_interval = level.sync_interval,
                            .file_bytes = file_bytes,
                            .data_directory = data_directory,
                            .retention_bytes = level.recycles ? file_bytes : 0});
}

// What retention has left can be read, without a gap.
void check_rest(const std::string& directory, const std::string& data_directory, int cpu) {
  run_roles({{"reader of what is left", cpu,
              [&](Barrier&) {
                const Topic topic = open_durable(directory, data_directory);
                TopicReceiver receiver(topic, WhenEmpty::pause);
                const PartitionInfo partition = topic.info().partitions[0];
                for (std::uint64_t left = partition.end - partition.start; left != 0;)
                  left -= receiver.receive(left, [](Bytes) {});
              }}},
            kTimeLimit);
}

// Reads and verifies everything, in a process of its own. Returns nanoseconds.
double replay_ns(const Load& load, const std::string& directory, const std::string& data_directory,
                 int cpu) {
  const Shared<double> elapsed_ns;
  run_roles({{"reader of the files", cpu,
              [&](Barrier&) {
                const Topic topic = open_durable(directory, data_directory);
                RoleTimes times;
                InOrder<StoredReceiver> reader(load, topic);
                times.start();
                reader.receive((load.warm_up + load.count) * load.senders, times);
                *elapsed_ns = static_cast<double>(times.ended_ns - times.started_ns);
              }}},
            kTimeLimit);
  return *elapsed_ns;
}

}  // namespace

tool::PrivateDirectory make_data_directory(const std::string& parent) {
  return value_of(tool::PrivateDirectory::make(parent, tool::kBenchPrefix),
                  "make a directory in " + parent);
}

std::uint64_t log_bytes_of(const LogOptions& options, const DurableLevel& level) {
  const Load load = load_of_durable(options, level);
  const std::uint64_t record =
      options.batch == 1 ? (options.size + 16 + 15) / 16 * 16 : (options.size + 4 + 7) / 8 * 8 + 2;
  return (load.warm_up + load.count) * load.senders * record;
}

DurableCost measure_durable(const LogOptions& options, const DurableLevel& level,
                            const std::string& data_parent, const std::vector<int>& cpus) {
  const TemporaryTopics topics;
  const tool::PrivateDirectory data = make_data_directory(data_parent);
  create_durable(topics, data.path(), level, options.capacity_bytes, TopicOptions{}.file_bytes);
  const Load load = load_of_durable(options, level);
  const Shared<std::uint32_t> changes(0u);
  const Shared<std::atomic<bool>> publisher_archives(false);
  std::atomic<bool>* const keeps = level.publisher_archives ? &*publisher_archives : nullptr;
  const auto measure = [&](const auto& make_sender) {
    return measure_one_way(load, place_on(cpus, load.senders, 1), make_sender, [&](std::uint32_t) {
      return ArchiverEnd(topics.directory(), data.path(), *changes, keeps);
    });
  };
  const auto single = [&](std::uint32_t i) {
    return Sending<DurableSender>(load, i, topics.directory(), data.path(), options.mode);
  };
  const auto batched = [&](std::uint32_t i) {
    return Sending<DurableBatchSender>(load, i, topics.directory(), data.path(), options.mode);
  };
  const auto in_flight = [&](std::uint32_t i) {
    return Sending<InFlightSender>(load, i, topics.directory(), data.path(), options.mode,
                                   level.in_flight, keeps);
  };
  const Measured measured = level.in_flight != 0 ? measure(in_flight)
                            : options.batch == 1 ? measure(single)
                                                 : measure(batched);
  const RoleTimes& archiver = measured.receivers.front();
  const auto payload = static_cast<double>(load.count * load.senders * load.size);
  DurableCost cost{.messages = cost_per_message(measured, load)};
  cost.messages.receiver_cpu_ns = 0;
  // Without the thread that waits for the end.
  if (!level.publisher_archives)
    cost.archiver_cpu_ns_per_byte =
        static_cast<double>(archiver.process.cpu_ns -
                            std::min(archiver.cpu_ns, archiver.process.cpu_ns)) /
        payload;
  cost.archiver_changes = *changes;
  if (level.recycles) {
    check_rest(topics.directory(), data.path(), cpus.back());
  } else {
    (void)replay_ns(load, topics.directory(), data.path(), cpus.back());
  }
  return cost;
}

StoredTopic::StoredTopic(const std::string& data_parent, std::uint64_t records, std::size_t size,
                         std::uint64_t file_bytes, bool is_clean, int cpu)
    : data_{make_data_directory(data_parent)}, records_{records}, size_{size} {
  create_durable(topics_, data_.path(), {}, kDurableCapacityBytes, file_bytes);
  const Shared<std::uint32_t> ignored(0u);
  const Load load = this->load();
  const auto publish = [&] {
    ArchiverEnd archiver(topics_.directory(), data_.path(), *ignored);
    Sending<DurableSender> sender(load, 0, topics_.directory(), data_.path(), Mode::shared);
    sender.send(records_);
    RoleTimes times;
    archiver.receive(records_, times);
    if (!is_clean) ::_exit(0);  // As a kill: nothing is closed.
  };
  run_roles({{"publisher of the stored topic", cpu, [&](Barrier&) { publish(); }}}, kTimeLimit);
}

Load StoredTopic::load() const {
  return {.size = size_,
          .count = records_,
          .warm_up = 0,
          .verify = Verify::ends,
          .pattern = Pattern::oneway};
}

std::vector<std::string> StoredTopic::files() const {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(data_.path() + "/" + kLogTopic)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(detail::kSegmentPrefix)) found.push_back(entry.path());
  }
  return found;
}

std::uint64_t StoredTopic::bytes_on_disk() const {
  std::uint64_t bytes = 0;
  for (const std::string& file : files()) bytes += std::filesystem::file_size(file);
  return bytes;
}

double StoredTopic::replayed_per_second(int cpu) const {
  return static_cast<double>(records_) * 1e9 /
         replay_ns(load(), topics_.directory(), data_.path(), cpu);
}

double StoredTopic::searched_bytes_per_second(int cpu) const {
  const Shared<double> elapsed_ns;
  const auto search = [&] {
    detail::Disk& disk = detail::Disk::system();
    const auto directory =
        value_of(detail::open_directory_path(data_.path() + "/" + kLogTopic, false, false),
                 "open the files");
    const auto manifest = value_of(detail::load_manifest(disk, directory.get()), "read a manifest");
    const auto checkpoint = value_of(detail::CheckpointFile::load(disk, directory.get(), manifest),
                                     "read a checkpoint");
    const std::uint64_t started_ns = now_ns();
    const auto ends = value_of(detail::find_ends(disk, directory.get(), manifest, checkpoint),
                               "find where the files end");
    *elapsed_ns = static_cast<double>(now_ns() - started_ns);
    if (ends.partitions[0].frames_end != kFirstOffset + records_)
      throw Failure(fmt::format("recovery found {} of {} records", ends.partitions[0].frames_end,
                                kFirstOffset + records_));
  };
  run_roles({{"finder of the end", cpu, [&](Barrier&) { search(); }}}, kTimeLimit);
  return static_cast<double>(bytes_on_disk()) * 1e9 / *elapsed_ns;
}

namespace {

// Until a topic is there and can be published to.
template <class Make>
double made_ns(const char* name, int cpu, const Make& make) {
  const Shared<double> elapsed_ns;
  run_roles({{name, cpu,
              [&](Barrier&) {
                const std::uint64_t started_ns = now_ns();
                const Topic topic = make();
                const TopicSender sender(topic, Mode::exclusive);
                *elapsed_ns = static_cast<double>(now_ns() - started_ns);
              }}},
            kTimeLimit);
  return *elapsed_ns;
}

}  // namespace

double StoredTopic::open_ns(int cpu) const {
  return made_ns("opener", cpu, [&] { return open_durable(topics_.directory(), data_.path()); });
}

double StoredTopic::transient_ns(int cpu) const {
  const TemporaryTopics topics;
  return made_ns("maker of a topic", cpu, [&] {
    return value_of(Topic::create(kLogTopic, {.capacity_bytes = kDurableCapacityBytes,
                                              .directory = topics.directory()}),
                    "make a topic");
  });
}

}  // namespace leat::bench
