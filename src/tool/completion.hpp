// Completion of what is typed on the command line, for bash, zsh and fish.
//
//     eval "$(leat completion bash)"          # what `make install` installs as a file
//     leat complete topic create news --pol   # what that asks: prints "--policy", a tab, and what it is
//
// Everything comes from the commands as they are registered, and from the topics that there are; so it
// can't be out of date.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}  // namespace CLI

namespace leat::tool {

struct Candidate {
  std::string word;  // Or kFiles, kDirectories: the shell knows them.
  std::string description;
  bool operator==(const Candidate&) const = default;
};
inline constexpr char kFiles[] = ":files";
inline constexpr char kDirectories[] = ":directories";

// What may stand in place of the last word, which may be empty, behind the words before it (without the
// executable's name). A --dir among them counts, and goes into the environment.
std::vector<Candidate> complete(const CLI::App& app, std::vector<std::string> words);

// The script for that shell; nothing for an unknown one.
std::optional<std::string> completion_script(std::string_view shell, const std::string& executable);

}  // namespace leat::tool
