#include "plugins/engines/common/engine_result.h"

#include <cassert>
#include <utility>

namespace assay::engines {

EngineEvent finished_event(EngineResult result) {
  EngineEvent event;
  event.kind = ASSAY_EVENT_FINISHED;
  event.id = result.id;
  event.result = std::make_unique<EngineResult>(std::move(result));
  return event;
}

EngineEvent failed_event(uint64_t id, Status failure) {
  assert(!failure.ok());
  EngineEvent event;
  event.kind = ASSAY_EVENT_FAILED;
  event.id = id;
  event.failure = std::move(failure);
  return event;
}

}  // namespace assay::engines
