// If this failed, the interleaving tests could miss bugs that occur on real
// hardware, or report bugs that cannot occur: the model of memory would not
// allow exactly what C++ and the hardware allow.
//
// These are the classical litmus tests. Each collects the outcomes of many executions, and compares
// them with the outcomes that must be possible.
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>

#include "leat/base/atomic.hpp"
#include "leat/os/membarrier.hpp"
#include "model.hpp"

namespace leat::detail {
namespace {

using Outcomes = std::map<std::string, int>;

struct Variables {
  std::uint64_t x = 0, y = 0;
  alignas(16) std::uint64_t pair[2] = {};
  std::uint64_t result[4] = {};
  std::uint32_t low = 0, high = 0;  // Two halves of one word.
};

using ThreadBody = std::function<void(Variables&)>;

// The results of the threads, and in how many executions each occurred. "01" means that result[0]
// is 0 and result[1] is 1.
Outcomes outcomes_of(
    const std::vector<ThreadBody>& bodies, std::size_t results,
    const std::function<void()>& before = [] {}) {
  Outcomes outcomes;
  const auto result =
      model::explore({.name = "litmus", .executions = 3000}, [&](model::Execution& run) {
        Variables variables;
        before();
        for (const ThreadBody& body : bodies) {
          run.thread("t" + std::to_string(&body - bodies.data()), [&] { body(variables); });
        }
        if (!run.run()) return;
        std::string outcome;
        for (std::size_t i = 0; i < results; ++i) outcome += std::to_string(variables.result[i]);
        ++outcomes[outcome];
      });
  EXPECT_TRUE(model::holds(result));
  return outcomes;
}

void store_seq_cst(std::uint64_t& word, std::uint64_t value) {
  store(word, value, std::memory_order_seq_cst, -1);
}
std::uint64_t load_seq_cst(const std::uint64_t& word) {
  return load(word, std::memory_order_seq_cst, -1);
}

TEST(Litmus, StoreBuffersHideStoresFromTheOther) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       store_release<Edge::sleeping>(v.x, 1);
                                       v.result[0] = load_acquire<Edge::sleeping>(v.y);
                                     },
                                     [](Variables& v) {
                                       store_release<Edge::sleeping>(v.y, 1);
                                       v.result[1] = load_acquire<Edge::sleeping>(v.x);
                                     }},
                                    2);
  EXPECT_EQ(outcomes.size(), 4U);  // Including 00.
}

TEST(Litmus, SequentiallyConsistentStoresAreNotBuffered) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       store_seq_cst(v.x, 1);
                                       v.result[0] = load_seq_cst(v.y);
                                     },
                                     [](Variables& v) {
                                       store_seq_cst(v.y, 1);
                                       v.result[1] = load_seq_cst(v.x);
                                     }},
                                    2);
  EXPECT_FALSE(outcomes.contains("00"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, AnExchangeIsAFullFence) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       exchange<Edge::sleeping>(v.x, 1);
                                       v.result[0] = load_relaxed(v.y);
                                     },
                                     [](Variables& v) {
                                       exchange<Edge::sleeping>(v.y, 1);
                                       v.result[1] = load_relaxed(v.x);
                                     }},
                                    2);
  EXPECT_FALSE(outcomes.contains("00"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, AWeakenedExchangeIsNone) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       exchange<Edge::sleeping>(v.x, 1);
                                       v.result[0] = load_relaxed(v.y);
                                     },
                                     [](Variables& v) {
                                       exchange<Edge::sleeping>(v.y, 1);
                                       v.result[1] = load_relaxed(v.x);
                                     }},
                                    2, [] { model::weaken(Edge::sleeping, model::Side::rmw); });
  EXPECT_EQ(outcomes.size(), 4U);
}

// The thread that may sleep pays for the fence; the other one uses only plain stores and loads.
const std::vector<ThreadBody> kMembarrierOnOneSide = {[](Variables& v) {
                                                        store_release<Edge::sleeping>(v.x, 1);
                                                        v.result[0] = load_relaxed(v.y);
                                                      },
                                                      [](Variables& v) {
                                                        store_relaxed(v.y, 1);
                                                        membarrier_all();
                                                        v.result[1] = load_relaxed(v.x);
                                                      }};

