// A stored user callback: like std::function, but cheaper to compile.
//
//     Callback<void(int)> on_number = [&](int number) { … };
//     if (on_number) on_number(7);
//
// Copies share one function object. A call may assign to the callback that it was made through.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "leat/base/config.hpp"

namespace leat::inline v0 {

template <class Signature>
class Callback;

template <class R, class... Arguments>
class Callback<R(Arguments...)> {
 public:
  Callback() noexcept = default;
  template <class Call>
    requires(!std::is_same_v<std::remove_cvref_t<Call>, Callback> &&
             std::is_invocable_r_v<R, Call&, Arguments...>)
  Callback(Call&& call) {
    using Object = std::remove_cvref_t<Call>;
    if constexpr (std::is_constructible_v<bool, Object&> && !std::is_convertible_v<Object&, bool>) {
      if (!static_cast<bool>(call)) return;  // An empty std::function.
    }
    object_ = std::make_shared<Object>(std::forward<Call>(call));
    call_ = [](void* object, Arguments... arguments) -> R {
      return (*static_cast<Object*>(object))(std::forward<Arguments>(arguments)...);
    };
  }

  explicit operator bool() const noexcept { return call_ != nullptr; }
  // The callback must not be empty.
  R operator()(Arguments... arguments) const {
    const std::shared_ptr<void> kept = object_;
    return call_(kept.get(), std::forward<Arguments>(arguments)...);
  }

 private:
  std::shared_ptr<void> object_;
  R (*call_)(void*, Arguments...) = nullptr;
};

}  // namespace leat::inline v0
