// If this failed, a subscriber could sleep although an exclusive publisher
// has just published a record.
#include "leat/os/membarrier.hpp"

#include "testing.hpp"

namespace leat::detail {
namespace {

TEST(Membarrier, WorksWhereItCanBeRegistered) {
  if (!membarrier_register()) GTEST_SKIP() << "this kernel refuses membarrier(2)";
  EXPECT_TRUE(membarrier_all());
}

}  // namespace
}  // namespace leat::detail
