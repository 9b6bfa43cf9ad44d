// What programs of this project use of base and os, as leat::os.
//
//     leat::os::Fd file{::open(path, O_RDONLY | O_CLOEXEC)};
//     const std::int64_t began = leat::os::now_ns();
//
// Other names of these folders, and everything in the folders above them, are the library's own: executables and the broker
// otherwise include public headers only (tools/tidy.py). What each name does is said where it is declared.
#pragma once

#include "leat/base/clock.hpp"
#include "leat/base/own_pause.hpp"
#include "leat/base/replace.hpp"
#include "leat/os/being_made.hpp"
#include "leat/os/directory.hpp"
#include "leat/os/event.hpp"
#include "leat/os/fd.hpp"
#include "leat/os/file.hpp"
#include "leat/os/futex.hpp"
#include "leat/os/lock.hpp"
#include "leat/os/lock_file.hpp"
#include "leat/os/signals.hpp"

namespace leat::inline v0::os {

// Time.
using detail::now_ns;
using detail::OwnPause;
using detail::sleep_a_millisecond;

// Files and directories.
using detail::delete_file_at;
using detail::Fd;
using detail::file_size;
using detail::find_directory_in;
using detail::has_name;
using detail::may_act_as_owner;
using detail::may_delete_directory_at;
using detail::may_write_at;
using detail::names_in;
using detail::open_directory_path;
using detail::open_file_at;
using detail::rename_at;

// What processes leave behind that die while they make or delete something.
using detail::kDeletedPrefix;
using detail::kNewPrefix;
using detail::lock_left_over;

// Locks that end with their process.
using detail::byte_is_locked;
using detail::LockFile;
using detail::try_lock_byte;

using detail::has_futex_waitv;
using detail::is_readable;
using detail::replace;
using detail::SignalsBlocked;

}  // namespace leat::inline v0::os
