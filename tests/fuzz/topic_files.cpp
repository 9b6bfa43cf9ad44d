// Scribbled files: a small topic whose control and records files are overwritten at places and with
// bytes of the fuzzer's choice, before or after processes have attached. Whatever they hold, every
// call returns: data or an error, never a crash, never an endless loop.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>

#include "leat/leat.hpp"

namespace {

using leat::Deadline;

const std::string& directory() {
  // Never destroyed: the handler below runs after destructors.
  static const std::string& path = *[] {
    std::atexit([] { std::filesystem::remove_all(directory()); });
    return new std::string{"/dev/shm/leat-fuzz-" + std::to_string(::getpid())};
  }();
  return path;
}

// Takes little numbers off the input.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_{data}, size_{size} {}
  bool empty() const { return size_ == 0; }
  std::uint64_t take(std::size_t bytes) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes && size_ != 0; ++i, ++data_, --size_) {
      value |= std::uint64_t{*data_} << (8 * i);
    }
    return value;
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

// Overwrites up to 16 words of a file, near its start or anywhere.
void scribble(Input& input, const char* file) {
  const std::string path = directory() + "/t/" + file;
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  struct stat status {};
  ::fstat(fd, &status);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  for (int i = 0; i < 16 && !input.empty(); ++i) {
    const auto how = input.take(1);
    const std::uint64_t at = input.take(how % 2 == 0 ? 2 : 3) % (size - 8) & ~std::uint64_t{3};
    const std::uint64_t value = input.take(1 + how / 2 % 8);
    const std::size_t width = how % 3 == 0 ? 8 : how % 3 == 1 ? 4 : 1;
    (void)!::pwrite(fd, &value, width, static_cast<off_t>(at));
  }
  ::close(fd);
}

void fill(leat::Publisher& publisher) {
  const std::array<leat::Header, 2> headers = {{{"name", "value"}, {"", ""}}};
  for (int i = 0; i < 20; ++i) {
    (void)publisher.publish(std::string(static_cast<std::size_t>(i) * 37, 'x'),
                            Deadline::immediate());
    (void)publisher.publish({.key = "key", .headers = headers, .value = "value"},
                            Deadline::immediate());
    auto batch = publisher.batch();
    if (batch && batch->add("one") && batch->add({.key = "two", .value = "2"})) {
      (void)batch->commit(Deadline::immediate());
    }
    { auto dropped = publisher.try_claim(10); }
  }
}

std::size_t sum = 0;  // So that every byte is looked at.

void read(leat::Subscriber& subscriber) {
  for (int i = 0; i < 2000; ++i) {
    auto count = subscriber.poll(10, [](const leat::Record& record) {
      for (const std::byte byte : record.value) sum += std::to_integer<std::size_t>(byte);
      for (const std::byte byte : record.key) sum += std::to_integer<std::size_t>(byte);
      for (const leat::Header header : record.headers)
        sum += header.name.size() + header.value.size();
    });
    if (!count || (*count == 0 && i > 1100)) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input{data, size};
  const auto choices = input.take(1);
  std::filesystem::remove_all(directory());
  auto topic = leat::Topic::create(
      "t", {.capacity_bytes = 4 * 4096,
            .segment_bytes = 4096,
            .policy = (choices & 1) != 0 ? leat::Policy::overwrite : leat::Policy::block,
            .timestamps = (choices & 2) != 0,
            .participants = 4,
            .directory = directory()});
  if (!topic) std::abort();
  std::optional<leat::Publisher> before;
  std::optional<leat::Subscriber> reader_before;
  {
    auto publisher = topic->publisher({.exclusive = (choices & 4) != 0});
    auto subscriber = topic->subscriber(
        {.from = leat::From::beginning, .gating = (choices & 9) == 8, .patience = {}});
    if (!publisher || !subscriber) std::abort();
    fill(*publisher);
    if ((choices & 16) != 0) before.emplace(std::move(*publisher));
    if ((choices & 32) != 0) reader_before.emplace(std::move(*subscriber));
  }
  scribble(input, (choices & 64) != 0 ? "records" : "control");
  scribble(input, (choices & 128) != 0 ? "control" : "records");

  if (reader_before) read(*reader_before);
  if (before) fill(*before);
  if (auto again = leat::Topic::open("t", Deadline::immediate(), directory())) {
    (void)again->info();
    for (const bool gating : {false, true}) {
      auto subscriber = again->subscriber(
          {.from = leat::From::beginning, .gating = gating, .spin = {}, .patience = {}});
      if (!subscriber) continue;
      read(*subscriber);
      (void)subscriber->receive(Deadline::immediate());
    }
    if (auto publisher = again->publisher()) fill(*publisher);
  }
  (void)leat::Topic::remove("t", {.force = true, .directory = directory()});
  return 0;
}
