#include "stream.hpp"

#include <fmt/format.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <cstring>

namespace leat::broker {
namespace {

namespace asio = boost::asio;
constexpr std::size_t kRead = LargeMessages::kSmall;
constexpr int kVanished = 120'000;  // ms
// A buffer that the last connection did not need any more.
thread_local std::unique_ptr<std::byte[]> spare;

}  // namespace

void warn_of_client(const std::string& line) {
  constexpr int kMost = 10;
  thread_local std::chrono::steady_clock::time_point since;
  thread_local int lines = 0;
  const auto now = std::chrono::steady_clock::now();
  if (now - since > std::chrono::seconds{1}) {
    if (lines > kMost) spdlog::warn("{} more connections were closed", lines - kMost);
    since = now;
    lines = 0;
  }
  if (++lines <= kMost) spdlog::warn("{}", line);
}

Stream::Stream(Accepted accepted)
    : socket_{std::move(accepted.socket)},
      descriptor_{socket_.native_handle()},
      peer_{std::move(accepted.peer)} {
  boost::system::error_code error;
  socket_.non_blocking(true, error);
  socket_.set_option(asio::ip::tcp::no_delay{true}, error);
  keep_alive();
  // What a client that reads nothing can have in the kernel, beside what its own buffer takes.
  using UnsentLimit = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_NOTSENT_LOWAT>;
  socket_.set_option(UnsentLimit{64 * 1024}, error);
}

Stream::~Stream() = default;

// A client that vanishes without a word, because its machine lost its power or its cable, must not keep for hours what it
// was sent. A client that takes nothing for that long is cut off as well, though its machine is there.
void Stream::keep_alive() {
  using asio::detail::socket_option::integer;
  boost::system::error_code ignored;  // A Unix socket has none of these; its clients do not vanish.
  socket_.set_option(asio::socket_base::keep_alive{true}, ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPIDLE>{60}, ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPINTVL>{10}, ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_KEEPCNT>{6}, ignored);
  socket_.set_option(integer<IPPROTO_TCP, TCP_USER_TIMEOUT>{kVanished}, ignored);
}

void Stream::begin() { read(); }

void Stream::close(const std::string& why) {
  if (!is_open_) return;
  is_open_ = false;
  const auto self = shared_from_this();
  stop_clock();
  if (unfinished_ != nullptr) {
    unfinished_->release(*this);
    unfinished_->leave(*this);
  }
  boost::system::error_code error;
  socket_.close(error);
  const auto on_end = std::exchange(on_end_, nullptr);
  try {
    if (is_cut_off_)
      warn_of_client(fmt::format("{}: connection closed: {}", peer_name(),
                                 finishing_.empty() ? why : finishing_));
    on_closed(why);
  } catch (const std::exception&) {  // No memory; it is taken out of the list in any case.
  }
  if (on_end) on_end();
}

void Stream::close_later(const std::string& why) {
  is_cut_off_ = true;
  post_close(why);
}

void Stream::post_close(const std::string& why) {
  asio::post(loop(), [self = shared_from_this(), why] { self->close(why); });
}

void Stream::finish(const std::string& why) {
  if (!is_open_ || !finishing_.empty()) return;
  finishing_ = why.empty() ? "done" : why;
  is_cut_off_ = !why.empty();
  on_finishing();
  start_clock(kLinger, finishing_);
  flush();
  if (is_open_ && is_paused_) {  // To see the client close.
    is_paused_ = false;
    read();
  }
}

void Stream::start_clock(std::chrono::milliseconds time, std::string why) {
  clock_ = std::make_unique<PatientTimer>(loop());
  clock_->start(time, [this, why = std::move(why)] {
    is_cut_off_ = finishing_ != "done";
    close(why);
  });
}

// --- Receiving -----------------------------------------------------------------------------------------

void Stream::read() {
  if (!is_open_ || is_reading_ || is_paused_) return;
  is_reading_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const auto& error) {
    self->is_reading_ = false;
    if (!self->is_open_) return;
    if (error) return self->close(error.message());
    self->receive();
  });
}

void Stream::receive() {
  if (!finishing_.empty()) begin_ = end_ = 0;  // Thrown away, until the client closes.
  make_room();
  boost::system::error_code error;
  const std::size_t count =
      socket_.read_some(asio::buffer(received_.get() + end_, capacity_ - end_), error);
  if (error == asio::error::would_block || error == asio::error::try_again) return read();
  if (error) return close(error == asio::error::eof ? "closed by the client" : error.message());
  received_bytes_ += count;
  if (!finishing_.empty()) return read();
  end_ += count;
  hand_over();
}

