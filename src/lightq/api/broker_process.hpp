// A broker as a child process: `leat-serve`.
//
//     auto broker = BrokerProcess::start({.admin_password = "…", .bind_ip = "*", .port = 5500});
//     if (!broker) return broker.problem();    // else it is ready now
//     (*broker)->wait();                       // until it ends
//
// It gets SIGTERM when this process ends, however that happens. The kernel sends that when the *thread* ends that started
// the child, so a thread of its own starts it and stays until it has ended. Any thread may call the members.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "leat/os/os.hpp"
#include "lightq/client/address.hpp"
#include "outcome/outcome.hpp"

namespace leat::lightq_api {

struct BrokerOptions {
  std::string admin_password;
  std::string bind_ip = "*";  // "*": the loopback addresses.
  unsigned port = lightq::kAdminPort;
};

class BrokerProcess {
 public:
  // Starts it, and waits until clients can connect.
  //   not_found   there is no leat-serve
  //   closed      it ended
  //   timeout     it is not ready in 20 s
  //   invalid_argument, io_error
  static Outcome<std::unique_ptr<BrokerProcess>> start(const BrokerOptions& options);
  // Ends it with SIGTERM, or with SIGKILL after 10 s.
  ~BrokerProcess();
  BrokerProcess(const BrokerProcess&) = delete;
  BrokerProcess& operator=(const BrokerProcess&) = delete;

  // Waits until it ends; whether its exit code was 0.
  bool wait();
  bool is_running();

 private:
  BrokerProcess() = default;

  void run(const std::string& executable, const std::vector<std::string>& arguments, int password,
           os::Fd told) noexcept;
  Outcome<void> wait_until_it_says_so(int ready);
  void end() noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Protected by mutex_.
  ::pid_t pid_ = 0;  // 0: not started. Its number is not reused before has_ended_ is set.
  bool has_ended_ = false;
  int status_ = 0;  // As waitpid() tells it.
  std::thread thread_;
};

}  // namespace leat::lightq_api
