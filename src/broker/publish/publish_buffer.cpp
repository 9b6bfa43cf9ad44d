#include "publish_buffer.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace leat::broker {
namespace {

// Why a durable topic takes no more: its archiver, in this process or another one, cannot write.
std::string why_no_room(Error error) {
  if (error.system_error == 0 || error.system_error == ENOSPC) return "the disk is full";
  return std::string{"its files cannot be written ("} + std::strerror(error.system_error) + ')';
}

}  // namespace

Outcome<Publisher> PublishBuffer::open_publisher(const Topic& topic, const Options& options) {
  // Nobody waits for the disk here: a client of ZeroMQ is told nothing anyway.
  PublisherOptions own{.partition = options.partition};
  if (options.is_durable) own.acknowledge = Stage::committed;
  auto publisher = topic.publisher(own);
  if (!publisher)
    return Problem{publisher.error().code,
                   "cannot publish to " + topic.name() + ": " + describe(publisher.error())};
  if (auto fd = publisher->room_fd(); !fd)
    return Problem{fd.error().code,
                   "cannot wait for room in " + topic.name() + ": " + describe(fd.error())};
  return std::move(*publisher);
}

PublishBuffer::PublishBuffer(boost::asio::io_context& loop, std::string topic, Publisher publisher,
                             std::function<void(Error)> on_failure, OnPublished on_published)
    : loop_{loop},
      name_{std::move(topic)},
      later_{loop},
      calm_{loop},
      publisher_{std::move(publisher)},
      batch_{std::move(*publisher_.batch())},
      on_failure_{std::move(on_failure)},
      on_published_{std::move(on_published)},
      room_{loop, *publisher_.room_fd(), [this] { on_room(); }} {}

PublishBuffer::Added PublishBuffer::add(Bytes message) {
  if (has_failed_) return Added::failed;
  if (message.size() > largest()) return Added::too_large;
  const Added added = is_full_ ? Added::full : add_to_batch(message);
  if (added == Added::full) kept_.emplace_back(message.text());
  return added;
}

// `full`: not added.
PublishBuffer::Added PublishBuffer::add_to_batch(Bytes message) {
  if (!batch_.add(message)) {
    if (const Added published = publish(); published != Added::yes) return published;
    if (!batch_.add(message)) return Added::too_large;
  }
  batch_bytes_ += message.size();
  return Added::yes;
}

PublishBuffer::Added PublishBuffer::publish() {
  if (has_failed_) return Added::failed;
  if (batch_.count() == 0) return Added::yes;
  if (is_full_) return Added::full;
  const std::size_t bytes = std::exchange(batch_bytes_, 0);
  std::uint64_t first = 0;
  const Added added = commit(batch_, bytes, first);
  if (added != Added::yes) batch_bytes_ += bytes;
  return added;
}

PublishBuffer::Added PublishBuffer::commit(Batch& batch, std::size_t bytes, std::uint64_t& first) {
  const std::uint64_t records = batch.count();
  auto published = batch.commit(Deadline::immediate());
  if (published) {
    tries_ = 0;
    if (disk_is_full_ && !calm_.is_running()) say_later_that_disk_has_room();
    first = *published;
    on_published_(first, first + records, bytes);
    return Added::yes;
  }
  switch (published.error().code) {
    case Errc::no_space:  // Durable topics: until the disk has room.
      calm_.stop();
      if (!std::exchange(disk_is_full_, true))
        spdlog::warn("topic {}: {}; its producers wait", name_, why_no_room(published.error()));
      [[fallthrough]];
    case Errc::full:
    case Errc::timeout:
    case Errc::would_deadlock:  // Our own subscriber reads when this thread is back in its loop.
      is_full_ = true;
      wait_for_room();
      return Added::full;
    default: return fail(published.error());
  }
}

void PublishBuffer::add_unit(std::span<const NewRecord> records, OnUnit done) {
  if (has_failed_) return answer(std::move(done), Problem{Errc::closed, "the topic has failed"});
  if (records.empty())
    return answer(std::move(done), Problem{Errc::invalid_argument, "a unit has no records"});
  Unit unit{std::move(*publisher_.batch()), 0, std::move(done)};
  for (const NewRecord& record : records) {
    const auto added = unit.batch.add(record);
    if (!added) return answer(std::move(unit.done), problem_of_unit(added.error()));
    unit.bytes += record.value.size();
  }
  units_.push_back(std::move(unit));
  if (!is_committing_ && publish() == Added::yes) commit_units();
}

Problem PublishBuffer::problem_of_unit(Error error) const {
  if (error.code != Errc::too_large) return {error.code, describe(error)};
  return {error.code, fmt::format("the records are larger than {} bytes together, the limit of {}",
                                  largest(), name_)};
}

void PublishBuffer::commit_units() {
  is_committing_ = true;
  while (!units_.empty() && !is_full_ && !has_failed_) {
    Unit& unit = units_.front();
    std::uint64_t first = 0;
    if (commit(unit.batch, unit.bytes, first) != Added::yes) break;
    answer(std::move(unit.done), first);
    units_.pop_front();
  }
  is_committing_ = false;
}

void PublishBuffer::answer(OnUnit done, Outcome<std::uint64_t> outcome) {
  boost::asio::post(loop_, [weak = std::weak_ptr{is_alive_}, done = std::move(done),
                            outcome = std::move(outcome)] {
    if (!weak.expired()) done(outcome);
  });
}

std::size_t PublishBuffer::waiting() const noexcept {
  std::size_t records = batch_.count() + kept_.size();
  for (const Unit& unit : units_) records += unit.batch.count();
  return records;
}

// At the limit, a disk may be full and not full many times a second.
void PublishBuffer::say_later_that_disk_has_room() {
  calm_.start(std::chrono::seconds{1}, [this] {
    disk_is_full_ = false;
    spdlog::info("topic {}: the disk has room again; its producers go on", name_);
  });
}

// While there is none, the descriptor tells to look every 2 ms. That is too often for a topic that stays full.
void PublishBuffer::wait_for_room() {
  constexpr int kSoon = 20;
  if (++tries_ < kSoon) return room_.arm();
  later_.start(std::chrono::milliseconds{std::min(tries_, 200)}, [this] { room_.arm(); });
}

void PublishBuffer::on_room() {
  is_full_ = false;
  for (; !kept_.empty(); kept_.pop_front()) {
    const Added added = add_to_batch(Bytes{kept_.front()});
    if (added == Added::full || added == Added::failed) return;
    if (added == Added::too_large)  // Cannot be: add() has looked at the size.
      spdlog::error("a message of {} bytes is lost: no batch holds it", kept_.front().size());
  }
  if (publish() != Added::yes) return;
  commit_units();
  if (!is_full_) waiting_.call_all();
}

PublishBuffer::Added PublishBuffer::fail(Error error) {
  has_failed_ = true;
  on_failure_(error);
  return Added::failed;
}

}  // namespace leat::broker
