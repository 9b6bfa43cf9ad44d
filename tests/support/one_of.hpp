// How many of many alike cases a test tries.
#pragma once

namespace leat::testing {

// A test that tries every byte, or many seeds, tries one in so many under a sanitizer, where each case takes 5 to 20
// times as long. Without a sanitizer it tries all.
inline constexpr int kOneOf = LEAT_TEST_SANITIZED ? 7 : 1;

}  // namespace leat::testing
