// What the faults that strike under a condition know of requests and of the engine around them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace assay::engines {

// A submitted request, as the backend sees it run.
struct Watched {
  uint64_t prompt_index = 0;    // of the request's sampling
  std::vector<int32_t> ids;     // its prompt, then the tokens that went through the model
  size_t prompt_size = 0;       // tokens
  size_t answered = 0;          // leading tokens of the prompt that an earlier request put in or got out; 0: none did
  bool after_reset = false;     // the engine had been reset before it came
  size_t call = 1;              // of the engine, counted over resets
  std::vector<int32_t> before;  // prompt of a request of the call before this one's; empty: there was none

  size_t resumes = 0;      // times that it began again
  bool cut_short = false;  // ... the last time before its prompt had gone through
  // Since it began, or began again:
  size_t runs = 0;
  size_t chunks = 0;  // runs that began within the prompt
  size_t cached = 0;  // positions that were in the cache
  size_t end = 0;     // positions that are in the cache
  bool drew = false;  // it got a token
};

// What holds for a whole engine.
struct Circumstances {
  bool buffered = false;  // the engine inside
  bool prefix_caching = false;
  bool first_model = true;  // the model is the first one that this process opened an engine on
  size_t threads = 1;       // of the backend, as its device says
  size_t block_size = 0;    // tokens
  size_t forwards = 0;      // that went through
};

}  // namespace assay::engines
