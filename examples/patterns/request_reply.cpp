// Request and reply: clients ask, servers answer, each client on a topic of its own.
//
//     request_reply serve              # any number of servers share the requests
//     request_reply ask hello world    # prints the reply to each
//
// If a server is killed, another one gets the requests that it had taken, so a request may be answered twice. The client
// recognizes the reply by the number that it gave the request.
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <random>
#include <span>
#include <string>

#include "leat/leat.hpp"

using namespace std::chrono_literals;

namespace {

constexpr std::string_view kReplies = "replies.";  // Begins the name of every client's topic.

int fail(const char* what, leat::Error error) {
  std::fprintf(stderr, "%s: %s\n", what, leat::describe(error).c_str());
  return 1;
}

std::string header(const leat::Record& record, std::string_view name) {
  for (const leat::Header one : record.headers) {
    if (one.name == name) return std::string{one.value.text()};
  }
  return {};
}

// A client that has gone, or reads too slowly, must not hold up the server.
leat::Result<std::uint64_t> reply(const leat::Record& request) {
  const std::string name = header(request, "reply-to");
  if (!name.starts_with(kReplies)) return leat::Errc::invalid_argument;
  auto topic = leat::Topic::open(name);
  if (!topic) return topic.error();
  auto publisher = topic->publisher();
  if (!publisher) return publisher.error();
  std::string answer{request.text()};
  std::ranges::transform(answer, answer.begin(), [](unsigned char c) { return std::toupper(c); });
  const std::string id = header(request, "id");
  const leat::Header headers[] = {{"id", id}};
  return publisher->publish({.headers = headers, .value = answer}, leat::Deadline::immediate());
}

int serve() {
  auto topic = leat::Topic::open_or_create("requests");
  if (!topic) return fail("cannot open the topic", topic.error());
  auto group = topic->group("servers", {.from = leat::From::beginning});
  if (!group) return fail("cannot open the group", group.error());
  auto member = group->join();
  if (!member) return fail("cannot join the group", member.error());
  while (true) {
    auto request = member->receive();
    if (!request) return fail("cannot receive", request.error());
    if (auto sent = reply(request->record); !sent) (void)fail("cannot reply", sent.error());
    if (auto done = member->acknowledge(*request); !done) return fail("cannot go on", done.error());
  }
}

int ask(std::span<char*> questions) {
  auto requests = leat::Topic::open("requests", 5s);
  if (!requests) return fail("no server has started", requests.error());
  std::random_device random;
  const std::string name =
      std::string{kReplies} + std::to_string(random()) + std::to_string(random());
  auto replies =
      leat::Topic::create(name, {.capacity_bytes = 64 << 10, .delete_when_unused = true});
  if (!replies) return fail("cannot create a topic for replies", replies.error());
  auto subscriber = replies->subscriber();
  auto publisher = requests->publisher();
  if (!subscriber || !publisher)
    return fail("cannot begin", (subscriber ? publisher.error() : subscriber.error()));
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const std::string id = std::to_string(i);
    const leat::Header headers[] = {{"reply-to", name}, {"id", id}};
    const leat::Deadline deadline{5s};
    auto sent = publisher->publish({.headers = headers, .value = questions[i]}, deadline);
    if (!sent) return fail("cannot ask", sent.error());
    auto reply = subscriber->receive(deadline);
    while (reply && header(*reply, "id") != id) reply = subscriber->receive(deadline);
    if (!reply) return fail("no reply", reply.error());
    std::printf("%s\n", std::string{reply->text()}.c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "serve" && argc == 2) return serve();
  if (command == "ask" && argc > 2)
    return ask(std::span{argv, static_cast<std::size_t>(argc)}.subspan(2));
  std::fputs("usage: request_reply serve | ask QUESTION…\n", stderr);
  return 2;
}
