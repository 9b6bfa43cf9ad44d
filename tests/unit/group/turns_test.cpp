// If this failed, records that are requeued at once, each time, would keep all other records away.
#include <set>

#include "group/group_testing.hpp"

namespace leat {
namespace {

constexpr std::size_t kGood = 10;

// Takes one or more records, requeues those whose value is "poison", and acknowledges the others.
using Way = void (*)(Member&, std::set<std::uint64_t>& good);

void use(Member& member, const Delivery& delivery, std::set<std::uint64_t>& good) {
  if (delivery.record.text() == "poison") {
    must(member.requeue(delivery));
  } else {
    good.insert(delivery.record.offset);
    must(member.acknowledge(delivery));
  }
}
void by_receive(Member& member, std::set<std::uint64_t>& good) {
  if (auto one = member.receive(Deadline::immediate())) use(member, *one, good);
}
template <std::size_t kLimit>
void by_receive_some(Member& member, std::set<std::uint64_t>& good) {
  std::vector<Delivery> taken;
  (void)member.receive(taken, kLimit, Deadline::immediate());
  for (const Delivery& one : taken) use(member, one, good);
}
template <std::size_t kLimit>
void by_poll(Member& member, std::set<std::uint64_t>& good) {
  must(member.poll(kLimit, [&](const Delivery& one) { use(member, one, good); }));
}

TEST(Turns, RecordsRequeuedAtOnceDoNotKeepOthersAway) {
  for (const Way way : {Way{by_receive}, Way{by_receive_some<1>}, Way{by_receive_some<100>},
                        Way{by_poll<1>}, Way{by_poll<100>}}) {
    for (const std::size_t poison : {1U, 5U, 300U}) {
      for (const std::size_t members : {1U, 3U}) {
        for (const bool by_key : {false, true}) {
          if (poison == 300 && (members == 1) != by_key)
            continue;  // Takes long: half of them will do.
          const TestTopic topic{{.capacity_bytes = 64 * kSegment}};
          auto publisher = must(topic->publisher());
          const Group group = group_of(*topic, {.by_key = by_key});
          std::vector<Member> all;
          for (std::size_t i = 0; i < members; ++i) all.push_back(join(group));
          std::set<std::uint64_t> good;
          // First only poison, so that some is returned before anything else is taken.
          for (std::size_t i = 0; i < poison; ++i)
            must(publisher.publish({.key = std::to_string(i), .value = "poison"}));
          for (std::size_t i = 0; i < 10; ++i) way(all[i % members], good);
          for (std::size_t i = 0; i < kGood; ++i)
            must(publisher.publish({.key = "good" + std::to_string(i), .value = "good"}));
          for (std::size_t calls = 0; calls < 10'000 && good.size() < kGood; ++calls)
            way(all[calls % members], good);
          EXPECT_EQ(good.size(), kGood)
              << poison << " poison, " << members << " members" << (by_key ? ", by key" : "");
        }
      }
    }
  }
}

// The other way round: new records do not keep returned ones away.
TEST(Turns, NewRecordsDoNotKeepReturnedOnesAway) {
  const TestTopic topic;
  auto publisher = must(topic->publisher());
  Member member = join(group_of(*topic));
  must(publisher.publish("returned"));
  std::size_t deliveries = 0;
  for (int i = 0; i < 1000 && deliveries < 20; ++i) {
    must(publisher.publish("new"));
    const Delivery one = take(member);
    if (one.record.text() == "new") {
      must(member.acknowledge(one));
    } else {
      EXPECT_EQ(one.deliveries, ++deliveries);
      must(member.requeue(one));
    }
  }
  EXPECT_EQ(deliveries, 20u);
}

}  // namespace
}  // namespace leat
