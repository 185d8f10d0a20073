#include "plugins/engines/buffered/report.h"

#include <nlohmann/json.hpp>

namespace assay::engines {

void add_report(const Active& request, uint64_t finished_ns, ResultForm form, EngineResult* result) {
  const auto seconds_until = [&](uint64_t ns) { return static_cast<double>(ns - request.arrived_ns) * 1e-9; };
  result->latency = seconds_until(finished_ns);
  nlohmann::ordered_json extra;
  if (form == ResultForm::kDynamic) {
    result->tpot.clear();
    extra["ttft"] = request.first_token_ns == 0 ? nlohmann::ordered_json(nullptr)
                                                : nlohmann::ordered_json(seconds_until(request.first_token_ns));
    extra["cuda_graph_request_count_map"] = nlohmann::ordered_json::object();
    extra["step_count"] = request.sequence.counters().steps;
  }
  extra["engine_counters"] = to_json(request.sequence.counters());
  result->extra = extra.dump();
}

}  // namespace assay::engines
