// If this failed, a client would lose messages, count some that no topic has, or read foreign memory when a broker, or
// whoever is at its port, sends nonsense.
#include "lightq/client/data.hpp"

#include <nlohmann/json.hpp>

#include "fake_broker.hpp"

namespace leat::lightq {
namespace {

using Json = nlohmann::json;
using namespace std::string_literals;

constexpr char kWelcome[] = R"({"status":"ok","topic":"news"})";

Joined joined(Role role) { return {role, "news", {}, "TOKEN"}; }

// A broker that has let somebody in.
struct WelcomingBroker : FakeBroker {
  WelcomingBroker() { say_frame(kWelcome); }

  Producer producer(std::size_t collect_bytes = 0) {
    auto made =
        must(Producer::open(connection(), joined(Role::producer), {collect_bytes}, kPatient));
    heard();
    return made;
  }
  Consumer consumer(bool acknowledges = false) {
    auto made = must(Consumer::open(connection(), joined(Role::puller), {acknowledges}, kPatient));
    heard();
    return made;
  }
};

std::string text_of(const Outcome<std::optional<Bytes>>& next) {
  const std::optional<Bytes> message = must(next);
  return message ? std::string{message->text()} : "none";
}

// --- Hello ----------------------------------------------------------------------------------------

TEST(ClientHello, SaysRoleAndToken) {
  FakeBroker broker;
  broker.say_frame(kWelcome);
  const Consumer consumer =
      must(Consumer::open(broker.connection(), joined(Role::puller), {true}, kPatient));
  EXPECT_EQ(Json::parse(broker.heard().substr(4)),
            (Json{{"type", "pull"}, {"token", "TOKEN"}, {"acknowledge", true}}));
}

TEST(ClientHello, RefusalIsSaid) {
  FakeBroker broker;
  broker.say_frame(R"({"status":"error","description":"unauthorized_access"})");
  EXPECT_EQ(code_of(Producer::open(broker.connection(), joined(Role::producer), {}, kPatient)),
            Errc::permission);
}

TEST(ClientHello, NonsenseIsNoAnswer) {
  for (const std::string& text :
       {""s, "null"s, "[]"s, "{}"s, "{\"status\":\"error\"}"s, "{\"status\":[\"ok\"]}"s, "\xff"s}) {
    FakeBroker broker;
    broker.say_frame(text);
    EXPECT_EQ(code_of(Producer::open(broker.connection(), joined(Role::producer), {}, kPatient)),
              Errc::corrupt)
        << text;
  }
  FakeBroker broker;
  broker.say("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_EQ(code_of(Consumer::open(broker.connection(), joined(Role::puller), {}, kPatient)),
            Errc::corrupt);
}

TEST(ClientHello, SilenceAndEndAreSaid) {
  FakeBroker silent;
  EXPECT_EQ(code_of(Consumer::open(silent.connection(), joined(Role::puller), {}, kSoon)),
            Errc::timeout);
  FakeBroker gone;
  gone.say("\x10\0\0\0{"s);
  gone.end_sending();
  EXPECT_EQ(code_of(Consumer::open(gone.connection(), joined(Role::puller), {}, kPatient)),
            Errc::closed);
}

// --- Producer -------------------------------------------------------------------------------------

TEST(ClientProducer, CollectsAndFlushes) {
  WelcomingBroker broker;
  Producer producer = broker.producer(100);
  must(producer.publish("hello"));
  must(producer.publish(""));
  EXPECT_EQ(broker.heard(), "");
  must(producer.flush());
  EXPECT_EQ(broker.heard(), "\5\0\0\0hello\0\0\0\0"s);
  must(producer.publish(std::string(200, 'x')));
  EXPECT_EQ(broker.heard().size(), 204u);
  EXPECT_EQ(producer.sent(), 3u);
}

TEST(ClientProducer, SendsAtOnceIfItCollectsNothing) {
  WelcomingBroker broker;
  Producer producer = broker.producer(0);
  must(producer.publish("x"));
  EXPECT_EQ(broker.heard(), "\1\0\0\0x"s);
}

TEST(ClientProducer, KnowsWhatIsPublished) {
  WelcomingBroker broker;
  Producer producer = broker.producer(1000);
  for (int i = 0; i < 10; ++i) must(producer.publish("x"));
  EXPECT_EQ(must(producer.published()), 0u);
  EXPECT_EQ(code_of(producer.wait_published(1, kSoon)), Errc::timeout);
  EXPECT_EQ(broker.heard().size(), 50u);  // It was flushed.
  broker.say_count(3);
  broker.say("\x7\0\0"s);  // A part of a count.
  EXPECT_EQ(must(producer.published()), 3u);
  broker.say("\0\0\0\0\0"s);
  EXPECT_EQ(must(producer.published()), 7u);
  broker.say_count(10);
  must(producer.wait_published(10, kPatient));
  EXPECT_EQ(must(producer.published()), 10u);
}

TEST(ClientProducer, WrongCountsAreRefused) {
  for (const std::uint64_t count : {std::uint64_t{1}, std::uint64_t{4}, UINT64_MAX}) {
    WelcomingBroker broker;
    Producer producer = broker.producer();
    for (int i = 0; i < 3; ++i) must(producer.publish("x"));
    broker.say_count(2);
    broker.say_count(count);
    EXPECT_EQ(code_of(producer.published()), Errc::corrupt) << count;
  }
}

TEST(ClientProducer, WaitsOnlyWhenMuchIsUnsent) {
  WelcomingBroker broker;
  broker.shrink_buffers();
  Producer producer = broker.producer();
  const std::string message(100'000, 'x');
  std::uint64_t taken = 0;
  while (code_of(producer.publish(message, kSoon)) == Errc::ok) ++taken;
  EXPECT_EQ(producer.sent(), taken);  // The one that was not taken is not counted.
  EXPECT_GE(taken * message.size(), Producer::kMaxUnsent);
  EXPECT_LE(taken * message.size(), 3 * Producer::kMaxUnsent);
  std::string all;
  while (all.size() < taken * (message.size() + 4)) {
    all += broker.heard();
    (void)code_of(producer.flush({Deadline::immediate()}));
  }
  for (std::uint64_t i = 0; i < taken; ++i)
    EXPECT_EQ(all.substr(i * 100'004, 100'004), "\xa0\x86\x01\0"s + message);
  EXPECT_EQ(all.size(), taken * 100'004);
}

TEST(ClientProducer, MessageThatNobodyTakesIsRefused) {
  WelcomingBroker broker;
  Producer producer = broker.producer();
  const std::string message(kMaxMessage + 1, 'x');
  EXPECT_EQ(code_of(producer.publish(message)), Errc::too_large);
  EXPECT_EQ(producer.sent(), 0u);
}

TEST(ClientProducer, WhatTheBrokerCountedBeforeItLeftIsKnown) {
  WelcomingBroker broker;
  Producer producer = broker.producer();
  for (int i = 0; i < 5; ++i) must(producer.publish("x"));
  broker.say_count(3);
  broker.leave();
  const std::string sentence = sentence_of(producer.wait_published(5, kPatient));
  EXPECT_NE(sentence.find("of 5 messages, 3 are known"), sentence.npos) << sentence;
  Outcome<void> published;
  while (published) published = producer.publish("x");
  EXPECT_EQ(code_of(published), Errc::closed);
}

TEST(ClientProducer, EndAfterTheLastCountIsNoFailure) {
  WelcomingBroker broker;
  Producer producer = broker.producer();
  for (int i = 0; i < 5; ++i) must(producer.publish("x"));
  broker.say_count(5);
  broker.leave();
  must(producer.wait_published(5, kPatient));
  EXPECT_EQ(code_of(producer.wait_published(6, kPatient)), Errc::closed);
}

TEST(ClientProducer, CountsThatCameWithTheWelcomeCount) {
  WelcomingBroker broker;
  broker.say_count(7);
  Producer producer = broker.producer();
  EXPECT_EQ(code_of(producer.published()), Errc::corrupt);  // Nothing was sent.
}

// --- Consumer -------------------------------------------------------------------------------------

TEST(ClientConsumer, GetsMessagesInAnyPieces) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer();
  EXPECT_EQ(text_of(consumer.next(kSoon)), "none");
  const std::string bytes = "\5\0\0\0hello\0\0\0\0\1\0\0\0x"s;
  for (const char byte : bytes.substr(0, 8)) {
    broker.say({&byte, 1});
    EXPECT_EQ(text_of(consumer.next({Deadline::immediate()})), "none");
  }
  broker.say(bytes.substr(8));
  EXPECT_EQ(text_of(consumer.next(kPatient)), "hello");
  EXPECT_TRUE(consumer.has_next());
  EXPECT_EQ(text_of(consumer.next(kPatient)), "");
  EXPECT_EQ(text_of(consumer.next(kPatient)), "x");
  EXPECT_FALSE(consumer.has_next());
  EXPECT_EQ(consumer.received(), 3u);
}

TEST(ClientConsumer, LargeMessageIsTakenWhole) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer();
  const std::string message(150'000, 'y');
  broker.say_frame(message);
  broker.say_frame("after");
  EXPECT_EQ(text_of(consumer.next(kPatient)), message);
  EXPECT_EQ(text_of(consumer.next(kPatient)), "after");
}

TEST(ClientConsumer, LengthThatNobodyMeansTakesNoMemory) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer();
  broker.say("\xff\xff\xff\xff");
  EXPECT_EQ(code_of(consumer.next(kPatient)), Errc::corrupt);
}

TEST(ClientConsumer, EndIsSaidAfterTheLastMessage) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer();
  broker.say_frame("last");
  broker.say("\5\0\0\0hel"s);
  broker.leave();
  EXPECT_EQ(text_of(consumer.next(kPatient)), "last");
  EXPECT_EQ(code_of(consumer.next(kPatient)), Errc::closed);
}

TEST(ClientConsumer, TellsWhatItIsDoneWithBeforeItWaits) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer(true);
  for (int i = 0; i < 3; ++i) broker.say_frame("x");
  for (int i = 0; i < 3; ++i) {
    must(consumer.next(kPatient));
    if (i != 2) consumer.acknowledge();
  }
  EXPECT_EQ(broker.heard(), "");
  EXPECT_FALSE(must(consumer.next(kSoon)));
  EXPECT_EQ(broker.heard(), "\2\0\0\0\0\0\0\0"s);
  consumer.acknowledge();
  must(consumer.send_count());
  EXPECT_EQ(broker.heard(), "\3\0\0\0\0\0\0\0"s);
  must(consumer.send_count());
  EXPECT_EQ(broker.heard(), "");
}

TEST(ClientConsumer, CanBeDoneWithTheFirstOnly) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer(true);
  for (int i = 0; i < 3; ++i) broker.say_frame("x");
  for (int i = 0; i < 3; ++i) must(consumer.next(kPatient));
  consumer.acknowledge(2);
  consumer.acknowledge(1);  // Not fewer than before,
  consumer.acknowledge(4);  // nor more than there were.
  must(consumer.send_count());
  EXPECT_EQ(broker.heard(), "\2\0\0\0\0\0\0\0"s);
}

TEST(ClientConsumer, FinishTellsTheRestAndWaitsForTheEnd) {
  WelcomingBroker broker;
  Consumer consumer = broker.consumer(true);
  broker.say_frame("x");
  must(consumer.next(kPatient));
  consumer.acknowledge();
  EXPECT_EQ(code_of(consumer.finish(kSoon)), Errc::timeout);
  EXPECT_EQ(broker.heard(), "\1\0\0\0\0\0\0\0"s);
  broker.say_frame("dropped");
  broker.end_sending();
  EXPECT_EQ(code_of(consumer.finish(kPatient)), Errc::ok);
}

}  // namespace
}  // namespace leat::lightq
