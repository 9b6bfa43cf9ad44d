#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "cli/topic/room_holders.hpp"
#include "json_record.hpp"
#include "leat/admin.hpp"
#include "pub.hpp"

namespace leat::cli {
namespace {

// "\t" typed in a shell without $'' means a tab.
std::string unescape_separator(const std::string& text) { return text == "\\t" ? "\t" : text; }

Publisher open_publisher(const Topic& topic, const PubArguments& arguments) {
  PublisherOptions options;
  // settle() waits for stable storage, for many records at once.
  options.acknowledge = Stage::committed;
  if (arguments.partition) {
    options.partition = partition_of(topic, *arguments.partition);
  }
  auto publisher = topic.publisher(options);
  if (publisher) return std::move(*publisher);
  if (publisher.error().code == Errc::busy) {
    std::string who;
    for (const ParticipantInfo& one : topic.info().participants) {
      if (one.role.ends_with("publisher")) who += fmt::format(" (pid {})", one.pid);
    }
    throw Failure{
        kExitNotThere,
        fmt::format("topic '{}' takes one publisher at a time and has one{}: end it first",
                    topic.name(), who)};
  }
  fail(publisher.error(), topic.name());
}

// Which topic would take a record of this size; ends a sentence.
std::string topic_for(std::uint64_t size) {
  constexpr std::uint64_t kMost = TopicLimits::kMaxSegment;
  if (size > max_record_bytes(kMost))
    return fmt::format("no topic takes more than {}", number_text(max_record_bytes(kMost)));
  std::uint64_t segment = TopicLimits::kMinSegment;
  while (max_record_bytes(segment) < size) segment *= 2;
  const std::string capacity = 2 * segment > TopicOptions::kDefaultCapacity
                                   ? " --capacity " + size_argument(2 * segment)
                                   : "";
  return fmt::format("one that `leat topic create` makes with --segment-size {}{} takes it",
                     size_argument(segment), capacity);
}

}  // namespace

const char* PubArguments::unit() const noexcept {
  if (!messages.empty()) return "message";
  const bool has_lines = !generate_bytes && !json && !null && !length_prefixed;
  return has_lines && delimiter == "\\n" ? "line" : "record";
}

std::vector<Header> parse_headers(const std::vector<std::string>& texts) {
  std::vector<Header> headers;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw Failure{kExitUsage, fmt::format("--header: '{}' is not name=value", text)};
    }
    const std::string_view view{text};
    headers.push_back({view.substr(0, equals), view.substr(equals + 1)});
  }
  return headers;
}

TopicSender::TopicSender(const Topic& topic, const PubArguments& arguments,
                         const StopOnSignal& signals)
    : Sender{arguments},
      topic_{topic},
      headers_{parse_headers(arguments.headers)},
      separator_{unescape_separator(arguments.key_separator)},
      publisher_{open_publisher(topic, arguments)},
      stop_{signals.token()} {
  if (arguments.partition) partition_ = static_cast<std::uint32_t>(*arguments.partition);
  const TopicInfo info = topic.info();
  if (info.timestamps) time_size_ = record_bytes(NewRecord{}, true);
  const std::optional<DurableInfo>& durable = info.durable;
  if (arguments.sync && !durable)
    throw Failure{kExitUsage,
                  fmt::format("--sync: topic '{}' is not durable, so it is never on stable storage",
                              topic.name())};
  syncs_ = arguments.sync || (durable && durable->durability == Durability::fsync);
}

void TopicSender::settle() {
  if (!syncs_) return;
  for (const Deadline end = give_up_at();;) {
    auto flushed = publisher_.flush(end.at_most_ns(kPatience.count()), stop_);
    if (flushed || stop_.stop_requested()) return;
    const bool is_slow = flushed.error() == Errc::not_durable && flushed.error().system_error == 0;
    if (!is_slow || end.passed()) fail_to_sync(flushed.error(), topic_.name(), what_was_sent());
    say(
        fmt::format("topic '{0}' has the records, and waits for the disk: `leat topic info {0}` "
                    "shows its state",
                    topic_.name()));
  }
}

bool TopicSender::send(std::string_view text) {
  if (arguments_.json) return send_json(text);
  NewRecord record{.headers = headers_, .value = text, .partition = partition_};
  // As kcat: without a separator in it, the line has no key.
  const std::size_t at = separator_.empty() ? std::string_view::npos : text.find(separator_);
  if (at != std::string_view::npos) {
    record.key = Bytes{text.substr(0, at)};
    record.value = text.substr(at + separator_.size());
  }
  return publish(record);
}

