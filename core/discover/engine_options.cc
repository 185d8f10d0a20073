#include "core/discover/engine_options.h"

#include <algorithm>
#include <cstdio>

#include "core/discover/input_path.h"
#include "core/discover/list.h"

namespace assay::discover {
namespace {

using model::ArgList;
using model::ArgReader;

class Resolver {
 public:
  Resolver(const TestCase& test_case, const model::EffectiveArgs& args, ArgumentsFor who)
      : script_(test_case.assay.script.value_or("")), foreign_(who == ArgumentsFor::kForeignEngine), args_(args) {
    options_.engine = engine_of(test_case);
    if (!test_case.assay.engine) {
      options_.engine = args_.flag("use_legacy_static_engine") ? "static_legacy" : "buffered";
    }
  }

  Result<EngineOptions> resolve() {
    sampling();
    requests();
    buffered();
    checkpoint();
    tokenizer();
    engine_rules();
    if (!args_.status().ok()) return args_.status();
    if (!status_.ok()) return status_;
    return std::move(options_);
  }

 private:
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }
  void at_least(const char* option, int value, int least) {
    if (value < least)
      fail(invalid(std::string(option) + " " + std::to_string(value) + " is below " + std::to_string(least)));
  }

  void sampling() {
    EngineOptions& o = options_;
    o.temperature = args_.number("temperature", 1.0);
    o.top_k = args_.integer("top_k", 1);
    o.top_p = args_.number("top_p", 0.0);
    o.tokens_to_generate = args_.integer("num_tokens_to_generate", 30);
    o.return_log_probs = args_.flag("return_log_probs");
    o.top_n_logprobs = args_.integer("top_n_logprobs", 0);
    if (const model::ArgValue* seed = args_.value("seed")) o.seed = std::get<int64_t>(seed->value);
    at_least("--top_k", o.top_k, 0);
    at_least("--num-tokens-to-generate", o.tokens_to_generate, 0);
    at_least("--top-n-logprobs", o.top_n_logprobs, 0);
    if (!(o.top_p >= 0 && o.top_p <= 1)) fail(invalid("--top_p " + number(o.top_p) + " is not between 0 and 1"));
    if (o.top_k > 0 && o.top_p > 0) {
      fail(invalid("--top_k " + std::to_string(o.top_k) + " and --top_p " + number(o.top_p) +
                   " exclude each other: give --top_k 0 for nucleus sampling"));
    }
    if (o.top_k != 1 && !(o.temperature > 0)) {
      fail(invalid("--temperature " + number(o.temperature) +
                   " is not above 0, and logits are divided by it: for greedy decoding give --top_k 1"));
    }
    if (o.top_k == 1 && !(o.temperature > 0)) {
      o.notes.push_back("--temperature " + number(o.temperature) + " has no effect with --top_k 1");
      o.temperature = 1.0;
    }
    if (o.seed < 0) fail(invalid("--seed " + std::to_string(o.seed) + " is negative"));
  }

  void requests() {
    EngineOptions& o = options_;
    o.max_requests = args_.integer("inference_max_requests", 8);
    o.max_sequence_length = args_.integer("inference_max_seq_length", 2560);
    o.repeat = args_.integer("inference_repeat_n", 1);
    at_least("--inference-repeat-n", o.repeat, 1);
    at_least("--inference-max-requests", o.max_requests, 1);
    at_least("--inference-max-seq-length", o.max_sequence_length, 1);
    if (const model::ArgValue* prompts = args_.value("prompts")) {
      for (const model::ArgValue& prompt : std::get<ArgList>(prompts->value)) {
        o.prompts.push_back(std::get<std::string>(prompt.value));
      }
    }
    o.prompt_file = args_.text("prompt_file", "");
    o.prompt_limit = std::max(0, args_.integer("prompt_file_num_truncate", 0));
    o.output_path = args_.text("output_path", "");
    o.deterministic_mode = args_.flag("deterministic_mode");
    if (!o.prompts.empty() && !o.prompt_file.empty()) fail(invalid("--prompts and --prompt-file exclude each other"));
  }

