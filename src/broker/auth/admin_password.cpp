#include "admin_password.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "leat/os/os.hpp"

namespace leat::broker {
namespace {

constexpr std::size_t kLength = 24;
constexpr char kLetters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ::ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace

Secret random_password() {
  start_sodium();
  char password[kLength];
  for (char& letter : password) letter = kLetters[::randombytes_uniform(std::size(kLetters) - 1)];
  Secret secret{{password, kLength}};
  ::sodium_memzero(password, sizeof password);
  return secret;
}

Outcome<bool> ensure_administrator(TopicStore& store,
                                   const std::function<Outcome<void>(std::string_view)>& show) {
  const auto known = store.administrator();
  if (!known) return known.problem();
  if (*known) return false;
  const Secret password = random_password();
  const auto verifier = make_verifier(password.text());
  if (!verifier) return verifier.problem();
  if (const auto shown = show(password.text()); !shown) return shown.problem();
  if (const auto stored = store.set_administrator(*verifier); !stored) return stored.problem();
  return true;
}

Outcome<void> take_admin_password(TopicStore& store, const std::string& path) {
  const auto fail = [&](Error error) {
    return Problem{error.code, fmt::format("admin_password_file: cannot read '{}': {}", path,
                                           std::strerror(error.system_error))};
  };
  const leat::os::Fd file{::open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  if (!file) return fail(last_system_error());
  char text[kMaxPassword + 1];
  std::size_t size = 0;
  for (;;) {  // A pipe may bring it in pieces.
    const ::ssize_t count = ::read(file.get(), text + size, sizeof text - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(last_system_error());
    size += static_cast<std::size_t>(count);
    if (count == 0 || size == sizeof text) break;
  }
  const std::string_view whole{text, size};
  const Secret password{whole.substr(0, whole.find('\n'))};
  ::sodium_memzero(text, sizeof text);
  if (password.text().empty() || password.text().size() > kMaxPassword) {
    return Problem{
        Errc::invalid_argument,
        fmt::format("admin_password_file: the first line of '{}' must have 1 to {} bytes", path,
                    kMaxPassword)};
  }
  const auto known = store.administrator();
  if (!known) return known.problem();
  if (*known) {  // Storing it again would give it another version.
    const auto is_same = check_password(password.text(), (*known)->verifier);
    if (!is_same) return is_same.problem();
    if (*is_same) return {};
  }
  const auto verifier = make_verifier(password.text());
  if (!verifier) return verifier.problem();
  return store.set_administrator(*verifier);
}

Outcome<void> write_admin_password(const std::string& directory, std::string_view password) {
  using namespace leat::os;
  const auto fail = [&](Error error, const std::string& name = kAdminPasswordFile) {
    return Problem{error.code, fmt::format("cannot write '{}/{}': {}", directory, name,
                                           std::strerror(error.system_error))};
  };
  const auto opened = open_directory_path(directory, false, false);
  if (!opened) return fail(opened.error());
  const std::string name = std::string{kAdminPasswordFile} + ".new";
  delete_file_at(opened->get(), name.c_str());
  {
    const auto file = open_file_at(opened->get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (!file) return fail(file.error(), name);
    if (!write_all(file->get(), password) || !write_all(file->get(), "\n") ||
        ::fsync(file->get()) != 0) {
      const Error error = last_system_error();
      delete_file_at(opened->get(), name.c_str());
      return fail(error);
    }
  }
  if (::renameat(opened->get(), name.c_str(), opened->get(), kAdminPasswordFile) != 0)
    return fail(last_system_error());
  if (::fsync(opened->get()) != 0) return fail(last_system_error());
  return {};
}

}  // namespace leat::broker
