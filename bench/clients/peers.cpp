#include "peers.hpp"

#include <fmt/format.h>

#include <cmath>

#include "bench/failure.hpp"
#include "bench/statistics.hpp"
#include "figures.hpp"

namespace leat::bench::clients {

PeerRun peer_run_of(const std::string& output) {
  const Json printed = Json::parse(output, nullptr, false);
  const auto has = [&](const char* key, auto is_right) {
    return printed.is_object() && printed.contains(key) && is_right(printed[key]);
  };
  if (!has("runtime", [](const Json& it) { return it.is_string(); }) ||
      !has("records_per_second", [](const Json& it) {
        return it.is_number() && std::isfinite(it.get<double>()) && it.get<double>() > 0;
      })) {
    throw Failure("what it printed is no JSON with runtime and records_per_second");
  }
  return {printed["runtime"].get<std::string>(), printed["records_per_second"].get<double>()};
}

Json peers_of(const std::vector<std::array<PeerRun, kPeerWays.size()>>& rounds, std::size_t size) {
  Json peers = Json::array();
  for (std::size_t i = 0; i < kPeerWays.size(); ++i) {
    std::vector<double> rates;
    std::vector<double> times;
    for (const auto& round : rounds) {
      rates.push_back(round[i].records_per_second);
      times.push_back(round[i].records_per_second / round[0].records_per_second);
    }
    const PeerWay& way = kPeerWays[i];
    Json peer = {{"how", way.how},
                 {"title", way.title},
                 {"runtime", rounds.front()[i].runtime},
                 {"records_per_second", median(rates)}};
    if (way.times_wanted != 0) {
      peer["times_pyzmq"] = median(times);
      if (size == kWantedSize) peer["target"] = way.times_wanted;
    }
    peer["runs"] = rates;
    peers.push_back(std::move(peer));
  }
  return peers;
}

}  // namespace leat::bench::clients
