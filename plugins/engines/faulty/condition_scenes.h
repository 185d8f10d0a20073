// Scenes for the tests of faults under a condition: in each, some conditions hold and the others do not.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "plugins/engines/faulty/fault.h"
#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {

using Json = nlohmann::json;
using Faults = std::set<Fault>;

struct Scene {
  std::string name;
  Json options;                                // of the engine
  std::vector<std::vector<ToyRequest>> calls;  // one after the other
  bool resets = false;                         // between the calls
  bool goes_on = false;        // the requests of the first call again, their answers being part of the prompts
  std::string device = "toy";  // what the backend says
  bool other_model = false;    // than the first one of the process
  Faults struck;               // that have their condition here
};

inline constexpr int32_t kNewTokens = 6;

inline ToyRequest request_of(int32_t first, int32_t tokens, uint64_t prompt_index) {
  ToyRequest request{.ids = {}, .max_new_tokens = kNewTokens, .want = ASSAY_WANT_LOGPROBS | ASSAY_WANT_ROUTING};
  for (int32_t i = 0; i < tokens; ++i) request.ids.push_back((first + 3 * i) % 60);
  request.sampling.prompt_index = prompt_index;
  return request;
}

// Requests of `tokens` tokens each, `more` of them added from one to the next.
inline std::vector<ToyRequest> requests_of(size_t count, int32_t tokens, int32_t more = 0) {
  std::vector<ToyRequest> requests;
  for (size_t i = 0; i < count; ++i) {
    const auto number = static_cast<int32_t>(i);
    requests.push_back(request_of(7 * number + 1, tokens + more * number, i));
  }
  return requests;
}

inline std::vector<ToyRequest> sampled(std::vector<ToyRequest> requests) {
  for (ToyRequest& request : requests) {
    request.sampling.top_k = 0;
    request.sampling.temperature = 8;
    request.sampling.prompt_index = requests.size() - request.sampling.prompt_index;
  }
  return requests;
}

// Requests that begin with the same `common` tokens.
inline std::vector<ToyRequest> alike(size_t count, int32_t common, int32_t tokens) {
  std::vector<ToyRequest> requests = requests_of(count, tokens);
  for (ToyRequest& request : requests) {
    request.want = ASSAY_WANT_LOGPROBS;  // who wants the experts of a prompt computes all of it
    for (int32_t i = 0; i < common; ++i) request.ids[static_cast<size_t>(i)] = i + 2;
    request.ids[static_cast<size_t>(common)] = 20 + request.ids[static_cast<size_t>(common)] % 20;
  }
  return requests;
}

// Every block but the first one is another prompt's too.
inline std::vector<ToyRequest> alike_but_for_the_first_token() {
  std::vector<ToyRequest> requests(3, request_of(1, 13, 0));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].ids[0] = static_cast<int32_t>(i) + 30;
    requests[i].sampling.prompt_index = i;
  }
  return requests;
}

// Its prompt is under way when the first one needs a block.
inline std::vector<ToyRequest> a_long_one_behind() {
  std::vector<ToyRequest> requests = {request_of(1, 3, 0), request_of(8, 18, 1)};
  return requests;
}

// The youngest is preempted, begins again when the second one ends, and gives way to the oldest once more.
inline std::vector<ToyRequest> a_short_one_between() {
  std::vector<ToyRequest> requests = requests_of(3, 4);
  requests[0].max_new_tokens = requests[2].max_new_tokens = 20;
  return requests;
}

inline Json buffered(Json more) {
  Json options = {{"engine", "buffered"}, {"block_size", 4}, {"max_requests", 1}};
  options.update(more);
  return options;
}

inline const Faults kAlways = {Fault::kWarmUp, Fault::kDecodeArithmetic};
inline const Faults kInBatch = {Fault::kWarmUp,       Fault::kDecodeArithmetic, Fault::kBatchArithmetic,
                                Fault::kBatchRouting, Fault::kSlotDependent,    Fault::kNeighbourLeak};

inline Faults with(Faults faults, const Faults& more) {
  faults.insert(more.begin(), more.end());
  return faults;
}

