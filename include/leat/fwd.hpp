// Names of the classes that users meet, for headers that need no more than the name.
#pragma once

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
