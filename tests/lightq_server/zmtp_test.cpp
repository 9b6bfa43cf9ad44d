// If these failed, ZeroMQ's clients could not talk to the broker, or one that breaks the protocol, by mistake or
// on purpose, could make it read foreign memory, fill its memory, or let it in without a password.
#include "lightq/server/zmtp/zmtp.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "support/zmtp_trace.hpp"

namespace leat::broker::zmtp {
namespace {

using namespace std::string_literals;
using Events = std::vector<std::string>;

std::string greeting(const std::string& mechanism, char major = 3, char minor = 1) {
  // As libzmq sends it: the padding contains the length of an identity, for clients of ZMTP 1.0.
  return "\xFF\0\0\0\0\0\0\0\1\x7F"s + major + minor + mechanism +
         std::string(52 - mechanism.size(), '\0');
}

std::string command(const std::string& name, const std::string& data = "") {
  std::string result;
  append_command(result, name, data);
  return result;
}

std::string property(const std::string& name, const std::string& value) {
  std::string result;
  append_property(result, name, value);
  return result;
}

std::string message(const std::string& body, std::uint8_t flags = 0) {
  std::string result;
  append_frame(result, body, flags);
  return result;
}

std::string hello(const std::string& user, const std::string& password) {
  return command("HELLO", static_cast<char>(user.size()) + user +
                              static_cast<char>(password.size()) + password);
}

std::string null_client(const std::string& type) {
  return greeting("NULL") + command("READY", property("Socket-Type", type));
}

std::string plain_client(const std::string& type) {
  return greeting("PLAIN") + hello("me", "right") +
         command("INITIATE", property("Socket-Type", type) + property("Identity", "I"));
}

Rules rules(Role role) {
  return {.role = role, .allows_null = true, .max_message_bytes = 1000, .max_command_bytes = 600};
}

const std::string kOurStart = "\xFF\0\0\0\0\0\0\0\0\x7F\3\0"s;

// What a session with that role makes of the bytes, after the events and bytes of a login with NULL.
Trace after_login(Role role, const std::string& type, const std::string& bytes) {
  Trace trace{rules(role)};
  trace.feed(null_client(type));
  EXPECT_EQ(trace.events, Events{"ready " + type + " "});
  trace.events.clear();
  trace.out.clear();
  trace.feed(bytes);
  return trace;
}

std::string failure(Role role, const std::string& bytes) {
  Trace trace{rules(role)};
  trace.feed(bytes);
  return trace.events.empty() ? "" : trace.events.back();
}

// --- Bytes that we send --------------------------------------------------------------------------------

TEST(ZmtpGreeting, NamesTheMechanismOnlyAfterTheClientDid) {
  const std::string client = greeting("PLAIN");
  Trace trace{rules(Role::pull)};
  EXPECT_EQ(trace.out, kOurStart);
  trace.feed(client.substr(0, 63));
  EXPECT_EQ(trace.out, kOurStart);
  EXPECT_EQ(trace.session().needed(), 64U);
  trace.feed(client.substr(63));
  EXPECT_EQ(trace.out,
            kOurStart + "PLAIN"s + std::string(15, '\0') + "\1"s + std::string(31, '\0'));
}

TEST(ZmtpGreeting, NullIsAnsweredWithNull) {
  Trace trace{rules(Role::push)};
  trace.feed(greeting("NULL"));
  EXPECT_EQ(trace.out, kOurStart + "NULL"s + std::string(48, '\0'));
  trace.out.clear();
  trace.feed(command("READY", property("Socket-Type", "PULL")));
  EXPECT_EQ(trace.out, "\4\x1A\5READY\xBSocket-Type\0\0\0\4PUSH"s);
  EXPECT_EQ(trace.events, Events{"ready PULL "});
}

TEST(ZmtpGreeting, PlainIsWelcomedAndThenReady) {
  Trace trace{rules(Role::pub)};
  trace.feed(greeting("PLAIN"));
  trace.out.clear();
  trace.feed("\4\xF\5HELLO\2me\5right"s);
  EXPECT_EQ(trace.out, "\4\x8\7WELCOME"s);
  trace.out.clear();
  trace.feed("\4\x1C\x8INITIATE\xBSocket-Type\0\0\0\3SUB"s);
  EXPECT_EQ(trace.out, "\4\x19\5READY\xBSocket-Type\0\0\0\3PUB"s);
  EXPECT_EQ(trace.events, (Events{"credentials me right", "ready SUB "}));
}

TEST(ZmtpFrame, IsShortUpTo255BytesAndLongBeyond) {
  std::string out;
  append_message(out, "");
  EXPECT_EQ(out, "\0\0"s);
  out.clear();
  append_message(out, "topic", "payload");
  EXPECT_EQ(out, "\1\5topic\0\7payload"s);
  out.clear();
  const std::string most(255, 'x');
  append_message(out, most);
  EXPECT_EQ(out, "\0\xFF"s + most);
  out.clear();
  append_message(out, most + "y", most + "z");
  EXPECT_EQ(out, "\3\0\0\0\0\0\0\1\0"s + most + "y" + "\2\0\0\0\0\0\0\1\0"s + most + "z");
}

// --- Login -----------------------------------------------------------------------------------------------

TEST(ZmtpLogin, WaitsForADecisionThatComesLater) {
  std::string out;
  Session session{rules(Role::pull)};
  const std::string all = plain_client("PUSH") + message("first");
  Bytes bytes{all};
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::credentials);
  EXPECT_EQ(session.credentials().user, "me");
  EXPECT_EQ(session.credentials().password, "right");
  const Bytes left = bytes;
  out.clear();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::waiting);
  EXPECT_EQ(bytes.data(), left.data()) << "nothing is taken in the meantime";
  EXPECT_EQ(out, "");
  session.accept(out);
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::ready);
  EXPECT_EQ(session.peer().identity, "I");
  EXPECT_EQ(session.next(bytes, out).body.text(), "first");
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::need_more);
}

