// The KV buffer grows with what is asked of it.
#include <algorithm>
#include <string>

#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/buffered/limits.h"

namespace assay::engines {

Status BufferedEngine::provide_blocks(std::vector<EngineEvent>* events) {
  if (scheduler_.blocks() >= size_.blocks || !(scheduler_.running().empty() || scheduler_.starved())) return {};
  uint64_t all = 0;
  uint64_t largest = 0;  // of those that are here
  const auto blocks_of = [this](const Request& request) { return scheduler_.blocks_for(positions_of(request)); };
  const auto count = [&](const std::unique_ptr<Active>& request) {
    all += blocks_of(request->sequence.request());
    largest = std::max<uint64_t>(largest, blocks_of(request->sequence.request()));
  };
  for (const std::unique_ptr<Active>& request : scheduler_.waiting()) count(request);
  for (const std::unique_ptr<Active>& request : scheduler_.running()) count(request);
  uint64_t longest = largest;
  for (const Request& request : coming_) {
    if (!request.refusal.ok()) continue;
    all += blocks_of(request);
    longest = std::max<uint64_t>(longest, blocks_of(request));
  }
  // Without a prefix cache no more blocks are ever in use than those of the requests that run together.
  if (!options_.prefix_caching) all = std::min(all, size_.max_requests * longest);
  all = std::min(all, size_.blocks);
  if (all <= scheduler_.blocks()) return {};
  if (!scheduler_.suspend()) return {};  // soon
  const uint64_t wanted = std::min<uint64_t>(size_.blocks, std::max<uint64_t>(all, 2 * scheduler_.blocks()));
  Status made = make_pool(wanted, std::min(largest, wanted));
  if (made.ok() || breaks_engine(made)) return made;
  fail_longer_than(largest - 1, made, events);
  return {};
}

// `most` blocks, or half as many, and so on, down to `least`.
Status BufferedEngine::make_pool(uint64_t most, uint64_t least) {
  scheduler_.use(0);
  for (uint64_t blocks = most;; blocks = std::max(blocks / 2, least)) {
    Status made = cache_->make(static_cast<uint64_t>(options_.block_size), blocks);
    if (!made.ok() && !breaks_engine(made) && blocks > least) continue;
    if (!made.ok()) return made.with("KV buffer");
    scheduler_.use(blocks);
    if (blocks == most) return {};
    size_.blocks = blocks;
    host_.log(ASSAY_LOG_WARN, "engine buffered: memory holds " + std::to_string(blocks) + " of " +
                                  std::to_string(most) + " KV blocks of " + std::to_string(options_.block_size) +
                                  " tokens; fewer requests run at once");
    return {};
  }
}

void BufferedEngine::fail_longer_than(uint64_t blocks, const Status& status, std::vector<EngineEvent>* events) {
  std::vector<uint64_t> ids;
  for (const std::unique_ptr<Active>& request : scheduler_.waiting()) {
    if (scheduler_.blocks_for(positions_of(request->sequence.request())) > blocks) {
      ids.push_back(request->sequence.request().id);
    }
  }
  for (const uint64_t id : ids) {
    scheduler_.remove(id);
    events->push_back(failed_event(id, status));
  }
}

}  // namespace assay::engines
