#include "terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace leat::tool {
namespace {

winsize size_of_terminal() {
  winsize size{};
  if (::isatty(STDOUT_FILENO) == 0 || ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return {};
  return size;
}

// How many bytes at the start of `text` set a colour: "\033[…m". 0: none.
std::size_t escape_length(std::string_view text) {
  if (!text.starts_with("\033[")) return 0;
  const std::size_t end = text.find('m');
  return end == std::string_view::npos ? 0 : end + 1;
}

bool is_inside_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string wrapped_line(std::string_view line, std::size_t width, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    if (word.empty()) continue;
    const std::size_t columns = columns_of(word);
    const bool is_first = column == indent;
    if (!is_first && column + 1 + columns > width) {
      text += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      text += ' ';
      ++column;
    }
    text += word;
    column += columns;
  }
  return text;
}

}  // namespace

std::size_t terminal_width() {
  constexpr std::size_t kUsual = 80;
  if (const winsize size = size_of_terminal(); size.ws_col != 0) return size.ws_col;
  const char* const columns = std::getenv("COLUMNS");
  const std::string_view text = columns == nullptr ? "" : columns;
  std::size_t width = 0;
  std::from_chars(text.data(), text.data() + text.size(), width);
  return width == 0 ? kUsual : width;
}

std::size_t terminal_height() { return size_of_terminal().ws_row; }

bool has_cursor() {
  const char* const terminal = std::getenv("TERM");
  const std::string_view kind = terminal == nullptr ? "" : terminal;
  return ::isatty(STDOUT_FILENO) != 0 && !kind.empty() && kind != "dumb";
}

bool shows_colours() {
  const char* const no_colour = std::getenv("NO_COLOR");
  return (no_colour == nullptr || *no_colour == '\0') && has_cursor();
}

std::string styled(Style style, std::string_view text) {
  if (!shows_colours()) return std::string{text};
  constexpr int kCodes[] = {1, 31, 32, 33};  // In the order of Style.
  return fmt::format("\033[{}m{}\033[0m", kCodes[static_cast<int>(style)], text);
}

std::string without_controls(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters, too: 0xC2 and one of these.
    const bool is_wide =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (is_wide) text.erase(i + 1, 1);
    if (is_wide || byte < 0x20 || byte == 0x7F) text[i] = '?';
  }
  return text;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const std::size_t escape = escape_length(text);
    if (escape == 0 && !is_inside_character(text[0])) ++columns;
    text.remove_prefix(std::max<std::size_t>(escape, 1));
  }
  return columns;
}

std::string clipped(std::string_view text, std::size_t columns) {
  std::string result;
  std::size_t left =
      columns + 1;  // One more, because a character's last bytes come after its first.
  while (!text.empty()) {
    const std::size_t escape = escape_length(text);
    if (escape == 0 && left != 0 && !is_inside_character(text[0])) --left;
    const std::size_t length = std::max<std::size_t>(escape, 1);
    if (escape != 0 || left != 0) result += text.substr(0, length);
    text.remove_prefix(length);
  }
  return result;
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  while (true) {
    const std::string_view line = text.substr(0, text.find('\n'));
    result += line.starts_with(' ') ? std::string{line} : wrapped_line(line, width, indent);
    text.remove_prefix(line.size());
    if (text.empty()) return result;
    text.remove_prefix(1);
    result += '\n' + std::string(indent, ' ');
  }
}

}  // namespace leat::tool