TEST(ZmtpLogin, WrongPasswordIsAnErrorWithTheCode400) {
  Trace trace{rules(Role::pull)};
  trace.feed(greeting("PLAIN", 3, 0));
  trace.out.clear();
  trace.feed(hello("me", "wrong"));
  EXPECT_EQ(trace.out,
            "\4\xA\5ERROR\3"
            "400"s);
  EXPECT_EQ(trace.events, (Events{"credentials me wrong", "failed wrong user or password"}));
  trace.feed(command("INITIATE", property("Socket-Type", "PUSH")) + message("in?"));
  EXPECT_EQ(trace.events.size(), 2U);
}

TEST(ZmtpLogin, WrongPasswordIsToldToLibzmqAsItMisspellsIt) {
  Trace trace{rules(Role::pull)};
  trace.feed(greeting("PLAIN", 3, 1));
  trace.out.clear();
  trace.feed(hello("me", "wrong"));
  EXPECT_EQ(trace.out,
            "\4\x9^RROR\3"
            "400"s);
}

TEST(ZmtpLogin, IsRefusedForNowWithoutAWord) {
  std::string out;
  Session session{rules(Role::pull)};
  const std::string all = greeting("PLAIN") + hello("me", "right");
  Bytes bytes{all};
  session.next(bytes, out);
  out.clear();
  session.refuse(Refusal::later, out);
  EXPECT_EQ(out, "") << "libzmq would not connect again";
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::failed);
  EXPECT_EQ(session.error(), "the login is refused for now");
}

TEST(ZmtpLogin, NullNeedsPermission) {
  Rules strict = rules(Role::pull);
  strict.allows_null = false;
  Trace trace{strict};
  trace.feed(null_client("PUSH"));
  EXPECT_EQ(trace.events, Events{"failed the client sends no user and password (PLAIN)"});
  EXPECT_EQ(trace.out.substr(12, 6), "PLAIN\0"s) << "so that the client sees why";
  EXPECT_EQ(trace.out.size(), 64U);
  EXPECT_EQ(Trace{strict}.feed(plain_client("PUSH")).events.back(), "ready PUSH I");
}

TEST(ZmtpLogin, EmptyUserAndPasswordAreCredentials) {
  Trace trace{rules(Role::pull)};
  trace.feed(greeting("PLAIN") + hello("", ""));
  EXPECT_EQ(trace.events[0], "credentials  ");
}

