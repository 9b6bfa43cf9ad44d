#include "topic_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

namespace leat::broker::lightq {
namespace {

constexpr char kType[] = "type";
constexpr char kNextPort[] = "next_port";

struct NamedPort {
  const char* name;
  std::uint16_t TopicPorts::*port;
};
constexpr NamedPort kPorts[] = {{"pull_port", &TopicPorts::pull},
                                {"push_port", &TopicPorts::push},
                                {"pub_port", &TopicPorts::pub},
                                {"raw_port", &TopicPorts::raw}};

// The broker knows only whether a topic is durable.
bool is_remembered(std::string_view type) { return type == "direct" || type == "queue_file"; }

// 0: none.
std::uint16_t port_in(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc{} && end == text.data() + text.size() ? port : std::uint16_t{0};
}

}  // namespace

Outcome<void> TopicStates::load(const PortRange& range) {
  auto values = store_.values(kProtocol);
  if (!values) return values.problem();
  const auto next = std::find_if(values->begin(), values->end(), [](const ProtocolValue& value) {
    return value.topic_id == 0 && value.name == kNextPort;
  });
  ports_ = Ports{range.first, range.last,
                 next == values->end() ? std::uint16_t{0} : port_in(next->value)};
  topics_.for_each([this](const TopicPtr& topic) { (void)of(*topic); });
  for (const ProtocolValue& value : *values) {
    if (auto taken = take(value); !taken) return taken;
  }
  return {};
}

Outcome<void> TopicStates::take(const ProtocolValue& value) {
  const auto wrong = [&] {
    return store_.damaged(fmt::format("a port or the type of topic {} is wrong", value.topic_id));
  };
  const std::uint16_t port = port_in(value.value);
  if (value.topic_id == 0) {
    if (value.name == kNextPort && port == 0) return store_.damaged("the next port is wrong");
    return {};
  }
  const auto state = states_.find(value.topic_id);
  if (state == states_.end()) return store_.damaged("a port or a type is of no topic");
  if (value.name == kType) {
    state->second->type = value.value;
    return is_remembered(value.value) ? Outcome<void>{} : wrong();
  }
  const auto found = std::find_if(std::begin(kPorts), std::end(kPorts),
                                  [&](const NamedPort& one) { return value.name == one.name; });
  if (found == std::end(kPorts)) return {};  // Of a newer broker.
  if (port == 0) return wrong();
  state->second->ports.*found->port = port;
  ports_.take(port);
  return {};
}

const std::shared_ptr<TopicState>& TopicStates::of(const BrokerTopic& topic) {
  if (topic.is_deleted()) return of_deleted_;
  std::shared_ptr<TopicState>& state = states_[topic.stored().id];
  if (state == nullptr) state = std::make_shared<TopicState>();
  return state;
}

Outcome<TopicPtr> TopicStates::add(NewTopic topic, const std::string& type) {
  topic.is_durable = type == "file" || type == "queue_file";
  topic.group = kGroup;
  std::vector<ProtocolValue> values;
  if (is_remembered(type)) values.push_back({kProtocol, 0, kType, type});
  auto added = topics_.add(topic, values);
  if (added && is_remembered(type)) of(**added)->type = type;
  return added;
}

std::string_view TopicStates::type_of(const BrokerTopic& topic) {
  const std::string& type = of(topic)->type;
  if (!type.empty()) return type;
  return topic.stored().is_durable ? "file" : "queue";
}

Outcome<std::uint16_t> TopicStates::give_port(const BrokerTopic& topic,
                                              std::uint16_t TopicPorts::*which,
                                              const std::function<bool(std::uint16_t)>& is_usable) {
  const auto port = ports_.next(is_usable);
  if (!port) return Problem{Errc::no_space, "no free port in " + ports_.range()};
  const auto name = std::find_if(std::begin(kPorts), std::end(kPorts), [&](const NamedPort& one) {
                      return one.port == which;
                    })->name;
  const auto set =
      store_.set_values({{kProtocol, topic.stored().id, name, std::to_string(*port)},
                         {kProtocol, 0, kNextPort, std::to_string(ports_.position())}});
  if (!set) {
    ports_.free(*port);
    return set.problem();
  }
  of(topic)->ports.*which = *port;
  return *port;
}

void TopicStates::on_deleted(const BrokerTopic& topic) {
  const auto found = states_.find(topic.stored().id);
  if (found == states_.end()) return;
  found->second->is_deleted = true;
  for (const std::uint16_t port : found->second->ports.all()) ports_.free(port);
  states_.erase(found);
}

void TopicStates::on_remade(const BrokerTopic& topic) {
  const auto found = states_.find(topic.stored().id);
  if (found == states_.end()) return;
  const auto fresh = std::make_shared<TopicState>();
  fresh->type = found->second->type;
  fresh->ports = found->second->ports;
  found->second->is_deleted = true;
  found->second = fresh;
}

}  // namespace leat::broker::lightq
