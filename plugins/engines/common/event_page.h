// The events of one step as the host sees them.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "plugins/engines/common/engine_result.h"

namespace assay::engines {

// Owns events and C views of them. The views stay valid until the next assign or until the page dies. Not thread-safe.
class EventPage {
 public:
  void assign(std::vector<EngineEvent> events);

  const assay_event* data() const { return views_.data(); }
  size_t size() const { return views_.size(); }

 private:
  assay_candidates view_of(const CandidateLists& lists);
  const assay_result* view_of(const EngineResult& result);

  std::vector<EngineEvent> events_;
  std::vector<assay_event> views_;
  std::deque<assay_result> results_;
  std::deque<std::vector<assay_candidate>> candidates_;
};

}  // namespace assay::engines
