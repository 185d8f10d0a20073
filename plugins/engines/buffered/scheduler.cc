#include "plugins/engines/buffered/scheduler.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <span>
#include <utility>

namespace assay::engines {

void Scheduler::use(size_t blocks) {
  assert(running_.empty());
  pool_ = std::make_unique<BlockPool>(blocks);
  cache_ = std::make_unique<PrefixCache>(pool_.get(), limits_.block_size, limits_.eviction);
}

std::vector<Part> Scheduler::plan() {
  parts_.clear();
  budget_ = limits_.max_tokens;
  split_ = false;
  plan_decodes();
  plan_prompts();
  admit();
  return std::move(parts_);
}

void Scheduler::plan_decodes() {
  for (size_t i = 0; i < running_.size(); ++i) {
    Active* request = running_[i].get();
    if (!request->decodes()) continue;
    const size_t blocks = blocks_for(request->computed + 1);
    while (i < running_.size() && !grow(request, blocks)) preempt_youngest();
    if (i == running_.size()) return;  // it was the youngest itself
    parts_.push_back({request, request->computed, request->computed + 1});
    --budget_;
  }
}

void Scheduler::plan_prompts() {
  for (const std::unique_ptr<Active>& request : running_) {
    if (!request->decodes()) add_part(request.get());
  }
}

void Scheduler::add_part(Active* request) {
  size_t tokens = std::min(request->left(), budget_);
  if (limits_.max_chunk > 0) tokens = std::min(tokens, limits_.max_chunk);
  if (request->left() - tokens == 1 && tokens > 1) --tokens;
  split_ = split_ || tokens < request->left();
  if (tokens == 0) return;
  const size_t end = request->sequence.cut(request->computed, request->computed + tokens);
  parts_.push_back({request, request->computed, end});
  budget_ -= end - request->computed;
}

void Scheduler::admit() {
  while (!waiting_.empty() && running_.size() < limits_.max_requests && budget_ > 0 && !split_) {
    if (!start_head()) return;
    add_part(running_.back().get());
  }
}

bool Scheduler::start_head() {
  Active* head = waiting_.front().get();
  const std::span<const int32_t> tokens = head->sequence.tokens();
  if (limits_.prefix_caching) {
    const size_t most = head->sequence.skippable() / limits_.block_size;
    if (prefix_under_way(*head, cache_->matching(tokens, most))) return false;
    head->blocks = cache_->match(tokens, most);
  }
  head->published = head->blocks.size();
  head->computed = head->published * limits_.block_size;
  const bool fits = may_split(*head) || head->left() <= budget_;
  if (!fits || !grow(head, blocks_for(std::min(tokens.size() + 1, head->sequence.needed())))) {
    give_back(head);
    return false;
  }
  head->sequence.counters().cached_tokens += head->computed;
  running_.push_back(std::move(waiting_.front()));
  waiting_.pop_front();
  return true;
}

bool Scheduler::grow(Active* request, size_t blocks) {
  const size_t held = request->blocks.size();
  if (held >= blocks) return true;
  if (cache_->available() < blocks - held) return false;
  while (request->blocks.size() < blocks) request->blocks.push_back(*cache_->take());
  return true;
}

void Scheduler::preempt_youngest() {
  std::unique_ptr<Active> youngest = std::move(running_.back());
  running_.pop_back();
  give_back(youngest.get());
  ++youngest->sequence.counters().preemptions;
  waiting_.push_front(std::move(youngest));
}

bool Scheduler::suspend() {
  const bool ready = std::all_of(running_.begin(), running_.end(), [](const auto& one) { return one->decodes(); });
  while (ready && !running_.empty()) preempt_youngest();
  return ready;
}

bool Scheduler::starved() const {
  if (waiting_.empty() || running_.size() >= limits_.max_requests) return false;
  const Sequence& head = waiting_.front()->sequence;
  return blocks_for(std::min(head.tokens().size() + 1, head.needed())) > cache_->available();
}

void Scheduler::give_back(Active* request) {
  for (; !request->blocks.empty(); request->blocks.pop_back()) cache_->give_back(request->blocks.back());
  request->published = 0;
  request->computed = 0;
}

bool Scheduler::prefix_under_way(const Active& head, size_t known) const {
  const std::span<const int32_t> usable = head.sequence.tokens().first(head.sequence.skippable());
  return std::any_of(running_.begin(), running_.end(), [&](const std::unique_ptr<Active>& other) {
    if (other->decodes()) return false;
    const std::span<const int32_t> own = other->sequence.tokens();
    const auto parting = std::mismatch(usable.begin(), usable.end(), own.begin(), own.end()).first;
    const size_t common = static_cast<size_t>(parting - usable.begin()) / limits_.block_size;
    return common > known && common > other->published;
  });
}

void Scheduler::advance(const Part& part) {
  Active* request = part.request;
  request->computed = part.end;
  if (!limits_.prefix_caching) return;
  const std::span<const int32_t> tokens = request->sequence.tokens();
  const size_t full = std::min(request->computed, tokens.size()) / limits_.block_size;
  if (full <= request->published) return;
  cache_->publish(tokens.first(full * limits_.block_size), std::span(request->blocks).first(full), request->published);
  request->published = full;
}

std::unique_ptr<Active> Scheduler::remove(uint64_t id) {
  const auto is_it = [id](const std::unique_ptr<Active>& one) { return one->sequence.request().id == id; };
  std::unique_ptr<Active> found;
  if (const auto at = std::find_if(running_.begin(), running_.end(), is_it); at != running_.end()) {
    found = std::move(*at);
    running_.erase(at);
  } else if (const auto place = std::find_if(waiting_.begin(), waiting_.end(), is_it); place != waiting_.end()) {
    found = std::move(*place);
    waiting_.erase(place);
  }
  if (found) give_back(found.get());
  return found;
}

}  // namespace assay::engines
