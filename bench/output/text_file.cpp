#include "text_file.hpp"

#include <cstdio>
#include <memory>

#include "bench/failure.hpp"

namespace leat::bench {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

File open_file(const std::string& name, const char* mode) {
  File file{std::fopen(name.c_str(), mode), &std::fclose};
  if (!file) throw system_failure("cannot write " + name);
  return file;
}

}  // namespace

void write_text(const std::string& file, const std::string& text) {
  const bool to_stdout = file == "-";
  File opened{nullptr, &std::fclose};
  if (!to_stdout) opened = open_file(file, "w");
  std::FILE* out = to_stdout ? stdout : opened.get();
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0) {
    throw system_failure("cannot write " + (to_stdout ? "to stdout" : file));
  }
}

void check_writable(const std::string& file) {
  if (file != "-") open_file(file, "a");
}

}  // namespace leat::bench
