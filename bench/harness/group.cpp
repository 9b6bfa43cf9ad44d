#include "group.hpp"

#include <fmt/format.h>

#include <bit>

namespace leat::bench {

Receipts::Receipts(std::uint32_t receivers, std::uint32_t senders, std::uint64_t messages_of_each)
    : senders_{senders},
      messages_of_each_{messages_of_each},
      words_of_each_{static_cast<std::size_t>(messages_of_each / 64 + 1)} {
  for (std::uint32_t i = 0; i < receivers; ++i) {
    bits_.push_back(std::make_unique<SharedMemory>(senders * words_of_each_ * 8));
  }
}

bool Receipts::note(std::uint32_t receiver, std::uint64_t sender,
                    std::uint64_t message) const noexcept {
  if (sender >= senders_ || message >= messages_of_each_) return false;
  std::uint64_t& word = words(receiver)[sender * words_of_each_ + message / 64];
  const std::uint64_t bit = std::uint64_t{1} << (message % 64);
  if ((word & bit) != 0) return false;
  word |= bit;
  return true;
}

void Receipts::check() const {
  for (std::uint64_t sender = 0; sender < senders_; ++sender) {
    for (std::uint64_t message = 0; message < messages_of_each_; message += 64) {
      const std::uint64_t left = messages_of_each_ - message;
      const std::uint64_t wanted = left >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << left) - 1;
      std::uint64_t once = 0, twice = 0;
      for (std::uint32_t receiver = 0; receiver < bits_.size(); ++receiver) {
        const std::uint64_t word = words(receiver)[sender * words_of_each_ + message / 64];
        twice |= once & word;
        once |= word;
      }
      const auto complain = [&](std::uint64_t wrong, const char* by) {
        if (wrong == 0) return;
        throw Failure(fmt::format("message {} of sender {} was received by {}",
                                  message + static_cast<std::uint64_t>(std::countr_zero(wrong)),
                                  sender, by));
      };
      complain(twice, "two receivers");
      complain(wanted & ~once, "nobody");
    }
  }
}

void Receipts::set_count(std::uint32_t receiver, std::uint64_t count) const noexcept {
  // relaxed, as the loads: only the counts themselves matter.
  (*counts_)[receiver].value.store(count, std::memory_order_relaxed);
}

std::uint64_t Receipts::count_of_all() const noexcept {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < bits_.size(); ++i) {
    sum += (*counts_)[i].value.load(std::memory_order_relaxed);
  }
  return sum;
}

void Checker::fail_size(std::size_t size) const {
  throw Failure(fmt::format("a message has {} bytes instead of {}", size, payload_.size()));
}

void Checker::fail_content(std::uint64_t sequence) {
  throw Failure(fmt::format("message {} has the wrong content", sequence));
}

void Checker::fail_receipt(std::uint64_t sender, std::uint64_t index) {
  throw Failure(
      fmt::format("message {} of sender {} arrived twice, or was never sent", index, sender));
}

}  // namespace leat::bench
