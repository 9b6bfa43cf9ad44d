// `--broker lightq://USER@HOST:PORT`: what commands do at a broker instead of on this machine.
//
//     auto broker = add_broker_options(*command);
//     command->callback([=] {
//       if (!broker->is_given()) return list();
//       check_only(*command, {"--json"});            // Nothing else goes through the protocol.
//       remote_list(*broker, json);
//     });
//
// The password is in a file or in LEAT_PASSWORD, never on the command line. What the protocol cannot do is refused with the
// reason, before anything is sent.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.hpp"
#include "cli/records/pub.hpp"
#include "cli/records/sub.hpp"
#include "lightq/client/data.hpp"

namespace leat::cli {

// What the pullers of a topic are, to programs on the broker's machine: the only group that its protocol knows.
inline constexpr char kLightqGroup[] = "lightq";

// Where --help shows these options.
inline constexpr char kBrokerGroup[] = "At a broker (leat serve)";

struct BrokerOptions {
  std::string uri;
  std::string password_file;

  bool is_given() const noexcept { return !uri.empty(); }
};
std::shared_ptr<BrokerOptions> add_broker_options(CLI::App& command);
// For a command that cannot: --broker ends it with this reason.
void refuse_broker(CLI::App& command, const std::string& reason);

// Fails if options were given that a broker knows nothing of, --dir and --data-dir included: all but these, --broker
// and --password-file.
void check_only(const CLI::App& command, std::initializer_list<std::string_view> allowed);

// A connection to the broker's administration, and who asks.
struct Remote {
  explicit Remote(const BrokerOptions& options, std::stop_token stop = {});

  lightq::Patience to_connect() const { return lightq::to_connect(stop); }
  lightq::Patience to_answer() const { return lightq::to_answer(stop); }

  lightq::BrokerUri uri;
  lightq::Credentials user;
  std::stop_token stop;
  lightq::Admin admin;
};

// A password from a file, else from a variable.
std::string password_from(const std::string& file, const char* file_option, const char* variable,
                          const std::string& user);

struct RemoteTopic {
  std::string name;
  std::string type;           // "queue", "file"
  std::string user;           // Who may use it.
  std::string password_file;  // Of that user; else LEAT_TOPIC_PASSWORD.
};
void remote_create(const BrokerOptions& options, const RemoteTopic& topic);
void remote_list(const BrokerOptions& options, bool json);
void remote_info(const BrokerOptions& options, const std::string& topic, bool json);
void remote_delete(const BrokerOptions& options, const std::vector<std::string>& topics);

// Moves the pullers of a topic. `place` is the beginning, the end, or an offset.
void remote_seek(const BrokerOptions& options, const std::string& topic, const std::string& group,
                 const std::string& place);

// Publishes at the broker. settle() waits until the topic has everything.
std::unique_ptr<Sender> remote_sender(const BrokerOptions& options, const PubArguments& arguments,
                                      const StopOnSignal& signals);
// As read_topics() or, with a group, as read_as_member().
void remote_read(const BrokerOptions& options, const SubArguments& arguments,
                 const RecordWriter& writer, const StopOnSignal& signals);

}  // namespace leat::cli
