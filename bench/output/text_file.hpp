// Text output to a file or to stdout.
//
//     write_text("report.html", page);  // or "-": stdout
#pragma once

#include <string>

namespace leat::bench {

// Throws Failure unless all of it was written.
void write_text(const std::string& file, const std::string& text);

// Throws Failure now, rather than after minutes of measuring, if the file cannot be written.
void check_writable(const std::string& file);

}  // namespace leat::bench
