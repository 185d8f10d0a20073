#include "plugins/engines/buffered/report.h"

#include <nlohmann/json.hpp>

namespace assay::engines {

void add_report(const Active& request, const ReportTimes& times, ResultForm form, EngineResult* result) {
  const auto seconds_until = [&](uint64_t ns) { return static_cast<double>(ns - request.arrived_ns) * 1e-9; };
  result->latency = seconds_until(times.finished_ns);
  nlohmann::ordered_json extra;
  if (form == ResultForm::kDynamic) {
    result->tpot.clear();
    extra["ttft"] = request.first_token_ns == 0 ? nlohmann::ordered_json(nullptr)
                                                : nlohmann::ordered_json(seconds_until(request.first_token_ns));
    extra["cuda_graph_request_count_map"] = nlohmann::ordered_json::object();
    extra["step_count"] = times.steps;
  }
  extra["engine_counters"] = {{"steps", times.steps},
                              {"chunks", request.chunks},
                              {"cached_tokens", request.cached_tokens},
                              {"recomputed_tokens", request.recomputed_tokens},
                              {"preemptions", request.preemptions}};
  result->extra = extra.dump();
}

}  // namespace assay::engines
