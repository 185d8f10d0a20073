#include "core/metamorphic/way.h"

#include <nlohmann/json.hpp>

namespace assay::metamorphic {

Counters counters_of(const RequestRecord& record) {
  Counters counters;
  for (const auto& [name, value] : record.extra) {
    if (name != "engine_counters") continue;
    const nlohmann::json json = nlohmann::json::parse(value, nullptr, false);
    if (!json.is_object()) continue;
    counters.known = true;
    const auto take = [&json](const char* member) {
      const auto found = json.find(member);
      return found != json.end() && found->is_number_unsigned() ? found->get<uint64_t>() : uint64_t{0};
    };
    counters.batch = take("batch");
    counters.steps = take("steps");
    counters.chunks = take("chunks");
    counters.cached_tokens = take("cached_tokens");
    counters.recomputed_tokens = take("recomputed_tokens");
    counters.preemptions = take("preemptions");
    counters.restarts = take("restarts");
  }
  return counters;
}

const RequestRecord* WayResult::find(const std::string& id) const {
  for (const RequestRecord& record : records) {
    if (record.id == id) return &record;
  }
  return nullptr;
}

}  // namespace assay::metamorphic
