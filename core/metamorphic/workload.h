// The requests that relations are asked with: made from a case's prompts by rules alone, the same at every run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/metamorphic/relation.h"
#include "core/metamorphic/way.h"

namespace assay::metamorphic {

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;  // empty: the engine does not tell prompt ids, the text is asked
};

// Immutable, thread-safe.
class Workload {
 public:
  // `limit`: tokens of the longest prompt that the model takes with the new tokens behind it; 0: none. Longer prompts
  // are cut. `prompts` is not empty; either all have ids or none.
  Workload(std::vector<Prompt> prompts, const Parameters& parameters, int64_t limit);

  bool has_ids() const { return has_ids_; }
  int32_t new_tokens() const { return new_tokens_; }

  // Request `index`, named by its number. The first ones are the case's prompts, later ones are made of these: turned
  // round, and cut to other lengths; no two are equal as far as the prompts give that.
  Ask ask(size_t index) const;
  std::vector<Ask> asks(size_t count) const;
  // The same with its ids repeated up to Parameters::prompt_tokens, or as far as the limit allows. Without ids: ask().
  Ask long_ask(size_t index) const;
  // ... repeated or cut to `tokens` >= 1, or as far as the limit allows. Without ids: ask().
  Ask ask_of(size_t index, size_t tokens) const;

 private:
  std::vector<int32_t> variation(size_t index) const;
  Ask make(size_t index, Prompt prompt) const;

  std::vector<Prompt> prompts_;
  bool has_ids_ = false;
  int32_t new_tokens_ = 0;
  size_t longest_ = 0;  // tokens of a stretched prompt
  size_t limit_ = 0;    // tokens of any prompt; 0: none
};

// What an engine says of a case's prompts.
struct Probe {
  std::vector<Prompt> prompts;
  std::vector<FailedAsk> failed;  // not empty: prompts that the engine cannot run
};

// Asks the first prompts of a case (at most `most`) for a token each. They have ids where the engine tells all of them
// and, asked by ids, answers the same prompt. Fails as the Laboratory does; kInvalid where there is no prompt.
Result<Probe> probe_prompts(const std::vector<std::string>& prompts, size_t most, Laboratory& laboratory);

}  // namespace assay::metamorphic
