#include "core/run/recorded_requests.h"

#include <nlohmann/json.hpp>

namespace assay::run {

using Json = nlohmann::ordered_json;

Result<CaseOrder> with_recorded_requests(CaseOrder order, std::vector<Quantity>* quantities) {
  if (order.recorded.empty()) return order;
  Result<ResultSet> recorded = read_results(order.recorded);
  if (!recorded) return recorded.status();
  *quantities = std::move(recorded->quantities);
  for (const RequestRecord& record : recorded->requests) {
    order.prompts.push_back(record.prompt.value_or(""));
    order.request_ids.push_back(record.id);
  }
  const Json options = {{"recorded", order.recorded}, {"ids", order.request_ids}};
  order.engine_options = options.dump(-1, ' ', false, Json::error_handler_t::replace);
  return order;
}

}  // namespace assay::run