TEST(Litmus, AMembarrierFencesBothSides) {
  const auto outcomes = outcomes_of(kMembarrierOnOneSide, 2);
  EXPECT_FALSE(outcomes.contains("00"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, WithoutTheMembarrierNeitherSideIsFenced) {
  EXPECT_EQ(outcomes_of(kMembarrierOnOneSide, 2, [] { model::drop_membarriers(); }).size(), 4U);
}

const std::vector<ThreadBody> kMessagePassing = {[](Variables& v) {
                                                   store_relaxed(v.x, 1);
                                                   store_release<Edge::record_ready>(v.y, 1);
                                                 },
                                                 [](Variables& v) {
                                                   v.result[0] =
                                                       load_acquire<Edge::record_ready>(v.y);
                                                   v.result[1] = load_relaxed(v.x);
                                                 }};

TEST(Litmus, AReleaseStorePassesTheMessage) {
  const auto outcomes = outcomes_of(kMessagePassing, 2);
  EXPECT_FALSE(outcomes.contains("10"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, MessagePassingNeedsTheRelease) {
  EXPECT_TRUE(outcomes_of(kMessagePassing, 2, [] {
                model::weaken(Edge::record_ready, model::Side::store);
              }).contains("10"));
}

TEST(Litmus, MessagePassingNeedsTheAcquire) {
  EXPECT_TRUE(outcomes_of(kMessagePassing, 2, [] {
                model::weaken(Edge::record_ready, model::Side::load);
              }).contains("10"));
}

const std::vector<ThreadBody> kFencedMessage = {[](Variables& v) {
                                                  store_relaxed(v.x, 1);
                                                  fence_release<Edge::overwrite>();
                                                  store_relaxed(v.y, 1);
                                                },
                                                [](Variables& v) {
                                                  v.result[0] = load_relaxed(v.y);
                                                  fence_acquire<Edge::overwrite>();
                                                  v.result[1] = load_relaxed(v.x);
                                                }};

TEST(Litmus, FencesPassTheMessage) {
  const auto outcomes = outcomes_of(kFencedMessage, 2);
  EXPECT_FALSE(outcomes.contains("10"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, WithoutFencesTheMessageIsLost) {
  EXPECT_TRUE(
      outcomes_of(kFencedMessage, 2, [] { model::weaken(Edge::overwrite); }).contains("10"));
}

// A read-modify-write in between continues the release sequence of the store before it.
TEST(Litmus, AReleaseSequenceGoesThroughOthersUpdates) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       store_relaxed(v.x, 1);
                                       store_release<Edge::claim>(v.y, 1);
                                     },
                                     [](Variables& v) { fetch_or<Edge::sleeping>(v.y, 2); },
                                     [](Variables& v) {
                                       v.result[0] = load_acquire<Edge::claim>(v.y);
                                       v.result[1] = load_relaxed(v.x);
                                     }},
                                    2, [] { model::weaken(Edge::sleeping); });
  EXPECT_FALSE(outcomes.contains("30"));
  EXPECT_TRUE(outcomes.contains("31"));
}

TEST(Litmus, LoadsDoNotSeeStoresThatComeLater) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       v.result[0] = load_relaxed(v.x);
                                       store_relaxed(v.y, 1);
                                     },
                                     [](Variables& v) {
                                       v.result[1] = load_relaxed(v.y);
                                       store_relaxed(v.x, 1);
                                     }},
                                    2);
  EXPECT_FALSE(outcomes.contains("11"));
  EXPECT_EQ(outcomes.size(), 3U);
}

TEST(Litmus, OneWordNeverGoesBack) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       store_relaxed(v.x, 1);
                                       store_relaxed(v.x, 2);
                                     },
                                     [](Variables& v) {
                                       v.result[0] = load_relaxed(v.x);
                                       v.result[1] = load_relaxed(v.x);
                                     }},
                                    2);
  EXPECT_EQ(outcomes.size(), 6U);  // All but 10, 20, 21.
  for (const char* back : {"10", "20", "21"}) EXPECT_FALSE(outcomes.contains(back)) << back;
}

