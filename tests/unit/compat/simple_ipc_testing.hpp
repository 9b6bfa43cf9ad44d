// Shared by the tests of CSimpleIPC: a private directory, and blocks that hold one number.
#pragma once

#include <atomic>
#include <cstring>
#include <thread>

#include "leat/compat/simple_ipc.hpp"
#include "testing.hpp"

namespace leat {

using compat::BlockStatus;

class SimpleIpcTest : public ::testing::Test {
 protected:
  SimpleIpcTest() { ::setenv("LEAT_DIR", directory_.path().c_str(), 1); }
  ~SimpleIpcTest() override { ::unsetenv("LEAT_DIR"); }
  const TestDirectory& directory() const { return directory_; }

  // An instance attached to the connection point of another one.
  struct Attached : CSimpleIPC {
    explicit Attached(const CSimpleIPC& other) {
      EXPECT_TRUE(attachToConnectionPoint(other.getConnectionPoint())) << lastErrorText();
    }
  };

 private:
  TestDirectory directory_;
};

inline bool write_number(CSimpleIPC& ipc, std::uint64_t number, std::uint32_t timeout = 0,
                         const CSimpleIPC::StopOn& stop = {}) {
  return ipc.write(&number, sizeof(number), timeout, stop);
}
// The next number, or ~0 if there is none.
inline std::uint64_t read_number(CSimpleIPC& ipc, std::uint32_t timeout = 0,
                                 const CSimpleIPC::StopOn& stop = {}) {
  std::uint64_t number = 0;
  return ipc.read(&number, sizeof(number), timeout, stop) ? number : ~0ULL;
}
inline Errc last_error() { return CSimpleIPC::lastError().code; }

// How many blocks can be written without a reader.
inline std::uint64_t fill_up(CSimpleIPC& ipc) {
  std::uint64_t count = 0;
  while (write_number(ipc, count)) ++count;
  EXPECT_EQ(last_error(), Errc::timeout) << CSimpleIPC::lastErrorText();
  return count;
}

// Runs `call` on another thread, calls `end` once it is certainly waiting,
// and returns the results of `call`.
template <class Call, class End>
auto ended_by(Call call, End end) {
  decltype(call()) result{};
  Errc error = Errc::ok;
  std::jthread waiter{[&] {
    result = call();
    error = last_error();
  }};
  std::this_thread::sleep_for(30ms);
  end();
  waiter.join();
  return std::pair{result, error};
}

}  // namespace leat
