// What a broker's clients send to a topic: collected into batches, so that one claim is for hundreds of messages.
//
//     for (…) if (intake.add(message) == Intake::Added::full) break;     // not added
//     if (intake.publish() == Intake::Added::full) intake.call_when_room([…] { connection.resume(); });
//
// Never waits: while the topic is full, what was added stays in the batch, and no more is. Belongs to the thread of its event
// loop.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "broker/outcome.hpp"
#include "broker/watch.hpp"
#include "leat/leat.hpp"

namespace leat::broker {

class Intake {
 public:
  enum class Added { yes, full, too_large, failed };

  // `on_failure` is called once, when nothing can be published any more.
  static Outcome<std::unique_ptr<Intake>> open(boost::asio::io_context& loop, const Topic& topic,
                                               std::function<void(Error)> on_failure);

  Added add(Bytes message);
  // Makes what was added visible.
  Added publish();
  // After `full`: calls when it may have changed. Once.
  void call_when_room(std::function<void()> call) { waiting_.push_back(std::move(call)); }

  std::size_t largest() const noexcept { return publisher_.max_record_size(); }

 private:
  Intake(Publisher publisher, std::function<void(Error)> on_failure)
      : publisher_{std::move(publisher)},
        batch_{std::move(*publisher_.batch())},
        on_failure_{std::move(on_failure)} {}
  void on_room();
  Added fail(Error error);

  Publisher publisher_;
  Batch batch_;
  std::function<void(Error)> on_failure_;
  std::optional<Watch> room_;
  std::vector<std::function<void()>> waiting_;
  bool is_full_ = false;
  bool has_failed_ = false;
};

}  // namespace leat::broker