std::vector<ThreadBody> independent_reads(std::uint64_t (*read)(const std::uint64_t&),
                                          void (*write)(std::uint64_t&, std::uint64_t)) {
  return {[=](Variables& v) { write(v.x, 1); }, [=](Variables& v) { write(v.y, 1); },
          [=](Variables& v) {
            v.result[0] = read(v.x);
            v.result[1] = read(v.y);
          },
          [=](Variables& v) {
            v.result[2] = read(v.y);
            v.result[3] = read(v.x);
          }};
}

TEST(Litmus, ReadersAgreeOnTheOrderOfSequentiallyConsistentStores) {
  const auto outcomes = outcomes_of(independent_reads(load_seq_cst, store_seq_cst), 4);
  EXPECT_FALSE(outcomes.contains("1010"));
  EXPECT_TRUE(outcomes.contains("1011"));
}

TEST(Litmus, ReadersNeedNotAgreeOnTheOrderOfOthers) {
  const auto outcomes = outcomes_of(
      independent_reads([](const std::uint64_t& word) { return load_acquire<Edge::claim>(word); },
                        [](std::uint64_t& word, std::uint64_t value) {
                          store_release<Edge::claim>(word, value);
                        }),
      4);
  EXPECT_TRUE(outcomes.contains("1010"));
}

// A sequentially consistent load does not order earlier operations: a value
// read before it may be newer.
const std::vector<ThreadBody> kReadThenCheck = {[](Variables& v) {
                                                  exchange<Edge::retire>(v.x, 1);
                                                  fence_release<Edge::overwrite>();
                                                  store_relaxed(v.y, 1);
                                                },
                                                [](Variables& v) {
                                                  v.result[0] = load_relaxed(v.y);
                                                  fence_acquire<Edge::overwrite>();
                                                  v.result[1] =
                                                      leat::detail::load_seq_cst<Edge::retire>(v.x);
                                                }};

TEST(Litmus, ASequentiallyConsistentLoadIsNoFence) {
  EXPECT_TRUE(
      outcomes_of(kReadThenCheck, 2, [] { model::weaken(Edge::overwrite); }).contains("10"));
  EXPECT_FALSE(outcomes_of(kReadThenCheck, 2).contains("10"));
}

TEST(Litmus, HalvesOfAWordAreIndependent) {
  const auto outcomes = outcomes_of({[](Variables& v) {
                                       store_relaxed(v.low, 1);
                                       v.result[0] = load_relaxed(v.high);
                                     },
                                     [](Variables& v) {
                                       store_relaxed(v.high, 1);
                                       v.result[1] = load_relaxed(v.low);
                                     }},
                                    2);
  EXPECT_EQ(outcomes.size(), 4U);
}

// A swap of a pair changes both words at once; a failed swap changes nothing.
TEST(Litmus, PairsSwapWhole) {
  const ThreadBody increment = [](Variables& v) {
    for (;;) {
      const std::uint64_t seen[2] = {load_relaxed(v.pair[0]), load_relaxed(v.pair[1])};
      if (compare_exchange_pair<Edge::segment_open>(v.pair, seen, {seen[0] + 1, seen[1] + 2}))
        break;
    }
  };
  const auto outcomes = outcomes_of({increment, increment, increment,
                                     [](Variables& v) {
                                       v.result[1] = load_acquire<Edge::segment_open>(v.pair[1]);
                                       v.result[0] = load_relaxed(v.pair[0]);
                                     }},
                                    2);
  for (const auto& [outcome, count] : outcomes) {
    const int x = outcome[0] - '0';
    const int y = outcome[1] - '0';
    EXPECT_LE(y, 2 * x) << "acquired one word, but not the other of the same swap";
    EXPECT_EQ(y % 2, 0);
  }
  EXPECT_TRUE(outcomes.contains("36"));
}

}  // namespace
}  // namespace leat::detail
