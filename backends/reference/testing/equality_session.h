// What the equality tests compare: a model run over some sequences by a schedule, and everything that it says.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/reference/border/model.h"
#include "backends/reference/testing/vector_case.h"

namespace assay::testing {

// Everything that a model says about some sequences.
struct Transcript {
  std::vector<std::vector<float>> logits;      // per sequence: (tokens, vocab)
  std::vector<std::vector<float>> logprobs;    // (tokens)
  std::vector<std::vector<int32_t>> ranks;     // (tokens)
  std::vector<std::vector<int32_t>> top_ids;   // (tokens, 4)
  std::vector<std::vector<uint16_t>> routing;  // (tokens, moe layers, topk)
  std::vector<std::vector<float>> margins;     // (tokens, moe layers)
  std::vector<int32_t> sampled;

  bool operator==(const Transcript& other) const {
    if (logits.empty() || logits.size() != other.logits.size()) return false;
    for (size_t i = 0; i < logits.size(); ++i) {
      if (std::memcmp(logits[i].data(), other.logits[i].data(), logits[i].size() * sizeof(float)) != 0) return false;
      if (std::memcmp(logprobs[i].data(), other.logprobs[i].data(), logprobs[i].size() * sizeof(float)) != 0) {
        return false;
      }
      if (!std::equal(margins[i].begin(), margins[i].end(), other.margins[i].begin(), other.margins[i].end())) {
        return false;
      }
    }
    return ranks == other.ranks && top_ids == other.top_ids && routing == other.routing && sampled == other.sampled;
  }
};

struct Schedule {
  uint32_t chunk = 1024;     // tokens of one run
  bool together = false;     // all sequences in one batch, else one after the other
  uint32_t block_size = 16;  // of the cache
};

class Session {
 public:
  Session(backend::Model& model, const VectorCase& vector_case, const Schedule& schedule)
      : model_(model), schedule_(schedule) {
    for (const auto& request : vector_case.requests) {
      std::vector<int32_t> ids = request.prompt;
      ids.insert(ids.end(), request.generated.begin(), request.generated.end());
      sequences_.push_back(std::move(ids));
    }
    const model::ModelConfig& config = model.config();
    for (const bool moe : config.moe_layers) moe_layers_ += moe ? 1 : 0;
    routed_ = moe_layers_ * static_cast<size_t>(config.moe.topk);
    for (const auto& ids : sequences_) {
      blocks_.emplace_back();
      for (size_t b = 0; b <= ids.size() / schedule.block_size; ++b) blocks_.back().push_back(next_block_++);
      t_.logits.emplace_back(ids.size() * static_cast<size_t>(config.vocab_size));
      t_.logprobs.emplace_back(ids.size());
      t_.ranks.emplace_back(ids.size());
      t_.top_ids.emplace_back(4 * ids.size());
      t_.routing.emplace_back(ids.size() * routed_);
      t_.margins.emplace_back(ids.size() * moe_layers_, -1.0f);
      targets_.emplace_back(ids.begin() + 1, ids.end());
      targets_.back().push_back(0);
    }
    t_.sampled.resize(sequences_.size());
  }

  Transcript run() {
    assay_cache_spec spec{sizeof(spec), schedule_.block_size, static_cast<uint32_t>(next_block_), 0};
    auto cache = model_.make_cache(spec);
    EXPECT_TRUE(cache.ok()) << cache.status().message();
    (*cache)->block_size = spec.block_size;
    (*cache)->block_count = spec.block_count;
    if (schedule_.together) {
      for (uint32_t start = 0; forward(**cache, 0, sequences_.size(), start); start += schedule_.chunk) {
      }
    } else {
      for (size_t i = 0; i < sequences_.size(); ++i) {
        for (uint32_t start = 0; forward(**cache, i, i + 1, start); start += schedule_.chunk) {
        }
      }
    }
    return std::move(t_);
  }

 private:
  bool forward(backend::Cache& cache, size_t first, size_t last, uint32_t start) {
    std::vector<assay_run> runs;
    std::vector<float*> margins;
    for (size_t i = first; i < last; ++i) {
      if (start >= sequences_[i].size()) continue;
      assay_run run{};
      run.ids = &sequences_[i][start];
      run.count = std::min(schedule_.chunk, static_cast<uint32_t>(sequences_[i].size()) - start);
      run.start = start;
      run.blocks = blocks_[i].data();
      run.block_count = static_cast<uint32_t>(blocks_[i].size());
      run.output_rows = run.count;
      run.targets = &targets_[i][start];
      run.top_n = 4;
      run.sampling = {0.8, 0, 0, 0.9, 99, i};
      run.output.logits = &t_.logits[i][start * static_cast<size_t>(model_.config().vocab_size)];
      run.output.target_logprobs = &t_.logprobs[i][start];
      run.output.target_ranks = &t_.ranks[i][start];
      run.output.top_ids = &t_.top_ids[i][4 * size_t{start}];
      if (routed_ > 0) run.output.routing = &t_.routing[i][start * routed_];
      run.output.sampled = &t_.sampled[i];
      runs.push_back(run);
      margins.push_back(t_.margins[i].data() + start * moe_layers_);
    }
    if (runs.empty()) return false;
    Status status = backend::check_runs(model_.config(), cache, runs);
    if (status.ok()) status = model_.forward(cache, runs, margins.data());
    EXPECT_TRUE(status.ok()) << status.message();
    return status.ok();
  }

  backend::Model& model_;
  Schedule schedule_;
  std::vector<std::vector<int32_t>> sequences_;
  std::vector<std::vector<int32_t>> targets_;
  std::vector<std::vector<int32_t>> blocks_;
  int32_t next_block_ = 0;
  size_t moe_layers_ = 0;
  size_t routed_ = 0;  // experts of a token over all layers
  Transcript t_;
};

}  // namespace assay::testing
