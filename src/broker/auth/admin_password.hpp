// The administrator's first password, which the broker makes itself.
//
//     auto made = ensure_administrator(store, [&](std::string_view password) {
//       if (::isatty(STDOUT_FILENO)) return print(password);
//       return write_admin_password(store.directory(), password);
//     });
//
// It is shown before its verifier is stored, so that a broker that dies between the two has not lost it: the next
// start makes another one. After that nobody can show it again. Used by one thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "broker/crypto/secret.hpp"
#include "broker/store/topic_store.hpp"

namespace leat::broker {

inline constexpr char kAdminPasswordFile[] = "admin-password";

// 24 random letters and digits: 142 bits.
Secret random_password();

// Does nothing if there is an administrator, and returns false. Otherwise makes a password, calls `show`, stores
// the verifier, and returns true. If `show` fails, nothing is stored. Takes the time of a hash (40 ms).
Outcome<bool> ensure_administrator(TopicStore& store,
                                   const std::function<Outcome<void>(std::string_view)>& show);

// Takes the first line of a file as the administrator's password, instead of the one before, if there was one. Takes the
// time of two hashes.
//   not_found, permission, io_error   the file cannot be read
//   invalid_argument                  it is empty, or the line is longer than kMaxPassword
Outcome<void> take_admin_password(TopicStore& store, const std::string& path);

// Writes the password and a line feed to `admin-password` in a directory, readable for its owner only. The file
// is on stable storage when this returns, and replaces an older one.
Outcome<void> write_admin_password(const std::string& directory, std::string_view password);

}  // namespace leat::broker
