// ShmFifo's producer and consumer, running on Leat: shm_fifo [producer|consumer|both] [messages]
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>

#include "leat/compat/shm_fifo.hpp"

namespace {

struct CheckImeiReq {
  char imei[16];
  char imsi[16];
  char msisdn[19];
};
static_assert(sizeof(CheckImeiReq) == 51);
constexpr CheckImeiReq kRequest = {"254784512658411", "214021245145781", "123456987412547896"};

std::string text_message() {
  std::string text;
  for (int i = 0; i < 32; ++i) text += "hola";
  return text + "adios";
}

// All fields in sequence, each preceded by its length.
std::string serialize(const CheckImeiReq& request) {
  std::ostringstream archive;
  for (const char* field : {request.imei, request.imsi, request.msisdn}) {
    archive << std::strlen(field) << ' ' << field << ' ';
  }
  return archive.str();
}

class Delay {
 public:
  void print(const char* what) const {
    const auto passed = std::chrono::steady_clock::now() - since_;
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(passed).count();
    std::printf("%s: %lld\n", what, static_cast<long long>(ms));
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

void produce(int count) {
  const int size = count * static_cast<int>(sizeof(ccommons::shm_fifo_message)) + 16;
  const std::string text = text_message();
  ccommons::ShmFifo texts{"/messaging-text-fifo_shm", size, true};
  const Delay text_delay;
  for (int i = 0; i < count; ++i) texts.write(text.data(), static_cast<int>(text.size()));
  text_delay.print("Text Message Delay");

  ccommons::ShmFifo objects{"/messaging-textobj-fifo_shm", size, true};
  const Delay object_delay;
  for (int i = 0; i < count; ++i) {
    objects.write(reinterpret_cast<const char*>(&kRequest), sizeof(kRequest));
  }
  object_delay.print("Text Object Delay");

  ccommons::ShmFifo archives{"/messaging-binobj-fifo_shm", size, true};
  const Delay archive_delay;
  for (int i = 0; i < count; ++i) {
    const std::string archive = serialize(kRequest);
    archives.write(archive.data(), static_cast<int>(archive.size()));
  }
  archive_delay.print("Serialized Object Delay");
}

bool consume(int count) {
  const int size = count * static_cast<int>(sizeof(ccommons::shm_fifo_message)) + 16;
  ccommons::shm_fifo_message message{};
  ccommons::ShmFifo texts{"/messaging-text-fifo_shm", size, false};
  const Delay text_delay;
  for (int i = 0; i < count; ++i) {
    if (!texts.read(message)) return false;
  }
  text_delay.print("Text Object Delay");
  std::printf("Last message read: [%lld] content: %.*s\n",
              static_cast<long long>(message.message_number),
              static_cast<int>(message.value_length), message.content);

  ccommons::ShmFifo objects{"/messaging-textobj-fifo_shm", size, false};
  CheckImeiReq request{};
  const Delay object_delay;
  for (int i = 0; i < count; ++i) {
    if (!objects.read(message)) return false;
    std::memcpy(&request, message.content, sizeof(request));
  }
  object_delay.print("Text Object Delay");
  std::printf("Last message read: [%lld] imei: %s - imsi: %s - msisdn: %s\n",
              static_cast<long long>(message.message_number), request.imei, request.imsi,
              request.msisdn);
  const ccommons::ShmFifo remove_archives{"/messaging-binobj-fifo_shm", size, false};
  return std::memcmp(&request, &kRequest, sizeof(request)) == 0;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string role = argc > 1 ? argv[1] : "both";
  const int count = argc > 2 ? std::atoi(argv[2]) : 10'000;
  if (role != "consumer") produce(count);
  if (role != "producer" && !consume(count)) return 1;
  return 0;
} catch (const ccommons::ShmException& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
