// If this failed, an old or a wrong password would let somebody in without being checked.
#include "broker/auth/known_credentials.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace leat::broker {
namespace {

TEST(KnownCredentials, AreThoseThatWereAdded) {
  KnownCredentials known;
  const auto digest = known.digest("alice", "news", "verifier", "password");
  EXPECT_FALSE(known.contains(digest));
  known.add("alice", digest);
  EXPECT_TRUE(known.contains(known.digest("alice", "news", "verifier", "password")));
  EXPECT_FALSE(known.contains(known.digest("alicf", "news", "verifier", "password")));
  EXPECT_FALSE(known.contains(known.digest("alice", "olds", "verifier", "password")));
  EXPECT_FALSE(known.contains(known.digest("alice", "news", "verifies", "password")));
  EXPECT_FALSE(known.contains(known.digest("alice", "news", "verifier", "Password")));
  EXPECT_FALSE(known.contains(known.digest("alice", "news", "verifier", "")));
}

TEST(KnownCredentials, PartsAreNotMixedUp) {
  const KnownCredentials known;
  EXPECT_NE(known.digest("ab", "c", "v", "p"), known.digest("a", "bc", "v", "p"));
  EXPECT_NE(known.digest("a", "", "v", "p"), known.digest("", "a", "v", "p"));
  EXPECT_NE(known.digest("a", "b", "v", ""), known.digest("a", "b", "", "v"));
}

TEST(KnownCredentials, EachProcessHasItsOwnKey) {
  EXPECT_NE(KnownCredentials{}.digest("a", "b", "v", "p"),
            KnownCredentials{}.digest("a", "b", "v", "p"));
}

TEST(KnownCredentials, AreForgottenForOneUser) {
  KnownCredentials known;
  const auto news = known.digest("alice", "news", "v", "p");
  const auto olds = known.digest("alice", "olds", "v", "p");
  const auto bob = known.digest("bob", "news", "v", "p");
  known.add("alice", news);
  known.add("alice", olds);
  known.add("bob", bob);
  known.forget("alice");
  EXPECT_FALSE(known.contains(news));
  EXPECT_FALSE(known.contains(olds));
  EXPECT_TRUE(known.contains(bob));
  EXPECT_EQ(known.size(), 1u);
}

TEST(KnownCredentials, TheLastUsedStay) {
  KnownCredentials known{3};
  std::vector<KnownCredentials::CredentialDigest> digests;
  for (int i = 0; i < 4; ++i) digests.push_back(known.digest(std::to_string(i), "", "", ""));
  for (int i = 0; i < 3; ++i) known.add(std::to_string(i), digests[static_cast<std::size_t>(i)]);
  EXPECT_TRUE(known.contains(digests[0]));  // Now 1 was used longest ago.
  known.add("3", digests[3]);
  known.add("3", digests[3]);  // Twice is once.
  EXPECT_EQ(known.size(), 3u);
  EXPECT_TRUE(known.contains(digests[0]));
  EXPECT_FALSE(known.contains(digests[1]));
  EXPECT_TRUE(known.contains(digests[2]));
  EXPECT_TRUE(known.contains(digests[3]));
}

TEST(KnownCredentials, ManyThreadsMayUseThem) {
  KnownCredentials known{16};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&known, i] {
      const std::string user = std::to_string(i);
      for (int k = 0; k < 500; ++k) {
        const auto digest = known.digest(user, std::to_string(k), "v", "p");
        known.add(user, digest);
        known.contains(digest);
        if (k % 50 == 0) known.forget(user);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(known.size(), 16u);
}

}  // namespace
}  // namespace leat::broker
