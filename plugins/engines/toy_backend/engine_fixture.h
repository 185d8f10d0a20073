// What the tests of engines share: an engine on a toy model, and the results it must give, computed plainly.
#pragma once

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "plugins/engines/toy_backend/engine_driver.h"

namespace assay::engines {

inline std::vector<int32_t> ids_of(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t at = 0; at < text.size();
       at = text.find(' ', at) == std::string::npos ? text.size() : text.find(' ', at) + 1) {
    ids.push_back(std::stoi(text.substr(at)));
  }
  return ids;
}

// Every value that a result owes to its request alone, bit for bit.
inline void expect_equal(const EngineResult& a, const EngineResult& b) {
  EXPECT_EQ(a.prompt_ids, b.prompt_ids);
  EXPECT_EQ(a.text, b.text);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.prompt_logprobs, b.prompt_logprobs);
  EXPECT_EQ(a.generated_logprobs, b.generated_logprobs);
  EXPECT_EQ(a.prompt_top_n.ids, b.prompt_top_n.ids);
  EXPECT_EQ(a.prompt_top_n.logprobs, b.prompt_top_n.logprobs);
  EXPECT_EQ(a.generated_top_n.ids, b.generated_top_n.ids);
  EXPECT_EQ(a.generated_top_n.logprobs, b.generated_top_n.logprobs);
  EXPECT_EQ(a.routing, b.routing);
  EXPECT_EQ(a.routing_margins, b.routing_margins);
  EXPECT_EQ(a.generated_ranks, b.generated_ranks);
  EXPECT_EQ(a.generated_logits, b.generated_logits);
}

// A number of engine_counters of a result.
inline int64_t counter(const EngineResult& result, const char* name) {
  return nlohmann::json::parse(result.extra).at("engine_counters").at(name).get<int64_t>();
}

template <class Engine>
class EngineFixture : public ::testing::Test {
 protected:
  void open(const std::string& options, const std::string& tokenizer = kToyTokenizer) {
    Result<std::unique_ptr<Engine>> engine = open_on_toy<Engine>(&model_, host_, options, tokenizer);
    ASSERT_TRUE(engine.ok()) << engine.status().message();
    engine_ = *std::move(engine);
  }

  Outcome run(const std::vector<ToyRequest>& requests) {
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(submit(engine_.get(), i, requests[i]).ok());
    }
    Outcome outcome;
    const Status status = drain(engine_.get(), &outcome);
    EXPECT_TRUE(status.ok()) << status.message();
    return outcome;
  }

  // Greedy continuation of a prompt on its own: no cache, no batch.
  std::vector<int32_t> continuation(std::vector<int32_t> sequence, int32_t new_tokens) const {
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < new_tokens; ++i) {
      const int32_t token = toy_argmax(model_, sequence);
      if (token == kToyEod) break;
      tokens.push_back(token);
      sequence.push_back(token);
    }
    return tokens;
  }

  // logprobs of sequence[from ..], each given what stands before it.
  std::vector<double> logprobs(const std::vector<int32_t>& sequence, size_t from) const {
    std::vector<double> values;
    for (size_t i = from; i < sequence.size(); ++i) {
      values.push_back(static_cast<float>(toy_logprob(model_, std::span(sequence).first(i), sequence[i])));
    }
    return values;
  }

  // Everything in `result` that a greedy request wants, checked against the plain computation.
  void expect_plain(const EngineResult& result, const ToyRequest& request, int32_t new_tokens) const {
    const std::vector<int32_t> prompt = request.ids.empty() ? ids_of(request.text) : request.ids;
    std::vector<int32_t> all = prompt;
    const std::vector<int32_t> tokens = continuation(prompt, new_tokens);
    all.insert(all.end(), tokens.begin(), tokens.end());
    EXPECT_EQ(result.prompt_ids, prompt);
    EXPECT_EQ(result.tokens, tokens);
    EXPECT_EQ(result.tpot.size(), tokens.size());
    std::vector<double> of_prompt = logprobs(all, 1);
    const size_t known = prompt.size() - 1;
    const std::span<const double> behind = std::span(of_prompt).subspan(known);
    const std::vector<double> of_tokens(behind.begin(), behind.end());
    of_prompt.resize(known);
    EXPECT_EQ(result.prompt_logprobs, of_prompt);
    EXPECT_EQ(result.generated_logprobs, of_tokens);
  }

  ToyModel model_;
  ToyHost host_{&model_};
  std::unique_ptr<Engine> engine_;
};

}  // namespace assay::engines