TEST(ZmtpLogin, OnlyMatchingSocketsMayCome) {
  const std::vector<std::string> all{"PAIR", "PUB",  "SUB",  "REQ",  "REP",    "DEALER", "ROUTER",
                                     "PULL", "PUSH", "XPUB", "XSUB", "STREAM", ""};
  const std::vector<std::pair<Role, Events>> allowed{{Role::pull, {"PUSH"}},
                                                     {Role::push, {"PULL"}},
                                                     {Role::pub, {"SUB", "XSUB"}},
                                                     {Role::rep, {"REQ", "DEALER"}}};
  for (const auto& [role, types] : allowed) {
    for (const std::string& type : all) {
      const bool fits = std::ranges::find(types, type) != types.end();
      Trace trace{rules(role)};
      trace.feed(null_client(type));
      EXPECT_EQ(trace.events[0].starts_with(fits ? "ready" : "failed"), true) << trace.events[0];
    }
  }
  Trace trace{rules(Role::pub)};
  trace.feed(greeting("NULL"));
  trace.out.clear();
  trace.feed(command("READY", property("Socket-Type", "PULL")));
  const std::string reason =
      "a socket of type PULL cannot use this port, which is for SUB and XSUB";
  EXPECT_EQ(trace.events, Events{"failed " + reason});
  EXPECT_EQ(trace.out, command("ERROR", "E" + reason)) << "69 characters";
}

TEST(ZmtpLogin, PropertiesMayComeInAnyOrderAndCase) {
  Trace trace{rules(Role::rep)};
  trace.feed(greeting("NULL") +
             command("READY", property("X-Mine", "") + property("IDENTITY", "me") +
                                  property("socket-TYPE", "REQ") + property("Resource", "r")));
  EXPECT_EQ(trace.events, Events{"ready REQ me"});
}

TEST(ZmtpLogin, ClientMayGiveUp) {
  EXPECT_EQ(failure(Role::pull, greeting("PLAIN") + command("ERROR",
                                                            "\3"
                                                            "no\n"s)),
            "failed the client gives up: \"no?\"");
}

// --- Messages --------------------------------------------------------------------------------------------

TEST(ZmtpPull, TakesMessagesOfAllSizesAndSeveralParts) {
  const std::string longest(1000, 'x');
  const Trace trace = after_login(Role::pull, "PUSH",
                                  message("") + message("a") + message("b", kMore) +
                                      message(longest, kMore) + message("") + message(longest));
  EXPECT_EQ(trace.events, (Events{"message ", "message a", "part b", "part " + longest, "message ",
                                  "message " + longest}));
  EXPECT_EQ(trace.out, "");
}

TEST(ZmtpPull, TakesShortBodiesInLongFrames) {
  EXPECT_EQ(after_login(Role::pull, "PUSH", "\2\0\0\0\0\0\0\0\1a\3\0\0\0\0\0\0\0\0"s).events,
            (Events{"message a", "part "}));
}

TEST(ZmtpPull, SaysHowMuchItNeeds) {
  std::string out;
  Session session{rules(Role::pull)};
  const std::string login = null_client("PUSH");
  const std::string frame = message(std::string(700, 'x'));
  Bytes bytes{login};
  session.next(bytes, out);
  bytes = Bytes{frame}.first(1);
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::need_more);
  EXPECT_EQ(session.needed(), 9U);
  bytes = Bytes{frame}.first(9);
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::need_more);
  EXPECT_EQ(session.needed(), 709U);
  EXPECT_EQ(bytes.size(), 9U) << "they stay where they are";
  bytes = Bytes{frame};
  EXPECT_EQ(session.next(bytes, out).body.data(), Bytes{frame}.data() + 9) << "no copy";
}

TEST(ZmtpPub, UnderstandsSubscriptionsOfBothVersions) {
  EXPECT_EQ(
      after_login(Role::pub, "SUB",
                  message("\1a"s) + message("\0a"s) + message("\1"s) + command("SUBSCRIBE", "bc") +
                      command("CANCEL", "bc") + command("SUBSCRIBE"))
          .events,
      (Events{"subscribe a", "unsubscribe a", "subscribe ", "subscribe bc", "unsubscribe bc",
              "subscribe "}));
}

