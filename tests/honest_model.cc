#include "tests/honest_model.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/torch_dist_writer.h"
#include "core/discover/discover.h"
#include "core/plugin/registry.h"
#include "core/run/engine_session.h"
#include "core/run/loaded_model.h"
#include "core/run/plan.h"
#include "plugins/engines/common/text_codec.h"

namespace assay::tests {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string error(const std::string& why) { return dump({{"error", {{"message", why}}}}); }

Json entry(const engines::TextCodec& codec, int32_t id, double logprob) {
  return {{"token", codec.token(id).value_or("")}, {"id", id}, {"logprob", logprob}};
}

// Texts of answers are cut at the first stop word, and so are the tokens: those that lie before it whole stay.
bool cut_at(const Json& words, const engines::TextCodec& codec, RequestRecord* record) {
  size_t cut = std::string::npos;
  for (const Json& word : words) cut = std::min(cut, record->text->find(word.get<std::string>()));
  if (cut == std::string::npos) return false;
  record->text->resize(cut);
  size_t kept = 0;
  for (size_t end = 0; kept < record->tokens->size(); ++kept) {
    end += codec.token((*record->tokens)[kept]).value_or("").size();
    if (end > cut) break;
  }
  record->tokens->resize(kept);
  return true;
}

}  // namespace

struct HonestModel::Opened {
  explicit Opened(const plugin::SearchOptions& plugins) : registry(plugins) {}

  plugin::PluginRegistry registry;
  run::CaseOrder order = {};
  run::LoadedModel model = {};
  engines::TextCodec codec{nullptr};
  std::optional<run::EngineSession> session = {};
};

