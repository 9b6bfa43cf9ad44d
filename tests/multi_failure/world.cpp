// Functions that all processes of a multi-failure test use (see world.hpp).
#include "world.hpp"

#include <algorithm>

namespace leat::testing {

Topic World::open() const {
  auto opened = Topic::open(kTopic, Deadline::immediate(), directory.path());
  CHILD_CHECK_OK(opened);
  return std::move(*opened);
}

int Actor::run() {
  ::setpgid(0, 0);
  obey(life.blow, world.shared->labels[static_cast<std::size_t>(kind)]);
  switch (kind) {
    case Kind::steady_publisher: return publish_steadily(*this);
    case Kind::reader: return read_everything(*this);
    case Kind::worker: return work_steadily(*this);
    case Kind::janitor: return sweep(*this);
    case Kind::publisher: return publish(*this);
    case Kind::subscriber: return subscribe(*this);
    case Kind::member: return work(*this);
    case Kind::mover: return move_groups(*this);
    case Kind::renewer: return renew_topics(*this);
  }
  return 1;
}

void Actor::pause(std::uint32_t one_in, std::uint64_t at_most_us) {
  if (below(one_in) == 0) ::usleep(static_cast<::useconds_t>(below(at_most_us)));
}

void expect(const Error& error, std::initializer_list<Errc> allowed, const char* call) {
  if (std::find(allowed.begin(), allowed.end(), error.code) != allowed.end()) return;
  std::fprintf(stderr, "child: %s: %s\n", call, describe(error).c_str());
  ::_exit(1);
}

}  // namespace leat::testing