  void buffered() {
    BufferedArguments& b = options_.buffered;
    b.dynamic_results = !script_.empty() && script_.substr(script_.rfind('/') + 1) != "gpt_static_inference.py";
    b.buffer_size_gb = args_.number("inference_dynamic_batching_buffer_size_gb", 40.0);
    b.block_size = args_.integer("inference_dynamic_batching_block_size", 256);
    b.max_requests = args_.integer("inference_dynamic_batching_max_requests");
    if (!b.max_requests && (!b.dynamic_results || args_.value("inference_max_requests") != nullptr)) {
      b.max_requests = options_.max_requests;
    }
    b.max_tokens = args_.integer("inference_dynamic_batching_max_tokens", 16384);
    b.chunked_prefill = args_.flag("enable_chunked_prefill");
    b.prefix_caching = args_.flag("inference_dynamic_batching_enable_prefix_caching");
    b.eviction_policy = args_.text("inference_dynamic_batching_prefix_caching_eviction_policy", "ref_zero");
    if (foreign_) options_.output_every = std::max(args_.integer("output_every_n_results", 1), 1);
    if (const model::ArgValue* words = args_.value("stop_words"); words != nullptr && (foreign_ || b.dynamic_results)) {
      for (const model::ArgValue& word : std::get<ArgList>(words->value)) b.stop_words.push_back(to_text(word));
    }
    if (!b.dynamic_results) return;
    b.requests_per_step = args_.integer("incoming_requests_per_step", 0);
    b.requests_per_second = args_.number("incoming_requests_per_sec", 100.0);
    b.termination_id = args_.integer("termination_id");
    b.skip_prompt_logprobs = args_.flag("skip_prompt_log_probs");
    b.suspend_interval = args_.integer("suspend_resume_interval", 0);
    b.recompute_on_resume = args_.text("rl_kv_cache_management_mode", "persist") == "recompute";
    options_.output_every = args_.integer("output_every_n_results", 1);
  }

  void checkpoint() {
    EngineOptions& o = options_;
    o.load = args_.text("load", "");
    o.use_checkpoint_args = args_.flag("use_checkpoint_args");
    if (foreign_) return;
    if (o.load.empty()) fail(invalid("--load is missing: an inference case needs a checkpoint"));
    if (const std::optional<int> step = args_.integer("ckpt_step"); step && *step != 0) {
      at_least("--ckpt-step", *step, 1);
      o.checkpoint_step = *step;
    }
    const std::string format = args_.text("ckpt_format", "torch_dist");
    if (format != "torch_dist" && !args_.flag("auto_detect_ckpt_format")) {
      fail(unsupported("--ckpt-format " + format + " cannot be read here: supported: torch_dist"));
    }
  }

  void tokenizer() {
    model::TokenizerSpec& spec = options_.tokenizer;
    spec.type = args_.text("tokenizer_type", "");
    spec.model = args_.text("tokenizer_model", "");
    if (foreign_) return;
    if (spec.type.empty()) {
      fail(invalid("--tokenizer-type is missing: supported: TikTokenizer, NullTokenizer"));
    } else if (spec.type != "TikTokenizer" && spec.type != "NullTokenizer") {
      fail(unsupported("--tokenizer-type " + spec.type + " is not built in: supported: TikTokenizer, NullTokenizer"));
    }
    if (spec.type == "TikTokenizer" && spec.model.empty())
      fail(invalid("--tokenizer-model is missing: TikTokenizer needs a vocabulary file"));
    spec.pattern = args_.text("tiktoken_pattern", "v2");
    if (const std::optional<int> size = args_.integer("vocab_size")) spec.vocab_size = *size;
    spec.num_special = args_.integer("tiktoken_num_special_tokens", 1000);
    if (const std::optional<int> eod = args_.integer("null_tokenizer_eod_id")) spec.null_eod_id = *eod;
    if (const model::ArgValue* special = args_.value("special_tokens")) {
      const ArgList* list = std::get_if<ArgList>(&special->value);
      for (const model::ArgValue& token : list == nullptr ? ArgList() : *list)
        spec.special_tokens.push_back(to_text(token));
    }
  }

  void engine_rules() {
    const bool enable = args_.flag("enable_cuda_graph"), external = args_.flag("external_cuda_graph");
    std::string graphs = args_.text("cuda_graph_impl", "none");
    if ((enable || external) && graphs != "none")
      fail(invalid("--enable-cuda-graph and --external-cuda-graph exclude --cuda-graph-impl " + graphs));
    if (enable && external) fail(invalid("--enable-cuda-graph and --external-cuda-graph exclude each other"));
    if (enable) graphs = "local";
    const bool flash_decode = args_.flag("flash_decode");
    const bool static_script =
        options_.engine == "static_legacy" || (foreign_ && (args_.flag("use_legacy_static_engine") || flash_decode));
    if (options_.engine == "buffered" && !foreign_) return buffered_rules(flash_decode);
    if (!static_script) return;
    if (graphs == "local") {
      options_.first_request_id = 1;
      options_.notes.push_back(
          "the static script sends a warm-up request for CUDA graphs first: request ids begin at 1");
      if (!flash_decode && !foreign_)
        fail(invalid("--cuda-graph-impl local needs --flash-decode in the static engine"));
    }
    if (foreign_) return;
    const int tensor = args_.integer("tensor_model_parallel_size", 1);
    const bool experts = args_.integer("num_experts", 0) > 0 && args_.integer("expert_model_parallel_size", 1) > 1;
    if (args_.flag("sequence_parallel") && tensor > 1 && !experts) {
      fail(
          invalid("--sequence-parallel in the static engine needs a mixture of experts with "
                  "--expert-model-parallel-size above 1"));
    }
    for (const char* ignored : {"stop_words", "termination_id"}) {
      if (args_.value(ignored) != nullptr)
        options_.notes.push_back(std::string(ignored) + " has no effect in the static engine");
    }
  }