bool TopicSender::send_json(std::string_view text) {
  JsonRecord parsed;
  try {
    parsed = JsonRecord::parse(text);
  } catch (const Failure& refused) {
    throw Failure{refused.exit_code(),
                  fmt::format("record {} {}{}", sent_ + 1, refused.what(), what_was_sent())};
  }
  std::vector<Header> headers;
  for (const auto& [name, value] : parsed.headers) headers.push_back({name, Bytes{value}});
  headers.insert(headers.end(), headers_.begin(), headers_.end());
  NewRecord record{.headers = headers, .value = parsed.value, .partition = partition_};
  if (parsed.key) record.key = Bytes{*parsed.key};
  return publish(record);
}

bool TopicSender::publish(const NewRecord& record) {
  while (true) {
    auto offset = publisher_.publish(record, Deadline::immediate(), stop_);
    if (offset.error() == Errc::full) offset = wait_and_publish(record);
    if (offset) {
      ++sent_;
      return true;
    }
    switch (offset.error().code) {
      case Errc::stopped: return false;
      // This process was suspended for too long: the record was given up, and is published anew.
      case Errc::revoked: break;
      case Errc::too_large:
        throw too_large(record_bytes(record, time_size_ != 0) - time_size_, false);
      case Errc::full: throw Failure{kExitFull, what_is_full(record) + what_was_sent()};
      default: fail(offset.error(), topic_.name(), what_was_sent());
    }
  }
}

Result<std::uint64_t> TopicSender::wait_and_publish(const NewRecord& record) {
  for (const Deadline end = give_up_at();;) {
    auto offset = publisher_.publish(record, end.at_most_ns(kPatience.count()), stop_);
    if (offset.error() != Errc::timeout) return offset;
    const std::string sentence = what_is_full(record);
    if (end.passed()) throw gave_up(sentence);
    say(sentence);
  }
}

std::string TopicSender::what_is_full(const NewRecord& record) const {
  const TopicInfo info = topic_.info();
  if (info.retain_all)
    return fmt::format(
        "topic '{}' is full and keeps all its records (--retain all): create one with a larger "
        "--capacity",
        topic_.name());
  std::vector<RoomHolder> holders;
  const bool is_known = record.partition || !record.key;
  for (std::uint32_t i = 0; i < (is_known ? 1 : topic_.partitions()); ++i) {
    auto some = publisher_.waiting_for(is_known ? record.partition : i);
    if (some) std::ranges::move(*some, std::back_inserter(holders));
  }
  if (holders.empty())
    return fmt::format("topic '{0}' is full: `leat topic info {0}` shows why", topic_.name());
  const HoldersText text = holders_text(topic_.name(), std::move(holders));
  return fmt::format(
      "topic '{}' is full and {} {}: {}", topic_.name(),
      info.policy == Policy::fail ? "does not wait (--policy fail) for" : "waits for", text.who,
      text.remedy);
}

Failure TopicSender::too_large(std::uint64_t size, bool or_more) const {
  const bool is_plain = !arguments_.json && separator_.empty() && headers_.empty();
  return Failure{
      kExitUsage,
      fmt::format(
          "{} {} is too long: {} bytes{}{}, and topic '{}' takes at most {} bytes a record; "
          "{}{}, the {}s after it were not",
          arguments_.unit(), sent_ + 1, number_text(size), or_more ? " or more" : "",
          is_plain ? "" : " with key and headers", topic_.name(), number_text(limit()),
          topic_for(size + time_size_), what_was_sent(), arguments_.unit())};
}

void Sender::say(const std::string& sentence) {
  if (sentence == said_) return;
  print_notice(sentence);
  said_ = sentence;
}

Failure Sender::gave_up(const std::string& sentence) const {
  return Failure{kExitFull,
                 fmt::format("nothing could be published for {}: {}{}",
                             duration_text(arguments_.timeout), sentence, what_was_sent())};
}

std::string Sender::what_was_sent() const {
  return fmt::format("; {} record{} sent before", number_text(sent_),
                     sent_ == 1 ? " was" : "s were");
}

std::string Sender::what_was_published() const {
  return fmt::format("{} {}{} published", number_text(sent_), arguments_.unit(),
                     sent_ == 1 ? " was" : "s were");
}

}  // namespace leat::cli
