// A work queue: jobs wait in a topic, and any number of workers share them.
//
//     work_queue work &               # as many as you like; kill any of them at any moment
//     work_queue add /etc/hosts /etc/passwd
//
// A job is the name of a file, whose lines are counted. A job that a killed worker had goes to another one. A job that fails
// is tried again; after three times it is put aside in the topic jobs.workers.dead.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>

#include "leat/leat.hpp"

using namespace std::chrono_literals;

namespace {

int fail(const char* what, leat::Error error) {
  std::fprintf(stderr, "%s: %s\n", what, leat::describe(error).c_str());
  return 1;
}

struct Queue {
  leat::Topic topic;
  leat::Group group;
};
// Whoever comes first makes both. From then on the topic keeps every job until it is done, also without workers. With
// `.durable` in the first braces, jobs survive a restart of the machine.
leat::Result<Queue> open_queue() {
  auto topic = leat::Topic::open_or_create("jobs", {.capacity_bytes = 1 << 20});
  if (!topic) return topic.error();
  // Jobs may take long: a worker takes one at a time, and leaves the others to the others.
  auto group =
      topic->group("workers", {.from = leat::From::beginning, .in_flight = 1, .max_deliveries = 3});
  if (!group) return group.error();
  return Queue{std::move(*topic), std::move(*group)};
}

bool count_lines(const std::string& path) {
  std::ifstream file{path};
  if (!file) return false;
  const auto lines = std::count(std::istreambuf_iterator<char>{file}, {}, '\n');
  std::printf("%s: %td lines\n", path.c_str(), lines);
  return std::fflush(stdout) == 0;
}

int add(std::span<char*> jobs) {
  auto queue = open_queue();
  if (!queue) return fail("cannot open the queue", queue.error());
  auto publisher = queue->topic.publisher();
  if (!publisher) return fail("cannot add jobs", publisher.error());
  for (const char* job : jobs) {
    auto added = publisher->publish(job, 10s);  // Waits while the queue is full.
    if (!added) return fail(job, added.error());
  }
  return 0;
}

int work() {
  auto queue = open_queue();
  if (!queue) return fail("cannot open the queue", queue.error());
  auto member = queue->group.join();
  if (!member) return fail("cannot join the workers", member.error());
  while (true) {
    auto job = member->receive();
    if (!job) return fail("cannot receive", job.error());
    const std::string path{job->record.text()};
    const bool is_done = count_lines(path);
    if (!is_done) std::fprintf(stderr, "%s failed, attempt %u\n", path.c_str(), job->deliveries);
    auto settled = is_done ? member->acknowledge(*job) : member->requeue(*job, 100ms);
    if (!settled) return fail(path.c_str(), settled.error());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "work" && argc == 2) return work();
  if (command == "add" && argc > 2)
    return add(std::span{argv, static_cast<std::size_t>(argc)}.subspan(2));
  std::fputs("usage: work_queue work | add FILE…\n", stderr);
  return 2;
}
