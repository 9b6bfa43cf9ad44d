// A text that a command was asked to write somewhere.
//
//     write_text("report.html", page);  // or "-": stdout
#pragma once

#include <string>

namespace leat::bench {

// Throws Failure if it cannot all be written.
void write_text(const std::string& file, const std::string& text);

// Fails now rather than after minutes of measuring if the file cannot be written.
void check_writable(const std::string& file);

}  // namespace leat::bench