// For at least needed_ bytes in one piece, beginning with those that were not taken.
void Stream::make_room() {
  const std::size_t kept = end_ - begin_;
  const std::size_t wanted = std::max(small_, needed_);
  if (capacity_ < wanted) {
    auto larger = wanted == kRead && spare != nullptr
                      ? std::move(spare)
                      : std::make_unique_for_overwrite<std::byte[]>(wanted);
    if (kept != 0) std::memcpy(larger.get(), received_.get() + begin_, kept);
    received_ = std::move(larger);
    capacity_ = wanted;
  } else if (begin_ != 0 && (capacity_ - end_ < small_ / 2 || capacity_ - begin_ < needed_)) {
    std::memmove(received_.get(), received_.get() + begin_, kept);
  } else {
    return;
  }
  begin_ = 0;
  end_ = kept;
}

void Stream::hand_over() {
  if (end_ - begin_ >= needed_) {
    Bytes bytes{received_.get() + begin_, end_ - begin_};
    needed_ = on_bytes(bytes);
    begin_ = end_ - bytes.size();
    if (unfinished_ != nullptr && !keeps_counting_) unfinished_->release(*this);
    const bool pauses = is_open_ && finishing_.empty() && !may_receive(needed_);
    is_paused_ = pauses;
    // Once there is room, on_bytes() is asked again whether it wants the message: its topic may be full by then.
    if (pauses || needed_ == kPause) needed_ = 1;
    if (pauses && !is_cut_off_) on_paused();
  }
  if (begin_ == end_) {  // Most connections are idle most of the time: they need no buffer then.
    if (capacity_ == kRead && spare == nullptr) spare = std::move(received_);
    received_.reset();
    begin_ = end_ = capacity_ = 0;
  }
  read();
}

bool Stream::may_receive(std::size_t needed) {
  if (needed == kPause) return false;
  return needed <= small_ || keeps_counting_ || unfinished_ == nullptr ||
         unfinished_->take(*this, *this, needed);
}

void Stream::cut_off() {
  close_later("does not go on with a message that it began, and others wait for the memory");
}

void Stream::resume() {
  if (!is_open_ || !is_paused_) return;
  is_paused_ = false;
  if (end_ == begin_) return read();
  hand_over();
}

bool Stream::has_hung_up() {
  if (!is_paused_) return false;
  pollfd polled{socket_.native_handle(), POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) == 1;
}

bool Stream::has_unread() {
  pollfd polled{socket_.native_handle(), POLLIN | POLLRDHUP, 0};
  return ::poll(&polled, 1, 0) == 1;
}

std::size_t Stream::unread_bytes() {
  int bytes = 0;
  return ::ioctl(descriptor_, FIONREAD, &bytes) == 0 ? static_cast<std::size_t>(bytes) : 0;
}

// --- Sending -----------------------------------------------------------------------------------------

void Stream::flush() {
  if (is_open_ && !is_writing_) write();
}

bool Stream::is_stuck() const {
  return is_writing_ && std::chrono::steady_clock::now() - stuck_since_ > std::chrono::seconds{1};
}

void Stream::return_lent() {
  sent_before_ += lent_size();
  lent_ = nullptr;
  lent_sent_ = 0;
}

void Stream::write() {
  while (unsent() != 0) {
    boost::system::error_code error;
    const bool is_lent = lent_ != nullptr;
    const std::string_view next = is_lent ? std::string_view{*lent_}.substr(lent_sent_)
                                          : std::string_view{out_}.substr(sent_);
    const std::size_t count = socket_.write_some(asio::buffer(next), error);
    if (error == asio::error::would_block || error == asio::error::try_again) {
      is_writing_ = true;
      stuck_since_ = std::chrono::steady_clock::now();
      socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const auto& failed) {
        self->is_writing_ = false;
        if (!self->is_open_) return;
        if (failed) return self->close(failed.message());
        self->write();
      });
      return;
    }
    if (error) {
      // Not within the caller, who may go through all streams.
      return post_close(error.message());
    }
    (is_lent ? lent_sent_ : sent_) += count;
    if (is_lent && lent_sent_ == lent_->size()) return_lent();
  }
  return_lent();  // An empty one.
  sent_before_ += out_.size();
  constexpr std::size_t kMostKept = 256 * 1024;
  if (out_.capacity() > kMostKept) {
    std::string{}.swap(out_);
  } else {
    out_.clear();
  }
  sent_ = 0;
  if (!finishing_.empty()) {
    boost::system::error_code ignored;
    socket_.shutdown(Socket::shutdown_send, ignored);
    return;
  }
  on_sent();
}

}  // namespace leat::broker
