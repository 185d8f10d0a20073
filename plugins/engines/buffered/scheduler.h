// Which requests go into a step, with how many tokens, and who holds which blocks.
//
// Policy:
//  - Requests that decode come first, a token each, oldest first. One that needs a block when none is left takes those
//    of the youngest running request (itself, when it is the youngest): that one waits again, before all that arrived
//    after it, and later goes over its prompt and its generated tokens once more. The oldest request is never
//    preempted, and fits alone: somebody always gets on.
//  - Then prompts, first come, first served. A request is admitted when blocks for all tokens that it has and for the
//    next one can be had at once (no overcommit), when fewer than max_requests run, and when its tokens fit into what
//    max_tokens leaves of this step. With chunked prefill it may take a part; at most one request is in that state, and
//    nobody is admitted behind it. A last part of one token is avoided. A request that was preempted may always be
//    split.
//  - With prefix caching, a request that begins as one whose prompt is under way waits until its blocks are there.
//    A request that wants outputs of its prompt computes all of it: what the cache holds is keys and values alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "plugins/engines/buffered/active.h"
#include "plugins/engines/buffered/block_pool.h"
#include "plugins/engines/buffered/prefix_cache.h"

namespace assay::engines {

struct SchedulerLimits {
  size_t block_size = 256;
  size_t max_requests = 1;
  size_t max_tokens = 16384;
  bool chunked_prefill = false;
  size_t max_chunk = 0;  // 0: none
  bool prefix_caching = false;
  Eviction eviction = Eviction::kRefZero;
};

// Positions [start, end) of one request in a step.
struct Part {
  Active* request = nullptr;
  size_t start = 0;
  size_t end = 0;
};

// Not thread-safe. Owns the requests.
class Scheduler {
 public:
  explicit Scheduler(const SchedulerLimits& limits) : limits_(limits) { use(0); }

  // Another number of blocks; what the prefix cache knows is forgotten. Only while nothing runs.
  void use(size_t blocks);
  size_t blocks() const { return pool_->size(); }
  // Blocks that no request holds.
  size_t available() const { return cache_->available(); }
  uint64_t evictions() const { return cache_->evictions(); }

  // Behind all that wait. Orders ascend.
  void add(std::unique_ptr<Active> request) { waiting_.push_back(std::move(request)); }
  // The next step; every request at most once. Empty: nothing waits or runs, or what waits has no room (then nothing
  // runs). Moves requests between waiting and running.
  std::vector<Part> plan();
  // The part went through the model, and the request took its outputs.
  void advance(const Part& part);
  // All that run are preempted, if each of them has given a token since it was admitted: so everybody gets on. False:
  // not now.
  bool suspend();
  // Who is next waits for blocks alone.
  bool starved() const;
  // Takes a request out, wherever it is, and its blocks back. Null: it is not here.
  std::unique_ptr<Active> remove(uint64_t id);

  const std::deque<std::unique_ptr<Active>>& waiting() const { return waiting_; }
  const std::vector<std::unique_ptr<Active>>& running() const { return running_; }
  // Blocks for `positions`.
  size_t blocks_for(size_t positions) const { return (positions + limits_.block_size - 1) / limits_.block_size; }

 private:
  void plan_decodes();
  void plan_prompts();
  void admit();
  // The head of those that wait has its blocks and runs; false: not now.
  bool start_head();
  bool may_split(const Active& request) const {
    return limits_.chunked_prefill || request.sequence.counters().preemptions > 0;
  }
  // A part of the prompt within the budget. Sets split_.
  void add_part(Active* request);
  bool grow(Active* request, size_t blocks);
  void preempt_youngest();
  void give_back(Active* request);
  // Somebody computes blocks that `head` can use beyond its first `known` ones.
  bool prefix_under_way(const Active& head, size_t known) const;

  SchedulerLimits limits_;
  std::unique_ptr<BlockPool> pool_;
  std::unique_ptr<PrefixCache> cache_;
  std::deque<std::unique_ptr<Active>> waiting_;   // ascending order, all above those of running_
  std::vector<std::unique_ptr<Active>> running_;  // ascending order
  // Of the plan being made.
  std::vector<Part> parts_;
  size_t budget_ = 0;   // tokens
  bool split_ = false;  // a prompt goes on in a later step
};

}  // namespace assay::engines
