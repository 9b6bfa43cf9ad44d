// `leat sub TOPIC --group NAME`: writes the records that this member of the group gets.
//
// A record is acknowledged once its line was written out whole; what was taken and not written goes
// to the other members, however this process ends.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include "leat/leat.hpp"
#include "sub.hpp"

namespace leat::cli {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kAtOnce = 64;  // Few, so that the others get their share.
constexpr auto kLookAgain = 20ms;    // With --exit, for what others still hold.

Group open_group(const Topic& topic, const SubArguments& arguments, bool waited) {
  GroupArguments options = arguments.group_options;
  options.from = arguments.from;
  // As without a group: everything in a topic that was not there when we began has come since.
  if (waited && options.from == "end") options.from = "beginning";
  Group group = open_or_create_group(topic, *arguments.group, options);
  if (!group.was_created() && !arguments.given_group_options.empty()) {
    tell(
        fmt::format("group '{}' of topic '{}' is there already and stays as it is: {} would count "
                    "only for whoever creates it",
                    group.name(), topic.name(), arguments.given_group_options));
  }
  return group;
}

class GroupReader {
 public:
  GroupReader(const Topic& topic, const Group& group, Member& member, const RecordWriter& writer,
              const StopOnSignal& signals)
      : topic_{topic}, group_{group}, member_{member}, writer_{writer}, output_{signals} {}

  bool is_closed() const noexcept { return output_.is_closed(); }

  // Takes up to `limit` records that are there (or waits for one), and writes them.
  // Returns how many; 0 if the deadline passed or a stop was asked for.
  std::size_t read(std::size_t limit, const Deadline& deadline, const std::stop_token& stop) {
    taken_.clear();
    auto count = member_.receive(taken_, std::min(limit, limit_), deadline, stop);
    if (!count && count.error().code != Errc::timeout && count.error().code != Errc::stopped)
      fail_group(count.error(), topic_.name(), group_.name());
    write();
    return taken_.size();
  }

  // Whether nobody has anything left to do: nothing came between two looks, and at the second one all
  // that had come was acknowledged.
  bool is_done() {
    const GroupInfo info = group_.info();
    const bool done = info.lag == 0 && info.in_flight == 0 && info.offsets == offsets_;
    offsets_ = info.offsets;
    return done;
  }

 private:
  void write() {
    ends_.clear();
    std::size_t written = 0;
    for (std::size_t i = 0; i < taken_.size() && !output_.is_closed(); ++i) {
      writer_.append(taken_[i].record, output_.text());
      ends_.push_back(output_.text().size());
      if (!output_.is_large() && i + 1 < taken_.size()) continue;
      const auto whole =
          std::upper_bound(ends_.begin(), ends_.end(), output_.flush()) - ends_.begin();
      acknowledge(std::span{taken_}.subspan(written, static_cast<std::size_t>(whole)));
      written = i + 1;
      ends_.clear();
    }
  }

  void acknowledge(std::span<const Delivery> written) {
    std::size_t lost = 0;
    for (const Delivery& delivery : written) {
      auto done = member_.acknowledge(delivery);
      if (!done && done.error().code != Errc::lease_lost)
        fail_group(done.error(), topic_.name(), group_.name());
      if (!done) ++lost;
    }
    if (lost != 0) {
      tell(fmt::format("{} record{} took longer than --lease: others get {}, too", lost,
                       lost == 1 ? "" : "s", lost == 1 ? "it" : "them"));
    }
  }

  const Topic& topic_;
  const Group& group_;
  Member& member_;
  const RecordWriter& writer_;
  Output output_;
  const std::size_t limit_ = std::min<std::size_t>(kAtOnce, group_.info().in_flight_limit);
  std::vector<Delivery> taken_;
  std::vector<std::size_t> ends_;  // Of what is in the output: where each record's text ends.
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

void read_as_member(const Topic& topic, const SubArguments& arguments, bool waited,
                    const RecordWriter& writer, const StopOnSignal& signals) {
  const Group group = open_group(topic, arguments, waited);
  auto member = group.join({.name = arguments.member});
  if (!member) fail_group(member.error(), topic.name(), group.name());
  GroupReader reader{topic, group, *member, writer, signals};
  std::uint64_t left = arguments.count.value_or(std::numeric_limits<std::uint64_t>::max());
  while (left > 0 && !reader.is_closed() && !signals.stopped()) {
    const std::size_t limit = left < kAtOnce ? static_cast<std::size_t>(left) : kAtOnce;
    const Deadline deadline = arguments.exit_at_end ? Deadline::immediate() : Deadline::never();
    const std::size_t count = reader.read(limit, deadline, signals.token());
    left -= count;
    if (count != 0 || !arguments.exit_at_end) continue;
    if (reader.is_done()) break;
    (void)member->wait(kLookAgain, signals.token());  // take() says what is wrong, if anything is.
  }
}

}  // namespace leat::cli
