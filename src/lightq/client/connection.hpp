// A TCP connection to a broker, with deadlines.
//
//     auto connection = Connection::open({"127.0.0.1", 5500}, Connection::Sends::at_once, {Deadline{5s}});
//     if (!connection) return connection.problem();
//     if (auto sent = connection->send("hello", {Deadline{1s}}); !sent) return sent.problem();
//
// Belongs to one thread. Not after fork(): both processes would talk on it. When it fails once, it has failed for good;
// whoever wants another one makes it.
//
// A sentence of a Problem has no full stop and never contains a password. What a broker said is in it only in part, and
// without control characters. The codes: not_found: nobody listens there, or the broker has no such topic. permission:
// wrong user or password. timeout, stopped: see Patience. closed: the connection has ended. corrupt: the broker sent
// what no broker sends. Others are as in leat/result.hpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "address.hpp"
#include "leat/os/os.hpp"
#include "outcome/outcome.hpp"
#include "patience.hpp"

namespace leat::lightq {

class Connection {
 public:
  // When the kernel sends what is given to it: at once, or together with what comes while others are on their way.
  enum class Sends { at_once, together };

  // Connects. Looking up a name is not ended by the deadline, only by the system's own.
  //   not_found   no such name, or nobody listens
  //   timeout, stopped, io_error
  static Outcome<Connection> open(const Address& address, Sends sends, const Patience& patience);
  // Takes a connected socket, for tests.
  Connection(os::Fd socket, std::string name);

  // Hands all of it to the kernel.
  //   closed, timeout, stopped   a part of it may have been sent
  Outcome<void> send(std::string_view bytes, const Patience& patience);
  // Hands over what the kernel takes now; returns how much.
  //   closed
  Outcome<std::size_t> send_some(std::string_view bytes);
  // Takes at most `size` bytes; 0: nothing is there now.
  //   closed   the other side has ended the connection, and all it sent was taken
  Outcome<std::size_t> receive_some(std::byte* to, std::size_t size);

  // Waits until there is something to take, or the end; with `or_writable` also until more can be sent. False: the
  // deadline has passed, or a stop was requested.
  bool wait_readable(const Patience& patience, bool or_writable = false);

  // Tells the other side that nothing more comes.
  void end_sending() noexcept;

  // "the broker at 127.0.0.1:5500", for sentences.
  const std::string& name() const noexcept { return name_; }
  // What a wait that brought nothing means: timeout or stopped.
  Problem gave_up(const Patience& patience, const std::string& what) const;

 private:
  Problem ended(int error) const;

  std::string name_;
  os::Fd socket_;
};

}  // namespace leat::lightq
