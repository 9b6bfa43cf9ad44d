// The out-of-line parts of the log: compiled into libleat_compiled.a, or included by header-only
// programs through leat/topic.hpp.
#pragma once

#include "leat/log/archiver_thread_impl.hpp"
#include "leat/log/participant_impl.hpp"
#include "leat/log/publisher_impl.hpp"
#include "leat/log/reader_impl.hpp"
#include "leat/log/subscriber_impl.hpp"
#include "leat/log/topic_impl.hpp"
#include "leat/log/topic_info_impl.hpp"
#include "leat/log/waiter_impl.hpp"
#include "leat/log/writer_impl.hpp"
