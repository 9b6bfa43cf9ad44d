// All of the log that is not in the headers above it: what libleat_compiled.a is made of, and what
// header-only programs get with leat/topic.hpp.
#pragma once

#include "leat/log/participant_impl.hpp"
#include "leat/log/publisher_impl.hpp"
#include "leat/log/reader_impl.hpp"
#include "leat/log/subscriber_impl.hpp"
#include "leat/log/topic_impl.hpp"
#include "leat/log/topic_info_impl.hpp"
#include "leat/log/waiter_impl.hpp"
#include "leat/log/writer_impl.hpp"
