// If this failed, passwords could be guessed without end, or one client's mistakes would lock out another.
#include "broker/auth/login_limits.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/one_of.hpp"

namespace leat::broker {
namespace {

using namespace std::chrono_literals;

Origin origin(const std::string& text) { return Origin{boost::asio::ip::make_address(text)}; }

constexpr LoginLimits::Time kStart{1000s};

int takes(LoginLimits& limits, const std::string& from, LoginLimits::Time now) {
  int count = 0;
  while (count < 1000 && limits.take(origin(from), now)) ++count;
  return count;
}

TEST(LoginLimits, FiveAtOnceThenFiveASecond) {
  LoginLimits limits;
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart), 5);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 199ms), 0);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 200ms), 1);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 1200ms), 5);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 1h), 5) << "not more after a long time";
}

TEST(LoginLimits, SaysWhenThereIsTheNextOne) {
  LoginLimits limits;
  EXPECT_LE(limits.next_at(origin("192.0.2.1")), kStart) << "never seen";
  takes(limits, "192.0.2.1", kStart - 300ms);
  EXPECT_EQ(limits.next_at(origin("192.0.2.1")), kStart - 100ms);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart), 1);
  EXPECT_EQ(limits.next_at(origin("192.0.2.1")), kStart + 100ms);
}

TEST(LoginLimits, AThousandASecondForAMinuteGetFiveASecond) {
  LoginLimits limits;
  int hashes = 0;
  for (int i = 0; i < 60'000; ++i)
    hashes += limits.take(origin("192.0.2.1"), kStart + i * 1ms) ? 1 : 0;
  EXPECT_EQ(hashes, 5 + 299);
}

TEST(LoginLimits, RightOnesDoNotCount) {
  LoginLimits limits;
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(limits.take(origin("192.0.2.1"), kStart));
    limits.return_attempt(origin("192.0.2.1"));
  }
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart), 5);
}

TEST(LoginLimits, AReturnedOneIsNotMoreThanThereWas) {
  LoginLimits limits;
  limits.return_attempt(origin("192.0.2.1"));  // Never seen.
  EXPECT_TRUE(limits.take(origin("192.0.2.1"), kStart));
  for (int i = 0; i < 100; ++i) limits.return_attempt(origin("192.0.2.1"));
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 1s), 5);
}

TEST(LoginLimits, EachAddressHasItsOwn) {
  LoginLimits limits;
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart), 5);
  EXPECT_EQ(takes(limits, "192.0.2.2", kStart), 5);
  EXPECT_EQ(takes(limits, "127.0.0.1", kStart), 5);
}

// A local process can send from each of 16 million addresses.
TEST(LoginLimits, ThisMachineIsOneAddress) {
  LoginLimits limits;
  EXPECT_EQ(takes(limits, "127.0.0.1", kStart), 5);
  EXPECT_EQ(takes(limits, "127.3.2.1", kStart), 0);
  EXPECT_EQ(takes(limits, "::1", kStart), 0);
  EXPECT_EQ(takes(limits, "::ffff:127.0.0.9", kStart), 0);
}

TEST(LoginLimits, TheUnixSocketHasItsOwn) {
  LoginLimits limits;
  const auto here = boost::asio::ip::make_address("127.0.0.1");
  EXPECT_EQ(takes(limits, "127.0.0.1", kStart), 5);
  const Peer local{.address = here, .port = 0, .own_address = here, .is_unix = true};
  EXPECT_TRUE(limits.take(Origin{local}, kStart));
}

TEST(LoginLimits, AnIpv6NetworkIsOneAddress) {
  LoginLimits limits;
  EXPECT_EQ(takes(limits, "2001:db8:1:2::1", kStart), 5);
  EXPECT_EQ(takes(limits, "2001:db8:1:2:ffff:ffff:ffff:ffff", kStart), 0);
  EXPECT_EQ(takes(limits, "2001:db8:1:3::1", kStart), 5);
  EXPECT_EQ(takes(limits, "::0.0.0.2", kStart), 5);
}

TEST(LoginLimits, AMappedIpv4AddressIsThatAddress) {
  LoginLimits limits;
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart), 5);
  EXPECT_EQ(takes(limits, "::ffff:192.0.2.1", kStart), 0);
  EXPECT_EQ(takes(limits, "::ffff:192.0.2.2", kStart), 5);
}

TEST(LoginLimits, TheTableIsBoundedAndTheOldestMakesRoom) {
  LoginLimits limits{{.origins = 3}};
  for (const char* from : {"192.0.2.1", "192.0.2.2", "192.0.2.3"}) takes(limits, from, kStart);
  EXPECT_FALSE(
      limits.take(origin("192.0.2.1"), kStart + 1ms));  // Refused, but no longer the oldest.
  EXPECT_EQ(takes(limits, "192.0.2.4", kStart + 2ms), 5);
  EXPECT_EQ(limits.size(), 3u);
  EXPECT_EQ(takes(limits, "192.0.2.1", kStart + 3ms), 0);
  EXPECT_EQ(takes(limits, "192.0.2.3", kStart + 3ms), 0);
  EXPECT_EQ(takes(limits, "192.0.2.2", kStart + 3ms), 5) << "it was forgotten";
}

TEST(LoginLimits, AMillionAddressesNeedNoMoreRoom) {
  LoginLimits limits{{.origins = 1000}};
  for (std::uint32_t i = 0; i < 1'000'000 / testing::kOneOf; ++i)
    limits.take(Origin{boost::asio::ip::address_v4{i}}, kStart + i * 1us);
  EXPECT_EQ(limits.size(), 1000u);
}

}  // namespace
}  // namespace leat::broker
