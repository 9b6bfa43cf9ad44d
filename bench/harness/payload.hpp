// The content of measured records, made so that a wrong, torn or stale one is noticed: the record's
// sequence number at both ends and, if all bytes are verified, a body that differs from record to
// record.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace leat::bench {

enum class Verify { ends, full };

// memcpy for a size known only at run time. For records of up to 1 KiB this loop takes 1 to 8 ns less
// than the call into libc.
inline void copy_bytes(std::byte* to, const std::byte* from, std::size_t size) noexcept {
  struct Piece {
    std::uint64_t low, high;
  };
  if (size >= sizeof(Piece)) {
    Piece piece;
    Piece last;  // Read first and written last: it overlaps the piece before it.
    std::memcpy(&last, from + size - sizeof last, sizeof last);
    std::byte* const end = to + size - sizeof last;
    for (; to < end; to += sizeof piece, from += sizeof piece) {
      std::memcpy(&piece, from, sizeof piece);
      std::memcpy(to, &piece, sizeof piece);
    }
    std::memcpy(end, &last, sizeof last);
  } else if (size >= sizeof(std::uint64_t)) {
    std::uint64_t first, last;
    std::memcpy(&first, from, sizeof first);
    std::memcpy(&last, from + size - sizeof last, sizeof last);
    std::memcpy(to, &first, sizeof first);
    std::memcpy(to + size - sizeof last, &last, sizeof last);
  } else {
    for (std::size_t i = 0; i < size; ++i) to[i] = from[i];
  }
}

// Writes and checks payloads of one size. Each process makes its own.
class Payload {
 public:
  Payload(std::size_t size, Verify verify)
      : size_{size}, verify_{verify}, pattern_(size + kBodies * kBodyShift) {
    std::uint64_t state = 0x9e3779b97f4a7c15u;  // Any odd number; the same in every process.
    for (std::byte& byte : pattern_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      byte = static_cast<std::byte>(state >> 56);
    }
  }

  std::size_t size() const noexcept { return size_; }

  // Writes the payload of this sequence number.
  void write(std::byte* to, std::uint64_t sequence) const noexcept {
    if (size_ > 2 * kEnd) copy_bytes(to + kEnd, body(sequence), size_ - 2 * kEnd);
    stamp(to, sequence);
  }

  // Turns the payload of an earlier sequence number, which `to` must hold, into that of this one.
  // Cheaper than write().
  void rewrite(std::byte* to, std::uint64_t sequence) const noexcept {
    if (verify_ == Verify::full) {
      write(to, sequence);
    } else {
      stamp(to, sequence);
    }
  }

  // Whether this is what write() leaves for this sequence number.
  bool check(const std::byte* from, std::uint64_t sequence) const noexcept {
    if (size_ == 0) return true;  // There may be no memory at all.
    if (size_ < kEnd) return std::memcmp(from, &sequence, size_) == 0;
    std::uint64_t first = sequence;
    std::uint64_t last;
    if (size_ >= 2 * kEnd) std::memcpy(&first, from, kEnd);
    std::memcpy(&last, from + size_ - kEnd, kEnd);
    if (((first ^ sequence) | (last ^ sequence)) != 0) return false;
    if (verify_ == Verify::ends || size_ <= 2 * kEnd) return true;
    return std::memcmp(from + kEnd, body(sequence), size_ - 2 * kEnd) == 0;
  }

 private:
  static constexpr std::size_t kEnd = sizeof(std::uint64_t);
  static constexpr std::size_t kBodies =
      61;  // Prime, so that no ring's length is a multiple of it.
  static constexpr std::size_t kBodyShift = 16;

  void stamp(std::byte* to, std::uint64_t sequence) const noexcept {
    if (size_ < kEnd) {
      copy_bytes(to, reinterpret_cast<const std::byte*>(&sequence), size_);
      return;
    }
    std::memcpy(to, &sequence, kEnd);
    std::memcpy(to + size_ - kEnd, &sequence, kEnd);  // Wins where they overlap.
  }

  const std::byte* body(std::uint64_t sequence) const noexcept {
    return pattern_.data() + (verify_ == Verify::full ? sequence % kBodies * kBodyShift : 0);
  }

  std::size_t size_;
  Verify verify_;
  std::vector<std::byte> pattern_;
};

// The payloads of the sequence numbers first, first + step, …, prepared in the sender's own memory to be
// copied from there.
class OutgoingPayloads {
 public:
  explicit OutgoingPayloads(const Payload& payload, std::uint64_t first = 0, std::uint64_t step = 1)
      : payload_{payload}, step_{step}, ahead_{first} {
    for (auto& buffer : buffers_) {
      buffer.resize(payload.size());
      payload.write(buffer.data(), 0);
    }
    for (std::uint64_t i = 0; i < kAhead; ++i, ahead_ += step_) {
      payload.rewrite(buffers_[i].data(), ahead_);
    }
  }

  // The payload of the next sequence number; valid for this call and the next three. Always inline, so
  // that two builds differ by what is measured and not by whether the compiler inlined this.
  [[gnu::always_inline]] std::span<const std::byte> next() noexcept {
    // Written some records ahead: reading bytes right after they were stored would stall.
    payload_.rewrite(buffers_[(next_ + kAhead) % kBuffers].data(), ahead_);
    ahead_ += step_;
    return buffers_[next_++ % kBuffers];
  }

 private:
  static constexpr std::uint64_t kBuffers = 8;
  static constexpr std::uint64_t kAhead = 4;

  const Payload& payload_;
  std::uint64_t step_;
  std::uint64_t ahead_;  // The sequence number to be written next.
  std::array<std::vector<std::byte>, kBuffers> buffers_;
  std::uint64_t next_ = 0;
};

}  // namespace leat::bench
