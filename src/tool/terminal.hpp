// What text is written for: a terminal of some width that may show colours, or anything else.
//
//     fmt::print("{}\n", styled(Style::red, "FAILED"));    // plain where stdout is no terminal
//     fmt::print("{}\n", wrapped(text, terminal_width(), 2));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace leat::tool {

// Columns of the terminal that stdout is connected to; else $COLUMNS, else 80.
std::size_t terminal_width();
// Rows of that terminal; 0 if there is none.
std::size_t terminal_height();

// Whether stdout is a terminal on which text can be written over.
bool has_cursor();
// Whether stdout is a terminal with colours, and $NO_COLOR is not set (no-color.org).
bool shows_colours();

enum class Style { bold, red, green, yellow };
// For stdout: unchanged unless it shows colours.
std::string styled(Style style, std::string_view text);

// A name that somebody else chose: control characters, which terminals take as commands, become '?'.
std::string without_controls(std::string text);

// How many columns `text` takes: one for each character of UTF-8, none for what sets a colour.
std::size_t columns_of(std::string_view text);
// Its first `columns` columns, colours and all.
std::string clipped(std::string_view text, std::size_t columns);

// Breaks lines between words, never within one. All lines but the first begin with `indent` spaces,
// for which there is room in the width; a line that begins with a space (an example) stays whole.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent = 0);

}  // namespace leat::tool