// libzmq would come again with the same subscriptions, for ever.
TEST(ZmtpPub, IgnoresSubscriptionsThatAreTooLongToMatch) {
  const std::string longest(700, 'x');
  Trace trace = after_login(Role::pub, "SUB",
                            message("\1a"s) + message("\1" + longest) + message("\1b"s) +
                                command("SUBSCRIBE", longest) + command("CANCEL", longest) +
                                command("SUBSCRIBE", "c"));
  EXPECT_EQ(trace.events, (Events{"subscribe a", "subscribe b", "subscribe c"}));
  trace.events.clear();
  trace.feed(message("\1" + longest).substr(0, 300));
  EXPECT_EQ(trace.left(), 0U) << "nothing of it is kept";
  EXPECT_EQ(trace.session().needed(), 1U);
  trace.feed(message("\1" + longest).substr(300) + message("\0a"s));
  EXPECT_EQ(trace.events, Events{"unsubscribe a"});
}

TEST(ZmtpPub, IgnoresOtherMessagesOfXsub) {
  EXPECT_EQ(after_login(Role::pub, "XSUB",
                        message("") + message("\2no"s) + message("no", kMore) +
                            message("\1no"s, kMore) + message("\1no"s) + message("\1yes"s))
                .events,
            Events{"subscribe yes"});
}

TEST(ZmtpRep, PutsTheEmptyFrameOfTheRequestBeforeTheReply) {
  Trace trace = after_login(Role::rep, "REQ", message("", kMore) + message("ask"));
  EXPECT_EQ(trace.events, Events{"message ask"});
  EXPECT_EQ(trace.out, "\1\0\0\3ask"s);
}

TEST(ZmtpRep, ReturnsAddressesThatComeBeforeTheRequest) {
  Trace trace = after_login(Role::rep, "DEALER",
                            message("id", kMore) + message("", kMore) + message("part", kMore) +
                                message("last") + message("", kMore) + message("next"));
  EXPECT_EQ(trace.events, (Events{"part part", "message ", "message next"}));
  EXPECT_EQ(trace.out, "\1\2id\1\0\0\4part\1\0\0\4next"s);
}

// Else strangers could keep two parts in the broker's memory instead of one.
TEST(ZmtpRep, NeedsNoRoomForFurtherPartsOfARequest) {
  Trace trace = after_login(Role::rep, "REQ", message("", kMore) + message("ask", kMore));
  for (const std::uint8_t flags : {kMore, std::uint8_t{0}}) {
    const std::string part = message(std::string(900, 'x'), flags);
    trace.feed(std::string_view{part}.substr(0, 800));
    EXPECT_EQ(trace.left(), 0U);
    EXPECT_EQ(trace.session().needed(), 1U);
    EXPECT_TRUE(trace.session().is_within_message());
    trace.feed(std::string_view{part}.substr(800));
    if (flags == 0) break;
    EXPECT_EQ(trace.events, Events{"part ask"});
    trace.feed(command("PING", "\0\0"s));
    EXPECT_EQ(trace.out, command("PONG"));
  }
  EXPECT_EQ(trace.events, (Events{"part ask", "message "}));
  EXPECT_EQ(trace.out, command("PONG") + "\1\0\0\3ask"s);
  EXPECT_FALSE(trace.session().is_within_message());
}

TEST(ZmtpRep, RefusesFurtherPartsThatAreTooLong) {
  const Trace trace =
      after_login(Role::rep, "REQ",
                  message("", kMore) + message("ask", kMore) + message(std::string(1001, 'x')));
  EXPECT_EQ(trace.events.back(), "failed a message part of 1001 bytes, and at most 1000 are taken");
}

TEST(ZmtpRep, HandsOutTheNextRequestAfterTheReply) {
  std::string out;
  Session session{rules(Role::rep)};
  const std::string all =
      null_client("DEALER") + message("", kMore) + message("1") + message("", kMore) + message("2");
  Bytes bytes{all};
  session.next(bytes, out);
  EXPECT_EQ(session.next(bytes, out).body.text(), "1");
  EXPECT_EQ(session.next(bytes, out).kind, Event::Kind::waiting);
  out.clear();
  session.reply("one", out);
  EXPECT_EQ(out, "\1\0\0\3one"s);
  EXPECT_EQ(session.next(bytes, out).body.text(), "2");
}

