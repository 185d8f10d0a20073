// Ids of golden texts: the engine's tokenizer is asked with a request for each text.
#include <fmt/format.h>

#include <algorithm>

#include "assay/sdk.hpp"
#include "core/run/reanchor.h"

namespace assay::run {
namespace {

using Ids = std::vector<int32_t>;

// The ids after the prompt's own; empty: the prompt's are not their beginning.
Ids after_prompt(const Ids& prompt, const Ids& whole) {
  if (prompt.empty() || whole.size() <= prompt.size()) return {};
  if (!std::equal(prompt.begin(), prompt.end(), whole.begin())) return {};
  return {whole.begin() + static_cast<ptrdiff_t>(prompt.size()), whole.end()};
}

}  // namespace

EngineRerun::Tokens EngineRerun::ids_of_texts(const compare::RerunInput& input,
                                              std::map<std::string, std::string>* refused) {
  CaseOrder order = order_;
  order.prompts.clear();
  order.request_ids.clear();
  order.logprobs = false;
  order.routing = false;
  order.top_n = 0;
  order.max_new_tokens = 1;
  for (size_t i = 0; i < order_.prompts.size(); ++i) {
    const std::string id = name_of(i);
    const auto parted = std::find_if(input.parted.begin(), input.parted.end(),
                                     [&](const compare::PartedRequest& request) { return request.id == id; });
    const RequestRecord* golden = input.golden->find(id);
    if (parted == input.parted.end() || golden == nullptr || golden->tokens) continue;
    order.prompts.push_back(order_.prompts[i]);
    order.prompts.push_back(order_.prompts[i] + parted->golden_text);
    order.request_ids.push_back(id);            // even place: the prompt alone
    order.request_ids.push_back(id + " text");  // odd place: with the golden's text
  }
  Tokens found;
  if (order.prompts.empty()) return found;
  std::map<std::string, Ids> ids;
  SessionListener listener;
  listener.result = [&](const std::string& id, const assay_result& result) {
    const std::span<const int32_t> prompt = sdk::ids(result.prompt_ids);
    ids[id].assign(prompt.begin(), prompt.end());
  };
  std::map<std::string, std::string> failed;
  listener.failed = [&](const FailedRequest& failure) { failed[failure.id] = failure.message; };
  const Result<SessionResult> session = run_session(input_, order, listener);
  for (size_t i = 0; i < order.request_ids.size(); i += 2) {
    const std::string& id = order.request_ids[i];
    const std::string& text = order.request_ids[i + 1];
    Ids tokens = after_prompt(ids[id], ids[text]);
    if (!tokens.empty()) {
      found[id] = std::move(tokens);
    } else if (!session.ok()) {
      (*refused)[id] =
          "the golden has no tokens, and its text could not be turned into ids: " + session.status().message();
    } else if (failed.count(text) > 0) {
      (*refused)[id] = "the golden has no tokens, and the engine refused its text: " + failed[text];
    } else if (ids[text].empty()) {
      (*refused)[id] = "the golden has no tokens, and the engine does not tell prompt ids";
    } else {
      (*refused)[id] = "the golden has no tokens, and the ids of prompt + text do not begin with those of the prompt";
    }
  }
  return found;
}

}  // namespace assay::run
