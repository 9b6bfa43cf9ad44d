// What the speed programs of the clients print, and how it compares: build/clients/speed/NAME TOPIC SIZE RECORDS.
//
//     const Figures python = figures_of(output);
//     const Json ratio = ratio_to(python, c);  // {"publish": 5.9, …}
//
// Such a program opens the topic, which holds all RECORDS (a multiple of 64) of SIZE bytes, does each of these once to
// warm up and then once more, and prints one line of JSON with nanoseconds for each record:
//     publish_ns   one by one
//     batch_ns     arrays of 64
//     read_ns      polls of up to 64, each record an object of the language with its own copy of the value
//     view_ns      the same in place; null if the language cannot
// and "runtime", for example "CPython 3.11.2". If it fails, it prints one line on stderr instead and exits with 1.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "bench/output/output.hpp"

namespace leat::bench::clients {

struct Figures {
  std::string runtime;
  double publish_ns = 0;
  double batch_ns = 0;
  double read_ns = 0;
  std::optional<double> view_ns;
};

// At most so many times as long as in the language beside. 0: nothing is wanted.
struct Wanted {
  double publish = 0;
  double batch = 0;
  double read = 0;
  double view = 0;
};

struct Language {
  const char* name;
  const char* title;
  const char* beside;  // The language that it is measured beside and divided by; null: none.
  const char* built_by;
  Wanted wanted;  // For 100 bytes.
};

inline constexpr std::size_t kBatch = 64;
inline constexpr std::size_t kWantedSize = 100;

inline constexpr char kBuildsBench[] = "make bench-build";
inline constexpr char kBuildsClients[] = "make clients";
inline constexpr std::array<Language, 10> kLanguages = {{
    {"cpp", "C++", nullptr, kBuildsBench, {}},
    {"c", "C", "cpp", kBuildsBench, {1.25, 1.25, 0, 1.6}},
    {"rust", "Rust", "c", kBuildsClients, {1.1, 1.1, 5, 1.1}},
    {"python", "Python", "c", kBuildsClients, {7, 2, 7, 0}},
    {"go", "Go", "c", kBuildsClients, {7, 2, 5, 3.5}},
    {"java", "Java", "c", kBuildsClients, {3.5, 3, 12, 6}},
    {"ruby", "Ruby", "c", kBuildsClients, {4.5, 2, 22, 0}},
    {"node", "Node", "c", kBuildsClients, {4.5, 8, 24, 0}},
    {"lua", "Lua", "c", kBuildsClients, {4, 3, 10, 0}},
    {"luajit", "LuaJIT", "c", kBuildsClients, {4, 3, 10, 0}},
}};

// Null if there is no language of that name.
const Language* language_named(const std::string& name);

// What a program printed. Throws Failure if it is not one line of JSON with all of the above.
Figures figures_of(const std::string& output);

// How many times as long as `beside`, which can read in place: publish, batch, read, view. Reading is compared with
// reading in place. Null: not to be told.
Json ratio_to(const Figures& own, const Figures& beside);

// One round: a language's figures, and those of its neighbour in time.
struct Round {
  Figures own;
  std::optional<Figures> beside;
};

// Medians of a language: language, runtime, publish_ns …, ratio, target (for 100 bytes), beside and runs. The ratio
// is the median of those of the rounds.
Json result_of(const Language& language, const std::vector<Round>& rounds, std::size_t size);

// "1.02 (1.25)": a ratio, and what is wanted at most; "1.31 (1.25)!" if it was missed. Keys as in ratio_to(). Empty
// without a ratio.
std::string ratio_text(const Json& result, const char* key);

}  // namespace leat::bench::clients
