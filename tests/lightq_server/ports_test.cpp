// If this failed, a client that reconnects to a port of a deleted topic would get another topic's data.
#include "lightq/server/ports.hpp"

#include <gtest/gtest.h>

namespace leat::broker::lightq {
namespace {

constexpr auto any = [](std::uint16_t) { return true; };

TEST(Ports, AreGivenInOrder) {
  Ports ports{5501, 5503};
  EXPECT_EQ(ports.next(any), 5501);
  EXPECT_EQ(ports.next(any), 5502);
  EXPECT_EQ(ports.next(any), 5503);
  EXPECT_EQ(ports.next(any), std::nullopt);
  EXPECT_EQ(ports.range(), "5501-5503");
}

TEST(Ports, AFreedOneIsUsedAgainLast) {
  Ports ports{5501, 5504};
  ports.next(any);
  ports.next(any);
  ports.free(5501);
  EXPECT_EQ(ports.next(any), 5503);
  EXPECT_EQ(ports.next(any), 5504);
  EXPECT_EQ(ports.next(any), 5501);
}

TEST(Ports, SkipsWhatIsStoredOrCannotBeBound) {
  Ports ports{5501, 5504};
  ports.take(5501);
  ports.take(9000);  // Of an earlier range.
  EXPECT_EQ(ports.next([](std::uint16_t port) { return port != 5502; }), 5503);
}

TEST(Ports, GoOnWhereTheyStoodBeforeARestart) {
  Ports before{5501, 5504};
  before.next(any);
  before.next(any);
  before.free(5501);
  Ports after{5501, 5504, before.position()};
  after.take(5502);
  EXPECT_EQ(after.next(any), 5503);
  EXPECT_EQ(Ports(5501, 5504, 17).next(any), 5501) << "of another range";
}

}  // namespace
}  // namespace leat::broker::lightq
