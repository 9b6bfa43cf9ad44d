// Columns that are as wide as they need to be, two spaces apart; heads in bold on a terminal.
//
//     Table table{{"NAME", Align::left}, {"RECORDS", Align::right}};
//     table.add({"news", "12"});
//     fmt::print("{}", table.text());
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace leat::cli {

enum class Align { left, right };

class Table {
 public:
  struct Column {
    std::string head;
    Align align;
  };
  Table(std::initializer_list<Column> columns) : columns_{columns} {}

  // Cells that are missing at the end stay empty. The last cell of a short row may be wider than its
  // column: it counts for no width.
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  std::string text() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace leat::cli
