// Engine openai: requests go to a server that speaks the API of OpenAI.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"
#include "plugins/engines/common/engine_border.h"
#include "plugins/engines/common/text_codec.h"
#include "plugins/engines/openai/options.h"
#include "plugins/engines/openai/place.h"
#include "plugins/engines/openai/wire.h"

namespace assay::engines::openai {

// The most that a server can be found to have.
inline constexpr uint64_t kOpenaiCapabilities = ASSAY_CAP_LOGPROBS | ASSAY_CAP_TOP_N | ASSAY_CAP_PROMPT_LOGPROBS |
                                                ASSAY_CAP_BATCH | ASSAY_CAP_SEED | ASSAY_CAP_TEXT | ASSAY_CAP_TOKENS;

// Methods mean what assay_engine_table says. A server that it started, and what was found out about one, are kept for
// later engines of this process with the same options. step() waits for the network, at most 50 ms. For one thread.
class OpenaiEngine {
 public:
  static Result<std::unique_ptr<OpenaiEngine>> open(const assay_engine_config& config, const Host& host);
  ~OpenaiEngine();

  Status submit(const assay_request& request);
  Status cancel(uint64_t id);
  Status step(std::vector<EngineEvent>* events);
  size_t pending() const { return jobs_.size(); }
  Status reset();
  Status info(assay_engine_info* about);

 private:
  struct Job;

  OpenaiEngine(std::unique_ptr<OpenaiOptions> options, const Host& host);
  void arrange();
  double send_due_ones();
  void send(Job* job);
  bool case_is_over() const;  // but for what is kept for judging
  void fail_unsent(std::vector<EngineEvent>* events);
  void take(const HttpAnswer& answer, std::vector<EngineEvent>* events);
  void note_tokens(Job* job, std::vector<EngineEvent>* events);
  EngineResult result_of(const Job& job, Checked checked) const;
  void fill_tokens(const Job& job, const Checked& checked, EngineResult* result) const;
  double now() const;  // seconds

  std::unique_ptr<OpenaiOptions> options_;
  Host host_;
  std::shared_ptr<Place> place_;
  std::unique_ptr<Wire> wire_;
  TextCodec codec_{nullptr};  // of the option `tokenizer`
  uint64_t capabilities_ = 0;
  std::string facts_;                       // JSON
  std::vector<std::unique_ptr<Job>> jobs_;  // in the order in which they are sent
  size_t arranged_ = 0;                     // leading jobs that have their place
};

}  // namespace assay::engines::openai
