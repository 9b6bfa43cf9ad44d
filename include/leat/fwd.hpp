// Forward declarations of the public classes.
#pragma once

#include "leat/base/config.hpp"

namespace leat::inline v0 {

class Batch;
class Claim;
class Deadline;
class From;
class Group;
class Member;
class Publisher;
class Subscriber;
class Topic;
template <class T>
class Result;

}  // namespace leat::inline v0
