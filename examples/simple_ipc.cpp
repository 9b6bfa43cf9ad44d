// CSimpleIPC on Leat: two processes share a queue of blocks, which the client finds by name.
//
// Without arguments the program is the server, and starts itself again as the client.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <new>
#include <string>
#include <thread>

#include "leat/compat/simple_ipc.hpp"

namespace {

constexpr int kMessages = 100'000;

// Constructed in place, in the shared memory of a block.
struct Message {
  Message(int from, int value) : writer{from}, number{value} {}
  int writer;
  int number;
};

int fail(const char* what) {
  std::fprintf(stderr, "%s: %s\n", what, CSimpleIPC::lastErrorText().c_str());
  return 1;
}

// Two threads write; the other process reads.
int client(const std::string& name) {
  CSimpleIPC ipc;
  if (!ipc.attachToConnectionPoint(name, 5000)) return fail("attach");
  const auto write_half = [&ipc](int writer) {
    for (int i = writer; i < kMessages; i += 2) {
      BlockWriteDescriptor block;
      if (ipc.acquireBlock(block) == nullptr) return;
      new (block.result) Message{writer, i};
      ipc.releaseLockedBlock(block);
    }
  };
  std::jthread other{write_half, 1};
  write_half(0);
  return 0;
}

int server(const char* program) {
  CSimpleIPC ipc;
  // 256 blocks; 256 more whenever 16 or fewer are free; at most 1024.
  if (!ipc.createConnectionPoint(sizeof(Message), 256, 4, false, 16)) return fail("create");

  // Its waits have no timeout; requestStopCommunications() ends them.
  long long sum = 0;
  int count = 0;
  std::jthread reader{[&] {
    while (!ipc.isCommunicationStopped()) {
      BlockReadDescriptor block;
      if (ipc.acquireBlock(block, INFINITE) == nullptr) continue;
      sum += static_cast<const Message*>(block.result)->number;
      ipc.releaseLockedBlock(block);
      if (++count == kMessages) ipc.requestStopCommunications();
    }
  }};

  std::string program_name = program;
  std::string name = ipc.getConnectionPointName();
  char* arguments[] = {program_name.data(), name.data(), nullptr};
  ::pid_t child = 0;
  int status = -1;
  if (::posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, arguments, ::environ) != 0 ||
      ::waitpid(child, &status, 0) != child || status != 0) {
    ipc.requestStopCommunications();
    std::fputs("the client failed\n", stderr);
    return 1;
  }
  reader.join();
  std::printf("%d messages, sum %lld\n", count, sum);
  return sum == static_cast<long long>(kMessages) * (kMessages - 1) / 2 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return argc > 1 ? client(argv[1]) : server(argv[0]); }