  void buffered_rules(bool flash_decode) {
    if (flash_decode) fail(invalid("--flash-decode is for the static engine (--use-legacy-static-engine)"));
    const BufferedArguments& b = options_.buffered;
    if (!(b.buffer_size_gb > 0)) {
      fail(invalid("--inference-dynamic-batching-buffer-size-gb " + number(b.buffer_size_gb) + " is not above 0"));
    }
    at_least("--inference-dynamic-batching-block-size", b.block_size, 1);
    at_least("--inference-dynamic-batching-max-requests", b.max_requests.value_or(1), 1);
    at_least("--inference-dynamic-batching-max-tokens", b.max_tokens, 1);
    at_least("--incoming-requests-per-step", b.requests_per_step, 0);
    at_least("--termination-id", b.termination_id.value_or(-1), -1);
    at_least("--output-every-n-results", options_.output_every, 1);
    if (args_.value("suspend_resume_interval") != nullptr && b.dynamic_results) {
      at_least("--suspend-resume-interval", b.suspend_interval, 1);
    }
    if (b.dynamic_results && args_.flag("num_tokens_from_file")) {
      fail(
          unsupported("--num-tokens-from-file: lengths of single requests are not read from --prompt-file here; all "
                      "generate --num-tokens-to-generate tokens, leave it out"));
    }
    if (args_.text("inference_dynamic_batching_logprobs_mode", "raw_logprobs") != "raw_logprobs") {
      fail(
          unsupported("--inference-dynamic-batching-logprobs-mode processed_logprobs is not computed here: logprobs "
                      "are raw_logprobs"));
    }
    if (!b.dynamic_results) {
      for (const char* ignored : {"stop_words", "termination_id", "incoming_requests_per_step", "skip_prompt_log_probs",
                                  "output_every_n_results", "suspend_resume_interval", "num_tokens_from_file"}) {
        if (args_.value(ignored) != nullptr) {
          options_.notes.push_back(std::string(ignored) +
                                   " has no effect in the static script; name another one in ASSAY.script");
        }
      }
    }
    const std::optional<int> requests = args_.integer("inference_dynamic_batching_max_requests");
    const int tokens = b.max_tokens;
    if (requests && *requests > tokens) {
      fail(invalid("--inference-dynamic-batching-max-requests " + std::to_string(*requests) +
                   " is above --inference-dynamic-batching-max-tokens " + std::to_string(tokens)));
    }
    const int tensor = args_.integer("tensor_model_parallel_size", 1);
    if (requests && tensor > 0 && *requests % tensor != 0) {
      fail(invalid("--inference-dynamic-batching-max-requests " + std::to_string(*requests) +
                   " is no multiple of --tensor-model-parallel-size " + std::to_string(tensor)));
    }
  }

  static std::string number(double value) { return to_text(model::ArgValue{value}); }

  std::string script_;
  bool foreign_;
  ArgReader args_;
  EngineOptions options_;
  Status status_;
};

}  // namespace

Result<EngineOptions> resolve_engine_options(const TestCase& test_case, const model::EffectiveArgs& args,
                                             ArgumentsFor who) {
  return Resolver(test_case, args, who).resolve();
}

Result<std::string> checkpoint_folder(const EngineOptions& options, const std::string& case_dir) {
  Result<std::string> folder = find_input(options.load, case_dir);
  if (!folder.ok()) return folder.status().with("--load");
  if (!options.checkpoint_step) return folder;
  char name[32];
  std::snprintf(name, sizeof name, "/iter_%07lld", static_cast<long long>(*options.checkpoint_step));
  const std::string below = *folder + name;
  if (!find_input(below, case_dir).ok()) return not_found("--ckpt-step: " + below + " does not exist");
  return below;
}

}  // namespace assay::discover