HonestModel::HonestModel(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
HonestModel::~HonestModel() = default;

Result<std::unique_ptr<HonestModel>> HonestModel::open(const std::string& folder, const std::string& checkpoint) {
  run::RunOptions options;
  options.plugins.install_dir = std::filesystem::path(ASSAY_BINARY_DIR) / "lib/assay/plugins";
  options.engine = "static_legacy";
  options.backend = "cpu";
  options.platform = "cpu_x86_64";
  Result<std::vector<TestCase>> cases = discover::discover({folder});
  if (!cases) return cases.status();
  options.cases = *std::move(cases);
  auto opened = std::make_unique<Opened>(options.plugins);
  Result<run::Plan> plan = run::make_plan(options, opened->registry);
  if (!plan) return plan.status();
  if (plan->groups.size() != 1) return invalid(folder + ": " + plan->cases.at(0).outcome.verdict.reason);
  run::WorkerPlan head = plan->groups[0].head;
  Json model = Json::parse(head.model);
  if (!checkpoint.empty()) model["checkpoint"] = checkpoint;
  head.model = model.dump();
  opened->order = plan->cases[0].order;
  Result<run::LoadedModel> loaded = run::LoadedModel::load(head, opened->registry);
  if (!loaded) return loaded.status();
  opened->model = *std::move(loaded);
  Result<engines::TextCodec> codec = engines::TextCodec::open(opened->model.tokenizer_json());
  if (!codec) return codec.status();
  opened->codec = *std::move(codec);
  const Result<const plugin::Plugin*> engine = opened->registry.find(plugin::Kind::kEngine, "static_legacy");
  if (!engine) return engine.status();
  Result<run::EngineSession> session = run::EngineSession::open({.engine = *engine,
                                                                 .backend = opened->model.backend(),
                                                                 .model = opened->model.model(),
                                                                 .model_config_json = opened->model.config_json(),
                                                                 .tokenizer_json = opened->model.tokenizer_json()},
                                                                opened->order.engine_options);
  if (!session) return session.status();
  opened->session.emplace(*std::move(session));
  return std::unique_ptr<HonestModel>(new HonestModel(std::move(opened)));
}

std::string HonestModel::answer(const std::string& text) {
  const Json body = Json::parse(text, nullptr, false);
  if (!body.is_object() || body.value("echo", false)) return error("expected a JSON object without echo");
  run::CaseOrder order = opened_->order;
  order.request_ids = {"0"};
  order.output_every = 1;
  order.max_new_tokens = body.value("max_tokens", 16);
  order.top_n = body.value("logprobs", 0);
  order.logprobs = true;
  const double temperature = body.value("temperature", 1.0);
  order.temperature = temperature > 0 ? temperature : 1;
  order.top_k = temperature > 0 ? body.value("top_k", 0) : 1;
  order.top_p = body.value("top_p", 0.0);
  order.seed = body.value("seed", uint64_t{0});
  run::RequestChange change;
  if (body.at("prompt").is_array()) {
    change.ids = body["prompt"].get<std::vector<int32_t>>();
    order.prompts = {""};
  } else {
    order.prompts = {body["prompt"].get<std::string>()};
  }
  Result<run::SessionResult> result = opened_->session->call(order, {}, {change});
  if (!result) return error(result.status().message());
  if (!result->failed.empty()) return error(result->failed[0].message);
  RequestRecord& record = result->records.at(0);
  const engines::TextCodec& codec = opened_->codec;
  const bool whole = record.tokens->size() == static_cast<size_t>(order.max_new_tokens);
  const bool stopped = cut_at(body.value("stop", Json::array()), codec, &record);
  const std::vector<int32_t>& tokens = *record.tokens;
  const std::vector<int32_t>& prompt = *record.prompt_ids;
  const double* logprob = record.logprobs->data();  // of the prompt first
  Json list = Json::array({nullptr});
  for (size_t i = 1; i < prompt.size(); ++i) {
    const Json one = entry(codec, prompt[i], *logprob++);
    list.push_back({{std::to_string(prompt[i]), {{"logprob", one["logprob"]}, {"decoded_token", one["token"]}}}});
  }
  Json content = Json::array();
  size_t place = 0;
  for (size_t i = 0; i < tokens.size(); ++i) {
    Json one = entry(codec, tokens[i], *logprob++);
    one["top_logprobs"] = Json::array();
    for (uint32_t n = 0; record.top_n && n < record.top_n->counts[i]; ++n) {
      const TopEntry& top = record.top_n->entries[place++];
      one["top_logprobs"].push_back(entry(codec, top.id, top.logprob));
    }
    content.push_back(std::move(one));
  }
  Json choice = {{"index", 0},
                 {"text", *record.text},
                 {"finish_reason", whole && !stopped ? "length" : "stop"},
                 {"logprobs", {{"content", std::move(content)}}},
                 {"token_ids", tokens},
                 {"prompt_token_ids", prompt}};
  if (body.contains("prompt_logprobs")) choice["prompt_logprobs"] = std::move(list);
  return dump({{"model", "gold"},
               {"choices", Json::array({choice})},
               {"usage", {{"prompt_tokens", prompt.size()}, {"completion_tokens", tokens.size()}}}});
}

Status spoil_checkpoint(const std::string& from, const std::filesystem::path& to, const std::string& name) {
  const Result<std::unique_ptr<model::Checkpoint>> checkpoint = model::Checkpoint::open(from);
  if (!checkpoint) return checkpoint.status();
  const Result<model::ArgRecord> args = (*checkpoint)->args();
  if (!args) return args.status();
  std::vector<model::TensorToWrite> tensors;
  bool spoiled = false;
  for (const model::TensorInfo& tensor : (*checkpoint)->contents().tensors) {
    if (tensor.dtype == model::Dtype::kOther) continue;
    const size_t size = model::dtype_size(tensor.dtype);
    auto data = std::make_shared<std::vector<std::byte>>(static_cast<size_t>(tensor.elements()) * size);
    if (Status read = (*checkpoint)->read(tensor.key, {}, tensor.dtype, data->data()); !read.ok()) return read;
    if (tensor.key.ends_with(name)) {
      std::fill_n(data->begin(), data->size() / 2, std::byte{0});
      spoiled = true;
    }
    tensors.push_back({.key = tensor.key,
                       .shape = tensor.shape,
                       .dtype = tensor.dtype,
                       .chunk_counts = {},
                       .fill = [data, size](int64_t first, int64_t count, void* out) {
                         std::memcpy(out, data->data() + static_cast<size_t>(first) * size,
                                     static_cast<size_t>(count) * size);
                       }});
  }
  if (!spoiled) return not_found(from + " has no tensor whose name ends with " + name);
  return model::write_torch_dist(to.string(), tensors, *args);
}

}  // namespace assay::tests
