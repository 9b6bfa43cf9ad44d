// How `leat sub` writes a record: as a format string like kcat's says, or as one line of JSON.
//
//     const RecordFormat format = RecordFormat::parse("%o %s\\n", "news");
//     format.append(record, text);
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "leat/record.hpp"

namespace leat::cli {

class RecordFormat {
 public:
  // Fails with a sentence about --format if it means nothing.
  static RecordFormat parse(std::string_view format, std::string topic);
  void append(const Record& record, std::string& to) const;

 private:
  struct Piece {
    char field = 0;  // The letter behind the percent sign; 0: text.
    std::string text;
  };
  std::vector<Piece> pieces_;
  std::string topic_;
};

// {"offset", "partition", "value", "key", "headers", "timestamp_ms"} and a newline; the last three
// where present. What is not UTF-8 becomes "value_base64", "key_base64", "headers_base64". A header
// name that occurs more than once gets an array.
void append_json(const Record& record, std::string& to);

}  // namespace leat::cli
