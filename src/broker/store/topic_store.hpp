// What a broker remembers: its topics with their credentials and rights, its administrator, and values of its protocols.
//
//     auto store = TopicStore::open(state_directory);
//     if (!store) return stop(store.problem().sentence);
//     auto topic = store->add({.name = "news", .user = "alice", .verifier = *verifier});
//     store->set_values({{.protocol = "lines", .topic_id = topic->id, .name = "port", .value = "5801"}});
//     for (const StoredTopic& known : *store->topics()) use(known);
//
// One small SQLite database, `broker.db`, in the state directory, which one broker has at a time. Every change is on
// stable storage when its call returns, and is there whole or not at all after a crash. A topic that was made by `leat
// topic create` is not in it before somebody is given a right to it. Used by one thread at a time; not after fork().
//
// Besides the codes named at the calls, each may return
//   corrupt, permission, no_space, io_error   with a sentence that names the file; a change was then not made
// On a full disk, room is kept back for changes that add nothing: a right or topic that goes, another password. Values of protocols may use it as well.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "broker/auth/tokens.hpp"
#include "stored_topic.hpp"

namespace leat::broker {

struct Administrator {
  Verifier verifier;
  std::int64_t verifier_version = 0;
};

class TopicStore {
 public:
  // Pages of 4 KiB. 100,000 topics need a quarter of it.
  static constexpr std::int64_t kMaxPages = 64 * 1024;

  // Makes the directory (not its parents) and the store if they are missing.
  //   busy           another broker has this state directory
  //   permission     the directory is not the caller's own, or others can write to it
  //   wrong_format   of a newer version
  static Outcome<TopicStore> open(const std::string& directory, std::int64_t max_pages = kMaxPages);
  TopicStore(TopicStore&&) noexcept;
  TopicStore& operator=(TopicStore&&) noexcept;
  ~TopicStore();

  const std::string& directory() const noexcept;
  // False if somebody has removed or replaced its file; then nothing can be changed.
  bool is_in_place() const noexcept;

  // None before the first start was completed.
  Outcome<std::optional<Administrator>> administrator();
  Outcome<void> set_administrator(const Verifier& verifier);

  // In the order in which they were made.
  Outcome<std::vector<StoredTopic>> topics();
  //   not_found
  Outcome<StoredTopic> topic(std::string_view name);
  // `values` are of the topic, whose id they need not know.
  //   exists, invalid_argument (the name, the user or the group)
  Outcome<StoredTopic> add(const NewTopic& topic, const std::vector<ProtocolValue>& values = {});
  // With its rights and values.
  //   not_found
  Outcome<void> delete_topic(std::int64_t topic_id);
  // Whether delete_topic() would find room for its change on disk now. Changes nothing.
  //   not_found
  Outcome<void> can_delete_topic(std::int64_t topic_id);

  // Returns the new verifier_version.
  //   not_found
  Outcome<std::int64_t> change_password(std::int64_t topic_id, const Verifier& verifier);
  //   not_found, invalid_argument (the group)
  Outcome<void> set_consumers(std::int64_t topic_id, Consumers consumers, std::string_view group);

  // All of a protocol.
  Outcome<std::vector<ProtocolValue>> values(std::string_view protocol);
  // All of them in one change. One that is empty is forgotten.
  //   not_found   a topic
  Outcome<void> set_values(const std::vector<ProtocolValue>& values);
  // For a value that its protocol cannot have stored: `corrupt`, with a sentence that names the file.
  Problem damaged(std::string_view what) const;

  // By user.
  Outcome<std::vector<Right>> rights(std::int64_t topic_id);
  // Gives or changes a right. Without a verifier the user keeps the one of before; with one, tokens of before end.
  //   not_found, invalid_argument (the user)
  Outcome<Right> grant(std::int64_t topic_id, const Right& right);
  //   not_found   the user has none
  Outcome<void> revoke(std::int64_t topic_id, std::string_view user);

  // Made with the store; constant.
  const TokenSecret& token_secret() const noexcept;

 private:
  struct Parts;
  explicit TopicStore(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;  // Null once moved from.
};

}  // namespace leat::broker
