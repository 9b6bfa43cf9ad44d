// If this failed, a forked child could use its parent's handles, or use the
// same random numbers as its parent.
#include "leat/os/fork.hpp"

#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Fork, ChildKnowsThatItIsOne) {
  const std::uint32_t generation = fork_generation();
  const std::uint64_t token = process_token();
  Child child{[&] { return fork_generation() != generation && process_token() != token ? 0 : 1; }};
  EXPECT_EQ(child.join(), 0);
  EXPECT_EQ(fork_generation(), generation);
  EXPECT_EQ(process_token(), token);
}

TEST(Fork, RandomNumbersDiffer) {
  EXPECT_NE(make_random(), make_random());
  EXPECT_NE(make_random(), 0u);
}

}  // namespace
}  // namespace leat::detail
