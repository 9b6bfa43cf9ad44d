// Lets a user of a topic in by password: what every protocol does that asks for one per topic.
//
//     log_in(topics, logins, asker, {.topic = "news", .user = "ann"}, Secret{password}, [=](const TopicLogin& login) {
//       if (login.verdict != Logins::Verdict::right) return refuse();
//       if (!login.credential.may(Access::write)) return refuse();
//       use(login.topic);
//     });
//
// An unknown topic takes as long as a wrong password. Belongs to the thread of the event loop.
#pragma once

#include <functional>
#include <string>

#include "broker/auth/logins.hpp"
#include "topics.hpp"

namespace leat::broker {

struct TopicAccount {
  std::string topic;
  std::string user;
};

struct TopicLogin {
  // `wrong` also if the password was changed, or the topic deleted, while it was checked.
  Logins::Verdict verdict = Logins::Verdict::wrong;
  TopicPtr topic;         // Null if there is none of that name.
  Credential credential;  // With `right`: what the user may do, and the password's version.
};

// May call back before it returns.
void log_in(const Topics& topics, Logins& logins, const Logins::Asker& asker,
            const TopicAccount& who, Secret password, std::function<void(const TopicLogin&)> done);

// What Logins calls the passwords of a topic: the same ones are hashed once.
std::string scope_of_topic(const std::string& topic);

}  // namespace leat::broker
