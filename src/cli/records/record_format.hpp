// How `leat sub` writes a record: by a format string like kcat's, or as one line of JSON.
//
//     const RecordFormat format = RecordFormat::parse("%o %s\\n");
//     format.append(record, "news", text);
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "leat/record.hpp"

namespace leat::cli {

class RecordFormat {
 public:
  // Fails with a sentence about --format if it means nothing.
  static RecordFormat parse(std::string_view format);
  void append(const Record& record, std::string_view topic, std::string& to) const;

 private:
  struct Piece {
    char field = 0;  // The letter behind the percent sign; 0: text.
    std::string text;
  };
  std::vector<Piece> pieces_;
};

// Replaces the escapes \n \t \r \0 \\ and \x41. The error about any other names the option `what`.
std::string unescape(std::string_view text, const std::string& what);

// Length of the UTF-8 sequence at the start of `text`, or 0 if there is none.
std::size_t utf8_length(std::string_view text) noexcept;

// {"offset", "partition", "value", "key", "headers", "timestamp_ms"} and a newline; the last three
// where present, and "topic" first unless it is empty. What is not UTF-8 becomes "value_base64",
// "key_base64", "headers_base64". A header name that occurs more than once gets an array.
void append_json(const Record& record, std::string_view topic, std::string& to);

}  // namespace leat::cli