// --- Heartbeats ------------------------------------------------------------------------------------------

TEST(ZmtpPing, IsAnsweredWithItsContextBetweenAnyFrames) {
  Trace trace =
      after_login(Role::pull, "PUSH",
                  command("PING", "\0\0"s) + message("a", kMore) + command("PING", "\1\2context"s) +
                      message("b") + command("PONG", "x"));
  EXPECT_EQ(trace.out, "\4\5\4PONG\4\xC\4PONGcontext"s);
  EXPECT_EQ(trace.events, (Events{"part a", "message b"}));
  EXPECT_EQ(trace.session().silence_limit(), std::chrono::milliseconds{25800});
}

TEST(ZmtpPing, IsAnsweredUnaskedByThoseWhoKnowHeartbeats) {
  const auto sign_of = [](Trace& trace) {
    std::string out;
    trace.session().append_sign_of_life(out);
    return out;
  };
  const std::string ready = command("READY", property("Socket-Type", "PUSH"));
  Trace newer{rules(Role::pull)}, older{rules(Role::pull)};
  newer.feed(greeting("NULL", 3, 1));
  older.feed(greeting("NULL", 3, 0));
  EXPECT_EQ(sign_of(newer), "") << "not logged in";
  newer.feed(ready);
  older.feed(ready);
  EXPECT_EQ(sign_of(newer), "\4\5\4PONG"s);
  EXPECT_EQ(sign_of(older), "") << "ZMTP 3.0 does not know it";
  older.feed(command("PING", "\0\0"s));  // But this client does.
  EXPECT_EQ(sign_of(older), "\4\5\4PONG"s);
}

