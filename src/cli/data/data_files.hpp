// The files of a durable topic, for commands that read them without opening the topic.
#pragma once

#include <string>

#include "leat/admin.hpp"

namespace leat::cli {

struct DataFiles {
  std::string topic;
  std::string path;  // of the topic's data directory
  TopicFiles files;
};

// The path of the data directory, which is made if it is missing. Fails with one sentence if no topic can be made there.
std::string writable_data_directory();

// Opens the directory of a topic's files. Fails with one sentence if there is none.
DataFiles open_data_files(const std::string& topic);

// Loads the manifest; fails with a sentence that says what is wrong with it.
ManifestInfo manifest_of(const DataFiles& data);

// Ends the command with an error that came from reading the files.
[[noreturn]] void fail(Error error, const DataFiles& data);

// "3 files of 150 KiB (2 linked, 1 copied), 1,000 offsets"
std::string describe(const CopyReport& copied);

// Says so if a directory of files is one that a restart of the machine takes.
void note_if_in_memory(const std::string& path);

}  // namespace leat::cli
