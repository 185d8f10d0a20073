// What an engine, a tokenizer and the reader of prompts need to know of a case's arguments.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "backends/model/config/effective_args.h"
#include "backends/model/tokenizer/tokenizer.h"
#include "core/discover/arguments.h"

namespace assay::discover {

// What the buffered engine is told beside the rest; defaults are those of Megatron-LM's parser.
struct BufferedArguments {
  bool dynamic_results = false;     // form of the results: ASSAY.script is not gpt_static_inference.py
  double buffer_size_gb = 40;       // --inference-dynamic-batching-buffer-size-gb, GiB
  int block_size = 256;             // --inference-dynamic-batching-block-size, tokens
  std::optional<int> max_requests;  // --inference-dynamic-batching-max-requests, else --inference-max-requests where
                                    // that counts: unset, the buffer decides
  int max_tokens = 16384;           // --inference-dynamic-batching-max-tokens, in one step
  bool chunked_prefill = false;     // --enable-chunked-prefill
  bool prefix_caching = false;      // --inference-dynamic-batching-prefix-caching
  std::string eviction_policy = "ref_zero";  // --inference-dynamic-batching-prefix-caching-eviction-policy
  // Static scripts send all requests at once, have no stop words and end at the tokenizer's EOD.
  int requests_per_step = 0;            // --incoming-requests-per-step; 0: not given
  double requests_per_second = -1;      // --incoming-requests-per-sec; 0 or less: all at once
  std::vector<std::string> stop_words;  // --stop-words
  std::optional<int> termination_id;    // --termination-id; -1: none
  bool skip_prompt_logprobs = false;    // --skip-prompt-log-probs
  int suspend_interval = 0;             // --suspend-resume-interval, steps; 0: never
  bool recompute_on_resume = false;     // --rl-kv-cache-management-mode recompute
};

// Defaults are those of Megatron-LM's parser and scripts.
struct EngineOptions {
  std::string engine;  // engine_of(case): "static_legacy", "buffered", ...

  int max_requests = 8;            // --inference-max-requests: prompts of one batch
  int max_sequence_length = 2560;  // --inference-max-seq-length: tokens of the longest prompt and its completion
  int tokens_to_generate = 30;     // --num-tokens-to-generate, >= 0
  double temperature = 1.0;        // > 0 where it matters (top_k other than 1)
  int top_k = 1;                   // 1: greedy; 0: all tokens
  double top_p = 0.0;              // 0: off; not together with top_k > 0
  int64_t seed = 1234;             // --seed: of the sampling generator
  bool return_log_probs = false;
  int top_n_logprobs = 0;
  BufferedArguments buffered;
  bool deterministic_mode = false;  // --deterministic-mode
  int first_request_id = 0;         // 1 where the static script first sends a warm-up request (--cuda-graph-impl local)

  int repeat = 1;        // --inference-repeat-n: passes over the requests, to measure throughput
  int output_every = 1;  // --output-every-n-results of the dynamic script: it writes these and the last one

  std::vector<std::string> prompts;  // --prompts; empty: from the file
  std::string prompt_file;           // --prompt-file as written; empty: none
  int64_t prompt_limit = 0;          // --prompt-file-num-truncate; 0: all
  std::string output_path;           // --output-path as written; results go to the run's folder instead

  std::string load;                        // --load as written: folder of the checkpoint
  std::optional<int64_t> checkpoint_step;  // --ckpt-step: iteration folder below it instead of the latest
  bool use_checkpoint_args = false;
  model::TokenizerSpec tokenizer;  // `model` as written; find_input() says where it is

  std::vector<std::string> notes;  // one line each
};

// Who acts on the arguments: our engines, which refuse what they cannot honour, or a foreign one, to which they are
// handed on. Checkpoint, tokenizer and the rules of our engines are then its business and no error here.
enum class ArgumentsFor { kOurEngine, kForeignEngine };

// `args`: apply_checkpoint_args of the case's record. Checks the rules between arguments that Megatron-LM enforces.
// Fails with kInvalid (a value out of range, arguments that exclude each other, --load or a tokenizer missing) or
// kUnsupported, naming arguments and values. Prompts are not read, and need not be there.
Result<EngineOptions> resolve_engine_options(const TestCase& test_case, const model::EffectiveArgs& args,
                                             ArgumentsFor who = ArgumentsFor::kOurEngine);

// Folder to open for the checkpoint: `load` found as find_input() does, then iter_0000123 below it with --ckpt-step.
Result<std::string> checkpoint_folder(const EngineOptions& options, const std::string& case_dir);

// The prompts in order: --prompts, or field `text` of every line of --prompt-file. kInvalid "file:line: ..." on a blank
// line, broken JSON, a missing field, invalid UTF-8 or a lone surrogate; both or neither source is kInvalid too.
Result<std::vector<std::string>> load_prompts(const EngineOptions& options, const std::string& case_dir);

}  // namespace assay::discover
