// Reads a broker's configuration: one TOML file, variables, flags. The later of the three wins.
//
//     ConfigSources sources{.file = "leat.toml", .flags = {{"lines.port", "5600"}}};
//     Outcome<Config> config = read_config(sources, keys);
//     if (!config) return fail(config.problem().sentence);
//     // leat.toml:7: there is no key 'lines.prot' (did you mean 'lines.port'?)
//
// Of the environment only their variables are looked at, so that LEAT_PASSWORD and
// others mean nothing here. The whole configuration is checked before it is returned: a wrong one changes nothing.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config_key.hpp"

namespace leat::broker {

struct ConfigSources {
  std::string file = {};                                        // Empty: none.
  std::map<std::string, std::string> variables = {};            // The environment.
  std::vector<std::pair<std::string, std::string>> flags = {};  // Names of keys, and values.
};

//   not_found, permission, io_error   the file cannot be read
//   invalid_argument                  anything in it or in the others is wrong; the sentence says where
Outcome<Config> read_config(const ConfigSources& sources, const ConfigKeys& keys);

// The same for the text of a file; `name` is for the sentences.
Outcome<void> read_config_text(std::string_view text, const std::string& name,
                               const ConfigKeys& keys, Config& config);

}  // namespace leat::broker
