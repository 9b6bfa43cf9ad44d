#include "table.hpp"

#include <algorithm>

#include "tool/terminal.hpp"

namespace leat::cli {

std::string Table::text() const {
  std::vector<std::string> heads;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    heads.push_back(tool::styled(tool::Style::bold, column.head));
    widths.push_back(column.head.size());
  }
  for (const auto& row : rows_) {
    const std::size_t measured = row.size() < columns_.size() ? row.size() - 1 : row.size();
    for (std::size_t i = 0; i < measured; ++i)
      widths[i] = std::max(widths[i], tool::columns_of(row[i]));
  }
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t columns = tool::columns_of(row[i]);
      const std::string padding(widths[i] > columns ? widths[i] - columns : 0, ' ');
      line += i == 0 ? "" : "  ";
      line += columns_[i].align == Align::left ? row[i] + padding : padding + row[i];
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append(heads);
  for (const auto& row : rows_) append(row);
  return text;
}

}  // namespace leat::cli
