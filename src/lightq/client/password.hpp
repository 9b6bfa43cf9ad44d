// Passwords without the command line, where everybody would see them.
//
//     Outcome<std::string> password = password_from_file("/run/secrets/broker");
//     if (!password) return password.problem();
//     Outcome<os::Fd> pipe = password_pipe(*password);    // "/dev/fd/N" for `leat serve --admin-password-file`
#pragma once

#include <string>

#include "leat/os/os.hpp"
#include "outcome/outcome.hpp"

namespace leat::lightq {

inline constexpr std::size_t kMaxPassword = 1024;  // Bytes; the broker takes no longer ones.

// The first line of a file, or of a pipe.
//   not_found, permission, io_error   the file cannot be read
//   invalid_argument                  it is empty, or longer than kMaxPassword
Outcome<std::string> password_from_file(const std::string& path);

// The reading end of a pipe that has the password and a line feed in it. It is not inherited by programs that are
// executed, unless the caller says so.
//   invalid_argument   it is empty, longer than kMaxPassword, or has several lines
//   io_error
Outcome<os::Fd> password_pipe(const std::string& password);

}  // namespace leat::lightq
