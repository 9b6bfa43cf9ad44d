// The manual page of an executable, made from what --help says of its commands.
//
//     fmt::print("{}", man_page(app));    // leat man >leat.1; man -l leat.1
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::tool {

// What --help does not say.
struct Manual {
  struct Entry {
    std::string name;  // "LEAT_PASSWORD", "~/.cache/x"
    std::string text;
  };
  // Besides those that every executable of ours reads and uses.
  std::vector<Entry> variables = {};
  std::vector<Entry> files = {};
};

// In the man(7) macros of roff.
std::string man_page(const CLI::App& app, const Manual& manual = {});

// What the executable is called: "leat-bench" for the app "leat bench".
std::string executable_name(const CLI::App& app);

}  // namespace leat::tool