TEST(ZmtpPing, CannotFillOurMemory) {
  Trace trace = after_login(Role::pull, "PUSH", "");
  for (int i = 0; i < 100'000; ++i) trace.feed(command("PING", "\0\0 a context with"s));
  EXPECT_GT(trace.out.size(), 60'000U);
  EXPECT_LT(trace.out.size(), 70'000U);
}

// --- Whatever is wrong -----------------------------------------------------------------------------------

TEST(ZmtpFailure, OlderClientsAreToldApart) {
  EXPECT_EQ(failure(Role::pull, greeting("", 1)),
            "failed the client speaks ZMTP 2.0, and at least 3.0 (ZeroMQ 4) is needed");
  EXPECT_EQ(failure(Role::pull, greeting("", 1).substr(0, 11)),
            failure(Role::pull, greeting("", 1)))
      << "they send no more";
  EXPECT_EQ(failure(Role::pull, greeting("", 0).substr(0, 11)),
            "failed the client speaks ZMTP 1.0, and at least 3.0 (ZeroMQ 4) is needed");
  EXPECT_EQ(failure(Role::pull, "\1\0"s),
            "failed the client does not speak ZMTP 3 (ZeroMQ 4): its first byte is not 0xFF");
  EXPECT_EQ(failure(Role::pull, "\xFF\0\0\0\0\0\0\1\1\0"s),
            "failed the client does not speak ZMTP 3 (ZeroMQ 4): its signature is wrong");
  EXPECT_EQ(failure(Role::pull, greeting("NULL", 3, 0)), "");
  EXPECT_EQ(failure(Role::pull, greeting("NULL", 4, 7)), "") << "later versions must speak ours";
}

TEST(ZmtpFailure, UnknownMechanismsAreNamed) {
  EXPECT_EQ(failure(Role::pull, greeting("CURVE")),
            "failed the client wants the mechanism \"CURVE\", and PLAIN and NULL are offered");
  EXPECT_EQ(failure(Role::pull, greeting("NULL\0X"s)),
            "failed the client wants the mechanism \"NULL?X\", and PLAIN and NULL are offered");
  EXPECT_EQ(failure(Role::pull, greeting("")),
            "failed the client wants the mechanism \"\", and PLAIN and NULL are offered");
}

TEST(ZmtpFailure, NothingIsReservedForFramesThatAreTooLong) {
  const std::string login = null_client("PUSH");
  EXPECT_EQ(failure(Role::pull, login + "\2\0\0\0\0\0\0\3\xE9"s),
            "failed a message part of 1001 bytes, and at most 1000 are taken");
  EXPECT_EQ(failure(Role::pull, login + "\2\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"s),
            "failed a message part of 18446744073709551615 bytes, and at most 1000 are taken");
  EXPECT_EQ(failure(Role::pull, login + "\6\0\0\0\0\0\0\2\x59"s),
            "failed a command of 601 bytes, and at most 600 are taken");
  EXPECT_EQ(failure(Role::pull, greeting("PLAIN") + "\6\x80\0\0\0\0\0\0\0"s),
            "failed a command of 9223372036854775808 bytes, and at most 600 are taken");
  EXPECT_EQ(failure(Role::pub, null_client("SUB") + "\2\0\0\0\0\0\0\3\xE9"s),
            "failed a message part of 1001 bytes, and at most 600 are taken");
  Rules tiny = rules(Role::pull);
  tiny.max_message_bytes = 3;
  Trace trace{tiny};
  trace.feed(login + message("123") + message("1234"));
  EXPECT_EQ(trace.events, (Events{"ready PUSH ", "message 123",
                                  "failed a message part of 4 bytes, and at most 3 are taken"}));
}

TEST(ZmtpFailure, FramesMustMakeSense) {
  const std::string login = null_client("PUSH");
  EXPECT_EQ(failure(Role::pull, login + "\x8"), "failed a frame with unknown flags, 0x08");
  EXPECT_EQ(failure(Role::pull, login + "\x80"), "failed a frame with unknown flags, 0x80");
  EXPECT_EQ(failure(Role::pull, login + "\5"), "failed a command in several parts");
  EXPECT_EQ(failure(Role::pull, login + "\4\0"s), "failed a command without a name");
  EXPECT_EQ(failure(Role::pull, login + "\4\1\0"s), "failed a command without a name");
  EXPECT_EQ(failure(Role::pull, login + "\4\2\2a"s), "failed a command without a name");
  EXPECT_EQ(failure(Role::pull, login + command("JOIN", "group")), "ready PUSH ")
      << "unknown ones are ignored";
}

TEST(ZmtpFailure, CommandsMustComeInTheirTurn) {
  const std::string plain = greeting("PLAIN");
  EXPECT_EQ(failure(Role::pull, plain + "\0"s), "failed a message instead of the command HELLO");
  EXPECT_EQ(failure(Role::pull, plain + command("INITIATE")),
            "failed the command INITIATE instead of HELLO");
  EXPECT_EQ(failure(Role::pull, plain + command("PING", "\0\0"s)),
            "failed the command PING instead of HELLO");
  EXPECT_EQ(failure(Role::pull, plain + hello("me", "right") + command("READY")),
            "failed the command READY instead of INITIATE");
  EXPECT_EQ(failure(Role::pull, plain + hello("me", "right") + message("a")),
            "failed a message instead of the command INITIATE");
  EXPECT_EQ(failure(Role::pull, greeting("NULL") + hello("me", "right")),
            "failed the command HELLO instead of READY");
  EXPECT_EQ(failure(Role::pull, null_client("PUSH") + command("READY")),
            "failed the command READY after the handshake");
  EXPECT_EQ(failure(Role::pull, null_client("PUSH") + command("SUBSCRIBE")),
            "failed a subscription at a port that is not for SUB");
  EXPECT_EQ(failure(Role::push, null_client("PULL") + message("a")),
            "failed a message from a socket that may only receive");
  EXPECT_EQ(failure(Role::rep, null_client("REQ") + message("a")),
            "failed a request without an empty frame before it");
}

TEST(ZmtpFailure, CommandsMustBeWellFormed) {
  const std::string plain = greeting("PLAIN");
  const std::string null = greeting("NULL");
  for (const std::string& data : {""s, "\1"s, "\1a"s, "\1a\2b"s, "\1a\1bc"s}) {
    EXPECT_EQ(failure(Role::pull, plain + command("HELLO", data)),
              "failed a malformed command HELLO");
  }
  const std::string type = property("Socket-Type", "PUSH");
  for (const std::string& wrong :
       {"\0"s, "\0\0\0\0\0"s, "\1a"s, "\1a\0\0\0"s, "\1a\0\0\0\1"s, "\1a\xFF\xFF\xFF\xFF"s}) {
    EXPECT_EQ(failure(Role::pull, null + command("READY", type + wrong)),
              "failed a malformed command READY");
  }
  EXPECT_EQ(failure(Role::pull, null + command("READY")),
            "failed the client does not say which type of socket it has");
  EXPECT_EQ(failure(Role::pull,
                    null + command("READY", type + property("Identity", std::string(256, 'i')))),
            "failed an identity of over 255 bytes");
  EXPECT_EQ(failure(Role::pull, null_client("PUSH") + command("PING", "\0"s)),
            "failed a malformed command PING");
  EXPECT_EQ(failure(Role::pull, null_client("PUSH") + command("PING", std::string(19, 'x'))),
            "failed a malformed command PING");
  EXPECT_EQ(failure(Role::rep, null_client("DEALER") + message(std::string(400, 'x'), kMore) +
                                   message(std::string(400, 'x'), kMore)),
            "failed an envelope of over 600 bytes");
}

TEST(ZmtpFailure, WhatTheClientSentIsMadePrintable) {
  const std::string name = "\x1B[31m\n" + std::string(100, 'x');
  EXPECT_EQ(failure(Role::pull, greeting("PLAIN") + command(name)),
            "failed the command ?[31m?" + std::string(26, 'x') + "... instead of HELLO");
}

// --- However the bytes are cut ---------------------------------------------------------------------------

std::vector<std::pair<Role, std::string>> conversations() {
  const std::string big(900, 'b');
  std::vector<std::pair<Role, std::string>> all{
      {Role::pull, plain_client("PUSH") + message("") + message("a", kMore) + message(big) +
                       command("PING", "\0\1c"s) + message("z")},
      {Role::pull, null_client("PUSH") + message("a") + message("b") + "\x8"},
      {Role::pull, greeting("PLAIN") + hello("me", "wrong") + command("INITIATE")},
      {Role::pull, greeting("CURVE") + message("a")},
      {Role::pull, greeting("", 1)},
      {Role::push,
       plain_client("PULL") + command("PING", "\0\0"s) + command("OTHER", big.substr(0, 500))},
      {Role::push, null_client("PUSH")},
      {Role::pub, null_client("SUB") + message("\1a"s) + command("SUBSCRIBE", "b") +
                      command("PING", "\0\0"s) + message("\0a"s)},
      {Role::rep, plain_client("REQ") + message("", kMore) + message("ask") + message("", kMore) +
                      message("a", kMore) + message(big)},
      {Role::rep, null_client("DEALER") + message("id", kMore) + message("", kMore) + message("1") +
                      message("", kMore) + message("2") + command("PING", "\0\0"s) + message("")},
  };
  return all;
}

TEST(ZmtpFragments, GiveTheSameEventsHoweverTheyAreCut) {
  for (const auto& [role, bytes] : conversations()) {
    Trace whole{rules(role)};
    whole.feed(bytes);
    ASSERT_FALSE(whole.events.empty());
    const auto expect_same = [&](Trace& other, const std::string& how) {
      other.finish();
      EXPECT_EQ(other.events, whole.events) << how;
      EXPECT_EQ(other.out, whole.out) << how;
    };
    for (const bool late : {false, true}) {
      Trace each_byte{rules(role), late};
      each_byte.feed_each_byte(bytes);
      expect_same(each_byte, "each byte");
      Trace needed{rules(role), late};
      needed.feed_what_is_needed(bytes);
      expect_same(needed, "what is needed");
      for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        Trace two{rules(role), late};
        two.feed(std::string_view{bytes}.substr(0, cut)).feed(std::string_view{bytes}.substr(cut));
        expect_same(two, "cut at " + std::to_string(cut));
      }
    }
  }
}

}  // namespace
}  // namespace leat::broker::zmtp
