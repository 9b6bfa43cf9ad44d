// Outcome<T>, what calls of the broker, of clients and of tools return that can fail: a value, or a Problem told in one
// sentence.
//
//     auto store = TopicStore::open(directory);
//     if (!store) return log_error(store.problem().sentence);
//     store->add(topic);
//
// leat::Result carries a code and an errno, which say too little here: a sentence names the file, the topic, the
// key or the line. The code is leat's own, so that callers can tell `busy` from `exists` without reading. Nothing is thrown for it.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "leat/base/assert.hpp"
#include "leat/result.hpp"

namespace leat {

struct Problem {
  Errc code = Errc::ok;
  std::string sentence;  // Without a full stop; never contains a password.
};

template <class T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : content_{std::in_place_index<0>, std::move(value)} {}
  Outcome(Problem problem) : content_{std::in_place_index<1>, std::move(problem)} {}

  bool has_value() const noexcept { return content_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // Access to the value. Without one this is a bug in the program.
  T& operator*() noexcept {
    LEAT_ASSERT(has_value());
    return *std::get_if<0>(&content_);
  }
  const T& operator*() const noexcept { return *const_cast<Outcome&>(*this); }
  T* operator->() noexcept { return &**this; }
  const T* operator->() const noexcept { return &**this; }

  // Only if there is no value.
  const Problem& problem() const noexcept {
    LEAT_ASSERT(!has_value());
    return *std::get_if<1>(&content_);
  }

 private:
  std::variant<T, Problem> content_;
};

// Success without a value, or a Problem.
template <>
class [[nodiscard]] Outcome<void> {
 public:
  Outcome() = default;
  Outcome(Problem problem) : problem_{std::move(problem)} {}
  bool has_value() const noexcept { return problem_.code == Errc::ok; }
  explicit operator bool() const noexcept { return has_value(); }
  const Problem& problem() const noexcept {
    LEAT_ASSERT(!has_value());
    return problem_;
  }

 private:
  Problem problem_;
};

}  // namespace leat
