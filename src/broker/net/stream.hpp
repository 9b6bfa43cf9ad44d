// One connection of a broker: bytes in, bytes out, without waiting.
//
//     class Echo : public Stream {
//       std::size_t on_bytes(Bytes& bytes) override { out().append(bytes.text()); bytes = {}; flush(); return 0; }
//       void on_closed(const std::string& why) override { … }
//     };
//     connections.start(std::make_shared<Echo>(std::move(accepted)));
//
// What was received lies in one piece, so that protocols hand out views of it. What is to be sent is collected in
// out(), and flush() gives the kernel what it takes. Belongs to the thread of its event loop, and to whoever started
// it (connections.hpp) until it is closed.
#pragma once

#include <boost/asio/generic/stream_protocol.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "broker/loop/timer.hpp"
#include "large_messages.hpp"
#include "leat/base/assert.hpp"
#include "leat/record.hpp"
#include "peer.hpp"

namespace leat::broker {

// Logs what became of a client, at most ten times a second: strangers must not be able to fill the disk.
void warn_of_client(const std::string& line);

class Stream : public std::enable_shared_from_this<Stream>,
               private LargeMessages::Holder,
               private LargeMessages::Waiter {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;  // TCP, or a Unix socket.
  using Address = Peer::Address;

  explicit Stream(Accepted accepted);
  ~Stream() override;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Starts to read.
  virtual void begin();
  // Before begin(): bounds what is read of messages that are not whole yet. Up to `small` bytes, a message counts nothing;
  // no more of a message is read before it counts.
  void bound(LargeMessages& unfinished, std::size_t small = LargeMessages::kSmall) noexcept {
    unfinished_ = &unfinished;
    small_ = small;
  }
  // In its place: the client is to be told `why` it is refused, if it asks for something within a second, and is then
  // closed. Clients that come again by themselves, and would not after being told, are closed at once.
  virtual void begin_refused(const char* why) { close(why); }
  // Called once, at the end of the first close().
  void on_end(std::function<void()> call) { on_end_ = std::move(call); }
  // Closes it now: what waits in out() is lost. Calls on_closed(), once.
  void close(const std::string& why);
  // The same, once the caller has returned to the event loop, and the log says why.
  void close_later(const std::string& why);
  bool is_open() const noexcept { return is_open_; }

  const Peer& peer() const noexcept { return peer_; }
  const Address& address() const noexcept { return peer_.address; }
  // For logs.
  std::string peer_name() const { return peer_.name(); }

  // What is to be sent.
  std::string& out() noexcept { return out_; }
  // Sends bytes that others may share, before what is put into out() afterwards. Only while nothing is to be sent.
  void lend(std::shared_ptr<const std::string> bytes) {
    LEAT_ASSERT(unsent() == 0);
    lent_ = std::move(bytes);
  }
  std::size_t unsent() const noexcept { return lent_size() + out_.size() - lent_sent_ - sent_; }
  // Counted from the beginning of the connection: the end of what is in out(), and of what the kernel took.
  std::uint64_t ended_at() const noexcept { return sent_before_ + lent_size() + out_.size(); }
  std::uint64_t sent_bytes() const noexcept { return sent_before_ + lent_sent_ + sent_; }
  // Takes out of out() what lies between two such places, which the kernel has not reached. Nothing was lent.
  void cut(std::uint64_t begin, std::uint64_t end) {
    out_.erase(static_cast<std::size_t>(begin - sent_before_),
               static_cast<std::size_t>(end - begin));
  }
  // Everything was sent, and the kernel would take more.
  bool is_idle() const noexcept { return lent_ == nullptr && out_.empty() && !is_writing_; }
  // The kernel has taken nothing for a second of what is to be sent.
  bool is_stuck() const;
  // Gives the kernel what is in out(). Calls on_sent() when it has taken all, perhaps before it returns.
  void flush();
  // It is paused, though not for want of memory, and its client has hung up meanwhile. What the client sent last was not read.
  bool is_abandoned() { return !keeps_place_ && !waits() && has_hung_up(); }
  // Goes on after kPause. Calls on_bytes() with what is there.
  void resume();
  int descriptor() const noexcept { return descriptor_; }

 protected:
  // Takes what it can off the front of `bytes`. Returns how many bytes must be there, in one piece, before it is called
  // again; kPause: none are read until resume().
  virtual std::size_t on_bytes(Bytes& bytes) = 0;
  // The kernel has taken everything that was in out().
  virtual void on_sent() {}
  // Nothing is read for now, because on_bytes() said so or there is no room for a large message. Not called for a client
  // that close_later() has cut off: what it was to be sent must not reach it.
  virtual void on_paused() {}
  // finish() was called: nothing more should be put into out().
  virtual void on_finishing() {}
  virtual void on_closed(const std::string& why) = 0;

  static constexpr std::size_t kPause = 0;
  // For a client to be told why it is cut off.
  static constexpr std::chrono::milliseconds kLinger{1000};

  // Since the connection began.
  std::uint64_t received_bytes() const noexcept { return received_bytes_; }
  // It is not abandoned meanwhile: a login has its place for as long as it takes, or each connection that hangs up would
  // make room for another guess.
  void keep_place(bool keeps) noexcept { keeps_place_ = keeps; }
  // What on_bytes() has taken of a message is kept, and counts as long as if it still lay here. The rest needs no room.
  void keep_counting(bool counts) noexcept { keeps_counting_ = counts; }
  // Nothing is read before resume().
  bool is_paused() const noexcept { return is_paused_; }
  // Tells later whether the client waits for what it asked. Nothing is read from it meanwhile.
  std::function<bool()> is_there() {
    return [weak = weak_from_this()] {
      const auto self = weak.lock();
      return self && self->is_open() && !self->has_hung_up();
    };
  }
  // The client has sent something that was not read yet, or has hung up.
  bool has_unread();
  // What it has sent and the kernel has received.
  std::size_t unread_bytes();
  // While nothing is read: the client has ended its sending side, and the kernel has received all of it.
  bool has_hung_up();

  Socket::executor_type loop() { return socket_.get_executor(); }

  // Closes the stream unless it is told stop_clock() before.
  void start_clock(std::chrono::milliseconds time, std::string why);
  void stop_clock() { clock_.reset(); }

  // Sends what is in out(), then ends the sending side; closes when the client has done so, or soon.
  void finish(const std::string& why);

 private:
  bool may_receive(std::size_t needed);
  void on_room() override { resume(); }
  std::optional<Origin> origin() const override { return Origin{peer_}; }
  std::uint64_t moved_bytes() const override { return received_bytes_; }
  bool waits_for_client() override { return !has_unread(); }
  void cut_off() override;
  std::size_t lent_size() const noexcept { return lent_ == nullptr ? 0 : lent_->size(); }
  void keep_alive();
  void post_close(const std::string& why);
  void read();
  void receive();
  void make_room();
  void hand_over();
  void write();
  void return_lent();

  Socket socket_;
  const int descriptor_;
  const Peer peer_;
  std::unique_ptr<std::byte[]> received_;  // Null while nothing is there.
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;  // of what was not taken, in received_
  std::size_t end_ = 0;
  std::size_t needed_ = 1;
  std::uint64_t received_bytes_ = 0;
  LargeMessages* unfinished_ = nullptr;  // Null: no bound.
  std::size_t small_ = LargeMessages::kSmall;
  std::shared_ptr<const std::string> lent_;  // Goes before out_; null most of the time.
  std::size_t lent_sent_ = 0;
  std::string out_;
  std::size_t sent_ = 0;                 // of out_
  std::uint64_t sent_before_ = 0;        // Bytes that were in out_ before.
  std::unique_ptr<PatientTimer> clock_;  // Null while it does not run: most connections need none.
  std::string finishing_;                // Why, after finish().
  std::function<void()> on_end_;
  std::chrono::steady_clock::time_point stuck_since_;  // While is_writing_.
  bool is_open_ = true;
  bool is_cut_off_ = false;  // By the broker, with a reason.
  bool is_reading_ = false;
  bool is_paused_ = false;
  bool keeps_place_ = false;
  bool keeps_counting_ = false;
  bool is_writing_ = false;  // Waits until the kernel takes more.
};

}  // namespace leat::broker
