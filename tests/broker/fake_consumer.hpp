// For tests of dispatchers: a connection whose kernel takes what the test says.
#pragma once

#include <cstdint>
#include <string>

#include "broker/delivery/group_dispatcher.hpp"

namespace leat::broker {

class FakeConsumer final : public GroupConsumer {
 public:
  explicit FakeConsumer(GroupDispatcher& dispatcher, bool takes_all = false,
                        bool acknowledges = false)
      : dispatcher_{dispatcher}, takes_all_{takes_all}, acknowledges_{acknowledges} {}

  void append(const Record& record) override {
    out_ += std::string{record.text()} + "\n";
    ++appended_records;
  }
  void send() override {
    if (takes_all_) {
      take(out_.size() - sent_);
    } else {
      is_waiting_ = true;
    }
  }
  void take_back(std::uint64_t begin, std::uint64_t end) override {
    out_.erase(begin - sent_before_, end - begin);
  }
  std::uint64_t appended() const override { return sent_before_ + out_.size(); }
  std::uint64_t sent() const override { return sent_before_ + sent_; }
  bool is_idle() const override { return out_.empty() && !is_waiting_; }
  bool is_stuck() const override { return is_stuck_; }
  bool acknowledges() const override { return acknowledges_; }
  void cut_off() override {}

  // The kernel takes so many bytes.
  void take(std::size_t bytes) {
    received += out_.substr(sent_, bytes);
    sent_ += bytes;
    if (sent_ != out_.size()) return;
    sent_before_ += sent_;
    out_.clear();
    sent_ = 0;
    is_waiting_ = is_stuck_ = false;
    dispatcher_.on_sent(*this);
  }
  // Something that is no record.
  void get_stuck() { is_stuck_ = true; }
  void answer(const std::string& text) { out_ += text; }
  std::string left() const { return out_.substr(sent_); }

  std::string received;
  int appended_records = 0;

 private:
  GroupDispatcher& dispatcher_;
  std::string out_;
  std::size_t sent_ = 0;
  std::uint64_t sent_before_ = 0;
  bool is_waiting_ = false;  // for the kernel
  bool is_stuck_ = false;
  bool takes_all_;
  bool acknowledges_;
};

}  // namespace leat::broker
