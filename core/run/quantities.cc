#include "core/run/quantities.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace assay::run {
namespace {

bool wants(const CaseOrder& order, std::string_view name) {
  return order.record_quantities || std::find(order.metrics.begin(), order.metrics.end(), name) != order.metrics.end();
}

// The number, or list of numbers, that JSON text holds.
std::optional<Quantity> quantity_in(std::string_view name, const std::string& json) {
  const nlohmann::json value = nlohmann::json::parse(json, nullptr, false);
  Quantity quantity{std::string(name), {}, value.is_number()};
  if (value.is_number()) quantity.values = {value.get<double>()};
  if (value.is_array()) {
    for (const nlohmann::json& item : value) {
      if (!item.is_number()) return std::nullopt;
      quantity.values.push_back(item.get<double>());
    }
  }
  if (quantity.values.empty()) return std::nullopt;
  return quantity;
}

// What the engine said itself; `unknown`: it said null, that there is no such number.
std::optional<Quantity> take_from_requests(std::string_view name, ResultSet* results, bool* unknown) {
  std::optional<Quantity> taken;
  for (RequestRecord& request : results->requests) {
    const auto found = std::find_if(request.extra.begin(), request.extra.end(),
                                    [&](const auto& field) { return field.first == name; });
    if (found == request.extra.end()) continue;
    std::optional<Quantity> quantity = quantity_in(name, found->second);
    const bool null = found->second == "null";
    *unknown = *unknown || null;
    if (!quantity && !null) continue;
    if (quantity) taken = std::move(quantity);
    request.extra.erase(found);
  }
  return taken;
}

}  // namespace

double throughput_of(const SessionResult& session, double wall_seconds) {
  const double engine_seconds = session.prefill_seconds + session.decode_seconds;
  const double seconds = engine_seconds > 0 ? engine_seconds : wall_seconds;
  return seconds > 0 ? static_cast<double>(session.generated_tokens) / seconds : 0;
}

int passes_of(const CaseOrder& order) { return wants(order, kThroughput) ? std::max(order.passes, 1) : 1; }

void add_quantities(const CaseOrder& order, const Measured& measured, ResultSet* results) {
  const auto add = [&](std::string_view name, std::vector<double> values, bool scalar) {
    bool unknown = false;
    std::optional<Quantity> own = take_from_requests(name, results, &unknown);
    if (own) {
      results->quantities.push_back(*std::move(own));
    } else if (wants(order, name) && !unknown) {
      results->quantities.push_back({std::string(name), std::move(values), scalar});
    }
  };
  add(kThroughput, measured.throughput, false);
  add(kPeakMemory, {static_cast<double>(measured.peak_bytes)}, true);
  add(kPrefillTokens, {static_cast<double>(measured.prefill_tokens)}, true);
}

void reset_peak_memory() { std::ofstream("/proc/self/clear_refs") << "5"; }

}  // namespace assay::run
