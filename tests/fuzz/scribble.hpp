// Shared by the fuzzers of topic and group files: a private directory, reading numbers from the
// fuzzer's input, and overwriting words of a file as the input says.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace leat::fuzz {

inline const std::string& directory() {
  // Never destroyed: the handler below runs after destructors.
  static const std::string& path = *[] {
    std::atexit([] { std::filesystem::remove_all(directory()); });
    return new std::string{"/dev/shm/leat-fuzz-" + std::to_string(::getpid())};
  }();
  return path;
}

// Reads small numbers from the fuzzer's input.
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

// Overwrites up to 16 words of a file of topic "t", near its start or anywhere.
inline void scribble(Input& input, const std::string& file) {
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

}  // namespace leat::fuzz
