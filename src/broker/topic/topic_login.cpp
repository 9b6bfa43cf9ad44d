#include "topic_login.hpp"

#include <utility>

namespace leat::broker {

std::string scope_of_topic(const std::string& topic) { return "topic/" + topic; }

void log_in(const Topics& topics, Logins& logins, const Logins::Asker& asker,
            const TopicAccount& who, Secret password, std::function<void(const TopicLogin&)> done) {
  TopicPtr topic = topics.find(who.topic);
  if (topic && topic->is_deleted()) topic = nullptr;  // Its files are being deleted.
  const auto before = topic ? credential_of(topic->stored(), who.user) : std::nullopt;
  logins.check({asker, who.user, scope_of_topic(who.topic),
                before ? before->verifier : std::optional<Verifier>{}},
               std::move(password),
               [topic, before, user = who.user, done = std::move(done)](Logins::Verdict verdict) {
                 TopicLogin login{verdict, topic, {}};
                 if (topic && topic->is_deleted()) login = {Logins::Verdict::wrong, nullptr, {}};
                 if (login.verdict == Logins::Verdict::right) {
                   const auto now = credential_of(topic->stored(), user);
                   if (now && now->version == before->version) {
                     topic->log().close_if_deleted();
                     login.credential = *now;
                   } else {
                     login.verdict = Logins::Verdict::wrong;
                   }
                 }
                 done(login);
               });
}

}  // namespace leat::broker