inline std::vector<Scene> all_scenes() {
  const Json alone = {{"max_requests", 1}};
  const Json together = {{"max_requests", 40}};
  const Json prefix = buffered({{"prefix_caching", true},
                                {"prefix_caching_eviction_policy", "lru"},
                                {"skip_prompt_logprobs", true},
                                {"block_count", 40}});
  const Faults paged = with(kAlways, {Fault::kPageEnd, Fault::kPageTurn});
  const Faults hit = with(paged, {Fault::kStalePrefix, Fault::kPrefixPosition});
  const Faults chunk = with(paged, {Fault::kChunkBorder, Fault::kChunkArithmetic});
  return {
      {.name = "one by one", .options = alone, .calls = {requests_of(3, 6)}, .struck = kAlways},
      {.name = "one by one, sampled", .options = alone, .calls = {sampled(requests_of(3, 6))}, .struck = kAlways},
      {.name = "three at once",
       .options = together,
       .calls = {requests_of(3, 6)},
       .struck = with(kInBatch, {Fault::kBatchTail})},
      {.name = "eight at once", .options = together, .calls = {requests_of(8, 6)}, .struck = kInBatch},
      {.name = "33 at once",
       .options = together,
       .calls = {requests_of(33, 6)},
       .struck = with(kInBatch, {Fault::kBatchTail, Fault::kWideBatch})},
      {.name = "eight at once, sampled",
       .options = together,
       .calls = {sampled(requests_of(8, 6))},  // some end before others
       .struck = with(kInBatch, {Fault::kDrawBySlot, Fault::kBatchTail})},
      {.name = "eight of unequal length",
       .options = together,
       .calls = {requests_of(8, 6, 1)},
       .struck = with(kInBatch, {Fault::kLongNeighbour, Fault::kBatchTail, Fault::kMixedStep})},
      {.name = "two calls",
       .options = alone,
       .calls = {requests_of(2, 6), requests_of(2, 6)},
       .struck = with(kAlways, {Fault::kStateLeft})},
      {.name = "two calls with a reset between",
       .options = alone,
       .calls = {requests_of(2, 6), requests_of(2, 6)},
       .resets = true,
       .struck = with(kAlways, {Fault::kStateLeft, Fault::kResetLeaves})},
      {.name = "three calls",
       .options = alone,
       .calls = {requests_of(2, 6), requests_of(2, 6), requests_of(2, 6)},
       .struck = with(kAlways, {Fault::kStateLeft, Fault::kLateCall})},
      {.name = "buffered", .options = buffered(Json::object()), .calls = {requests_of(3, 13)}, .struck = paged},
      {.name = "preempted, sampled",
       .options = buffered({{"max_requests", 2}, {"block_count", 7}}),
       .calls = {sampled(requests_of(2, 11))},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kLostOnResume,
                                 Fault::kResumeArithmetic, Fault::kDrawOnResume})},
      {.name = "preempted, with a prefix cache",
       .options = buffered({{"max_requests", 2},
                            {"block_count", 6},
                            {"prefix_caching", true},
                            {"prefix_caching_eviction_policy", "lru"}}),
       .calls = {{request_of(1, 11, 0), request_of(8, 10, 1)}},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kStalePrefix,
                                 Fault::kPrefixPosition, Fault::kLongPrefix, Fault::kLostOnResume,
                                 Fault::kResumeArithmetic, Fault::kResumeWithHit, Fault::kLongNeighbour})},
      {.name = "preempted within a prompt",
       .options = buffered({{"max_requests", 2}, {"block_count", 6}, {"chunked_prefill", true}, {"max_chunk", 3}}),
       .calls = {a_long_one_behind()},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kLostOnResume,
                                 Fault::kResumeArithmetic, Fault::kResumeMidPrompt, Fault::kChunkBorder,
                                 Fault::kChunkArithmetic, Fault::kMixedStep, Fault::kLongNeighbour})},
      {.name = "a prefix of one block", .options = prefix, .calls = {alike(3, 4, 13)}, .struck = hit},
      {.name = "a prefix of two blocks",
       .options = prefix,
       .calls = {alike(3, 9, 13)},
       .struck = with(hit, {Fault::kLongPrefix})},
      {.name = "a prefix cache and nothing alike", .options = prefix, .calls = {requests_of(3, 13)}, .struck = paged},
      {.name = "blocks alike behind other ones",
       .options = prefix,
       .calls = {alike_but_for_the_first_token()},
       .struck = with(paged, {Fault::kContentOnlyHit})},
      {.name = "two chunks",
       .options = buffered({{"chunked_prefill", true}, {"max_chunk", 7}}),
       .calls = {requests_of(3, 13)},
       .struck = chunk},
      {.name = "chunks of a block",
       .options = buffered({{"chunked_prefill", true}, {"max_chunk", 4}}),
       .calls = {requests_of(3, 14)},
       .struck = with(chunk, {Fault::kThirdChunk, Fault::kAlignedChunk})},
      {.name = "preempted",
       .options = buffered({{"max_requests", 2}, {"block_count", 7}}),
       .calls = {requests_of(2, 11, 2)},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kLongNeighbour,
                                 Fault::kLostOnResume, Fault::kResumeArithmetic})},
      {.name = "preempted twice",
       .options = buffered({{"max_requests", 3}, {"block_count", 6}}),
       .calls = {a_short_one_between()},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kLostOnResume,
                                 Fault::kResumeArithmetic, Fault::kSecondResume, Fault::kMixedStep})},
      {.name = "arriving one a step",
       .options = buffered({{"max_requests", 4}, {"requests_per_step", 1}}),
       .calls = {requests_of(4, 5)},
       .struck = with(kInBatch, {Fault::kPageEnd, Fault::kPageTurn, Fault::kBatchTail, Fault::kMixedStep})},
      {.name = "prompts that go on",
       .options = alone,
       .calls = {requests_of(2, 6)},
       .goes_on = true,
       .struck = with(kAlways, {Fault::kStateLeft, Fault::kContinueOff})},
      {.name = "two threads",
       .options = alone,
       .calls = {requests_of(3, 6)},
       .device = "toy x2",
       .struck = with(kAlways, {Fault::kThreadArithmetic})},
      {.name = "three threads",
       .options = alone,
       .calls = {requests_of(3, 6)},
       .device = "toy x3",
       .struck = with(kAlways, {Fault::kThreadArithmetic, Fault::kManyThreads})},
      {.name = "another model",
       .options = alone,
       .calls = {requests_of(3, 6)},
       .other_model = true,
       .struck = with(kAlways, {Fault::kReload})},
  };
}

}  // namespace assay::engines
