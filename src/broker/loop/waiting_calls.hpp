// Calls that wait for something to happen, in the order in which they came. Who waits no longer takes its call back, so
// that no more wait than there are clients.
//
//     WaitingCalls waiting;
//     WaitingCalls::Place place = waiting.add([…] { connection.resume(); });   // until `place` is destroyed
//     waiting.call_all();                                                      // once each
//
// Belongs to the thread of its event loop.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>

namespace leat::broker {

class WaitingCalls {
  using Calls = std::map<std::uint64_t, std::function<void()>>;

 public:
  // May outlive the object that it is a place of.
  class Place {
   public:
    Place() = default;
    Place(Place&& other) noexcept
        : calls_{std::exchange(other.calls_, {})}, number_{other.number_} {}
    Place& operator=(Place&& other) noexcept {
      leave();
      calls_ = std::exchange(other.calls_, {});
      number_ = other.number_;
      return *this;
    }
    ~Place() { leave(); }

   private:
    friend class WaitingCalls;
    Place(const std::shared_ptr<Calls>& calls, std::uint64_t number)
        : calls_{calls}, number_{number} {}
    void leave() noexcept {
      if (const auto calls = calls_.lock()) calls->erase(number_);
    }

    std::weak_ptr<Calls> calls_;
    std::uint64_t number_ = 0;
  };

  [[nodiscard]] Place add(std::function<void()> call) {
    calls_->emplace(++last_, std::move(call));
    return {calls_, last_};
  }
  bool empty() const noexcept { return calls_->empty(); }
  std::size_t size() const noexcept { return calls_->size(); }
  // A call may add others, which wait for the next time, take others back, and destroy this object.
  void call_all() {
    const std::uint64_t last = last_;
    const std::shared_ptr<Calls> calls = calls_;
    while (!calls->empty() && calls->begin()->first <= last) {
      const auto next = calls->extract(calls->begin());
      next.mapped()();
    }
  }

 private:
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
  std::uint64_t last_ = 0;
};

}  // namespace leat::broker
