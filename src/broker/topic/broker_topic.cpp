#include "broker_topic.hpp"

#include <algorithm>

#include "topic_client.hpp"

namespace leat::broker {

void BrokerTopic::note_replaced(std::int64_t version, const std::string& user) {
  replaced_[version] = user;
  std::erase_if(replaced_, [&](const auto& one) {
    return std::none_of(clients_.begin(), clients_.end(), [&](const TopicClient* client) {
      return client->principal().version == one.first;
    });
  });
}

void BrokerTopic::close_refused(const std::string& user, std::int64_t version) {
  const auto now = credential_of(*stored_, user);
  for (TopicClient* const client : std::set<TopicClient*>{clients_}) {
    if (!clients_.contains(client)) continue;  // Those before it have closed it.
    const std::int64_t own = client->principal().version;
    const auto replaced = replaced_.find(own);
    const bool is_the_users =
        own == version || (replaced != replaced_.end() && replaced->second == user);
    if (is_the_users && !(now && now->may(client->access())))
      client->stream().close("the right was taken away");
  }
}

}  // namespace leat::broker
