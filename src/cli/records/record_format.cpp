#include "record_format.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <utility>

#include "cli/cli.hpp"

namespace leat::cli {

std::size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : (first & 0xf0) == 0xe0         ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Not the shortest form, a surrogate, or beyond U+10FFFF.
  if (first == 0xe0 && byte(1) < 0xa0) return 0;
  if (first == 0xed && byte(1) > 0x9f) return 0;
  if (first == 0xf0 && byte(1) < 0x90) return 0;
  if (first == 0xf4 && byte(1) > 0x8f) return 0;
  return length;
}

namespace {

constexpr std::string_view kFields = "tpoksvTSKh";

int hex_digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Returns the character of an escape whose backslash was read, and removes the rest of it from `text`.
char take_escape(std::string_view& text, const std::string& what) {
  const char letter = text.empty() ? '\0' : text[0];
  if (!text.empty()) text.remove_prefix(1);
  switch (letter) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '0': return '\0';
    case '\\': return '\\';
    case 'x':
      if (text.size() >= 2 && hex_digit(text[0]) >= 0 && hex_digit(text[1]) >= 0) {
        const int code = hex_digit(text[0]) * 16 + hex_digit(text[1]);
        text.remove_prefix(2);
        return static_cast<char>(code);
      }
      break;
    default: break;
  }
  throw Failure{kExitUsage,
                fmt::format("{}: '\\{}' means nothing; there are \\n \\t \\r \\0 \\\\ and \\x41",
                            what, letter == '\0' ? std::string{} : std::string{letter})};
}

void append_number(std::int64_t number, std::string& to) {
  fmt::format_to(std::back_inserter(to), "{}", number);
}

void append_headers(const Headers& headers, std::string& to) {
  bool is_first = true;
  for (const Header header : headers) {
    if (!std::exchange(is_first, false)) to += ',';
    to += header.name;
    to += '=';
    to += header.value.text();
  }
}

bool is_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// A JSON string. Bytes that are not UTF-8 become U+FFFD.
void append_string(std::string_view text, std::string& to) {
  to += '"';
  while (!text.empty()) {
    const char c = text[0];
    const std::size_t length = utf8_length(text);
    if (c == '"' || c == '\\') {
      to += '\\';
      to += c;
    } else if (c == '\n') {
      to += "\\n";
    } else if (c == '\t') {
      to += "\\t";
    } else if (c == '\r') {
      to += "\\r";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      fmt::format_to(std::back_inserter(to), "\\u{:04x}", static_cast<unsigned>(c));
    } else if (length == 0) {
      to += "\xef\xbf\xbd";
    } else {
      to.append(text, 0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  to += '"';
}

void append_base64(std::string_view bytes, std::string& to) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  to += '"';
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t here = bytes.size() - i < 3 ? bytes.size() - i : 3;
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (k < here ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      to += k <= here ? kDigits[group >> (18 - 6 * k) & 63] : '=';
    }
  }
  to += '"';
}

// "name":"text", or "name_base64":"…" if it is not UTF-8.
void append_field(std::string_view name, std::string_view bytes, std::string& to) {
  to += '"';
  to += name;
  if (is_utf8(bytes)) {
    to += "\":";
    append_string(bytes, to);
  } else {
    to += "_base64\":";
    append_base64(bytes, to);
  }
}

// One object of those headers whose values are (or are not) UTF-8.
void append_header_object(std::string_view name, const Headers& headers, bool utf8,
                          std::string& to) {
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> grouped;
  for (const Header header : headers) {
    if (is_utf8(header.value.text()) != utf8) continue;
    auto same = grouped.begin();
    while (same != grouped.end() && same->first != header.name) ++same;
    if (same == grouped.end()) same = grouped.insert(same, {header.name, {}});
    same->second.push_back(header.value.text());
  }
  if (grouped.empty()) return;
  const auto append_value = utf8 ? append_string : append_base64;
  fmt::format_to(std::back_inserter(to), ",\"{}\":{{", name);
  for (std::size_t i = 0; i < grouped.size(); ++i) {
    const auto& [header_name, values] = grouped[i];
    if (i != 0) to += ',';
    append_string(header_name, to);
    to += ':';
    if (values.size() > 1) to += '[';
    for (std::size_t k = 0; k < values.size(); ++k) {
      if (k != 0) to += ',';
      append_value(values[k], to);
    }
    if (values.size() > 1) to += ']';
  }
  to += '}';
}

}  // namespace

std::string unescape(std::string_view text, const std::string& what) {
  std::string result;
  while (!text.empty()) {
    const char c = text[0];
    text.remove_prefix(1);
    result += c == '\\' ? take_escape(text, what) : c;
  }
  return result;
}

RecordFormat RecordFormat::parse(std::string_view format) {
  RecordFormat result;
  const auto text = [&]() -> std::string& {
    if (result.pieces_.empty() || result.pieces_.back().field != 0) result.pieces_.emplace_back();
    return result.pieces_.back().text;
  };
  while (!format.empty()) {
    const char c = format[0];
    format.remove_prefix(1);
    if (c == '\\') {
      text() += take_escape(format, "--format");
    } else if (c == '%') {
      const char field = format.empty() ? '\0' : format[0];
      if (!format.empty()) format.remove_prefix(1);
      if (field == '%') {
        text() += '%';
      } else if (field != '\0' && kFields.find(field) != std::string_view::npos) {
        result.pieces_.push_back({field, {}});
      } else {
        throw Failure{
            kExitUsage,
            fmt::format(
                "--format: '%{}' means nothing; there are %t topic, %p partition, %o offset, %k "
                "key, %s or %v value, %T timestamp, %h headers, %K and %S sizes of key and value, "
                "and %%",
                field == '\0' ? std::string{} : std::string{field})};
      }
    } else {
      text() += c;
    }
  }
  return result;
}

void RecordFormat::append(const Record& record, std::string_view topic, std::string& to) const {
  for (const Piece& piece : pieces_) {
    switch (piece.field) {
      case 0: to += piece.text; break;
      case 't': to += topic; break;
      case 'p': append_number(record.partition, to); break;
      case 'o': append_number(static_cast<std::int64_t>(record.offset), to); break;
      case 'k': to += record.key.text(); break;
      case 's':
      case 'v': to += record.text(); break;
      case 'T': append_number(record.timestamp_ms, to); break;
      case 'S': append_number(static_cast<std::int64_t>(record.value.size()), to); break;
      // As kcat: -1 where there is no key at all.
      case 'K':
        append_number(record.has_key ? static_cast<std::int64_t>(record.key.size()) : -1, to);
        break;
      case 'h': append_headers(record.headers, to); break;
      default: break;
    }
  }
}

void append_json(const Record& record, std::string_view topic, std::string& to) {
  to += '{';
  if (!topic.empty()) {
    append_field("topic", topic, to);
    to += ',';
  }
  fmt::format_to(std::back_inserter(to), "\"offset\":{},\"partition\":{},", record.offset,
                 record.partition);
  append_field("value", record.text(), to);
  if (record.has_key) {
    to += ',';
    append_field("key", record.key.text(), to);
  }
  if (!record.headers.empty()) {
    append_header_object("headers", record.headers, true, to);
    append_header_object("headers_base64", record.headers, false, to);
  }
  if (record.timestamp_ms >= 0)
    fmt::format_to(std::back_inserter(to), ",\"timestamp_ms\":{}", record.timestamp_ms);
  to += "}\n";
}

}  // namespace leat::cli
