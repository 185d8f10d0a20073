#include "core/run/laboratory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "assay/sdk.hpp"
#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/rewrite.h"
#include "core/run/reanchor.h"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;
using metamorphic::Way;
using metamorphic::WayResult;
namespace fs = std::filesystem;

constexpr uint64_t kSpareBytes = uint64_t{64} << 20;  // of disk, beside a checkpoint written anew

Json properties_of(const plugin::Plugin& plugin) {
  const Json schema = Json::parse(plugin.options_schema, nullptr, false);
  return schema.is_object() ? schema.value("properties", Json::object()) : Json::object();
}

// `base` with `members` (JSON texts) over it; null takes a member out.
Json with_members(Json base, const std::map<std::string, std::string>& members) {
  if (!base.is_object()) base = Json::object();
  for (const auto& [member, text] : members) {
    Json value = Json::parse(text, nullptr, false);
    if (value.is_null()) {
      base.erase(member);
    } else {
      base[member] = std::move(value);
    }
  }
  return base;
}

std::string dumped(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A call as an order of the case's kind.
struct Asked {
  CaseOrder order;
  std::vector<RequestChange> changes;
};

Asked asked_of(const metamorphic::Call& call, const CaseOrder& way_order) {
  Asked asked;
  asked.order = way_order;
  for (const metamorphic::Ask& ask : call.asks) {
    asked.order.prompts.push_back(ask.text);
    asked.order.request_ids.push_back(ask.id);
    asked.order.max_new_tokens = ask.new_tokens;
    asked.changes.push_back({.ids = ask.ids,
                             .forced = {},
                             .prompt_index = ask.prompt_index,
                             .max_new_tokens = ask.new_tokens,
                             .logits = false});
  }
  return asked;
}

// EngineRerun with all that it borrows.
class WayRerun final : public compare::Rerun {
 public:
  WayRerun(EngineInput input, Asked asked, const LoadedModel& model)
      : input_(std::move(input)),
        order_(std::move(asked.order)),
        rerun_(input_, order_, model.logits_mantissa(), model.vocab_size(), std::move(asked.changes)) {}

  int logits_mantissa() const override { return rerun_.logits_mantissa(); }
  Result<compare::RerunResult> run(const compare::RerunInput& input) override { return rerun_.run(input); }
  Result<compare::RerunResult> run_own(const compare::RerunInput& input) override { return rerun_.run_own(input); }

 private:
  const EngineInput input_;
  const CaseOrder order_;
  EngineRerun rerun_;
};

}  // namespace

CaseOrder order_of_way(const Way& way, const CaseOrder& given, const plugin::Plugin& engine, bool own_engine) {
  CaseOrder order = given;
  const Json known = properties_of(engine);
  Json options = Json::parse(given.engine_options.empty() ? "{}" : given.engine_options, nullptr, false);
  if (!own_engine && options.is_object()) {  // what the case says, as far as this engine knows it
    for (auto member = options.begin(); member != options.end();) {
      member = known.contains(member.key()) ? std::next(member) : options.erase(member);
    }
  }
  options = with_members(std::move(options), way.engine_options);
  if (!way.prompt_logprobs && known.contains("skip_prompt_logprobs")) options["skip_prompt_logprobs"] = true;
  order.engine_options = dumped(options);
  order.logprobs = engine.can(ASSAY_CAP_LOGPROBS);
  order.routing = way.prompt_logprobs && engine.can(ASSAY_CAP_ROUTING);
  if (!engine.can(ASSAY_CAP_TOP_N)) order.top_n = 0;
  if (way.drawn) {
    order.temperature = 1;
    order.top_k = 0;
    order.top_p = 0;
  }
  order.prompts.clear();
  order.request_ids.clear();
  return order;
}

EngineLaboratory::~EngineLaboratory() {
  other_model_.reset();
  std::error_code code;
  if (!input_.scratch.empty()) fs::remove_all(input_.scratch, code);
}

EngineInput EngineLaboratory::input_of(const plugin::Plugin& engine, const LoadedModel& model) const {
  EngineInput input{.engine = &engine,
                    .backend = model.backend(),
                    .model = model.model(),
                    .model_config_json = model.config_json(),
                    .tokenizer_json = model.tokenizer_json()};
  if (const auto found = found_.find(engine.name); found != found_.end()) input.found = found->second;
  return input;
}

uint64_t EngineLaboratory::found_of(const plugin::Plugin& engine) const {
  const auto known = found_.find(engine.name);
  if (known != found_.end()) return known->second;
  uint64_t found = engine.capabilities;
  if (&engine == input_.engine && ASSAY_KNOWS(engine.engine(), info) && engine.engine()->info != nullptr) {
    const Result<EngineSession> session =
        EngineSession::open(input_of(engine, *input_.model), input_.order->engine_options);
    if (session) found = session->about().capabilities;  // else the first way says what is wrong
  }
  found_[engine.name] = found;
  return found;
}

Result<const plugin::Plugin*> EngineLaboratory::engine_of(const std::string& name) const {
  if (name.empty() || name == input_.engine->name) return input_.engine;
  return input_.registry->find(plugin::Kind::kEngine, name);
}

std::optional<uint64_t> EngineLaboratory::capabilities(const std::string& engine) const {
  const Result<const plugin::Plugin*> found = engine_of(engine);
  if (!found) return std::nullopt;
  return found_of(**found);
}

bool EngineLaboratory::has_engine_option(const std::string& engine, const std::string& member) const {
  const Result<const plugin::Plugin*> found = engine_of(engine);
  return found.ok() && properties_of(**found).contains(member);
}

bool EngineLaboratory::has_backend_option(const std::string& member) const {
  const plugin::Plugin* backend = input_.model->plugin();
  return backend != nullptr && properties_of(*backend).contains(member);
}

Result<WayResult> EngineLaboratory::run(const Way& way) {
  const Result<const plugin::Plugin*> engine = engine_of(way.engine);
  if (!engine) return engine.status();
  const bool own_engine = *engine == input_.engine;
  if (!own_engine && (*engine)->can(ASSAY_CAP_NEEDS_BACKEND) && input_.model->backend() == nullptr) {
    return unsupported(
        fmt::format("engine {} needs a model, which engine {} has not", (*engine)->name, input_.engine->name));
  }
  const Result<const LoadedModel*> model = model_of(way);
  if (!model) return model.status();
  const LoadedModel& loaded = **model;
  WayResult result;
  result.engine = (*engine)->name;
  result.device = loaded.device();
  result.checkpoint = loaded.checkpoint();
  result.determinism = found_of(**engine) & plugin::kLevels;
  if (loaded.backend() != nullptr) result.determinism &= loaded.levels();
  const CaseOrder order = order_of_way(way, *input_.order, **engine, own_engine);
  if (Status ran = run_calls(way, order, input_of(**engine, loaded), &result); !ran.ok()) return ran;
  std::sort(result.records.begin(), result.records.end(),
            [](const RequestRecord& a, const RequestRecord& b) { return request_id_less(a.id, b.id); });
  return result;
}

Status EngineLaboratory::run_calls(const Way& way, const CaseOrder& way_order, const EngineInput& engine,
                                   WayResult* result) {
  Result<EngineSession> session = EngineSession::open(engine, way_order.engine_options);
  if (!session) return session.status();
  found_[engine.engine->name] = session->about().capabilities;
  if (engine.engine == input_.engine) totals_.about = session->about();
  SessionListener listener;
  listener.finished = [&](const std::string& id, size_t tokens, double seconds) {
    if (input_.finished) input_.finished(way.name, id, tokens, seconds);
  };
  listener.failed = [&](const FailedRequest& failure) {
    if (input_.failed) input_.failed(way.name, failure);
  };
  for (const metamorphic::Call& call : way.calls) {
    if (call.reset_before) {
      if (Status reset = session->reset(); !reset.ok()) return reset;
    }
    const Asked asked = asked_of(call, way_order);
    Result<SessionResult> done = session->call(asked.order, listener, asked.changes);
    if (!done) return done.status();
    add_totals(*done);
    for (RequestRecord& record : done->records) result->records.push_back(std::move(record));
    for (FailedRequest& failure : done->failed) {
      result->failed.push_back({std::move(failure.id), failure.code, std::move(failure.message)});
    }
  }
  return {};
}

std::unique_ptr<compare::Rerun> EngineLaboratory::rerun(const Way& way) {
  const Result<const plugin::Plugin*> engine = engine_of(way.engine);
  if (!engine || way.calls.size() != 1) return nullptr;
  const Result<const LoadedModel*> model = model_of(way);
  if (!model) return nullptr;
  Asked asked = asked_of(way.calls[0], order_of_way(way, *input_.order, **engine, *engine == input_.engine));
  EngineInput input = input_of(**engine, **model);
  if (!EngineRerun::impossible(input, asked.order).empty()) return nullptr;
  return std::make_unique<WayRerun>(std::move(input), std::move(asked), **model);
}

void EngineLaboratory::add_totals(const SessionResult& session) {
  totals_.prompt_tokens += session.prompt_tokens;
  totals_.generated_tokens += session.generated_tokens;
  totals_.prefill_tokens += session.prefill_tokens;
  totals_.prefill_seconds += session.prefill_seconds;
  totals_.restarts += session.restarts;
  totals_.batch = std::max(totals_.batch, session.batch);
  if (totals_.first_token_seconds == 0) totals_.first_token_seconds = session.first_token_seconds;
}

Result<const LoadedModel*> EngineLaboratory::model_of(const Way& way) {
  if (way.backend_options.empty() && !way.resaved) return input_.model;
  if (input_.model->backend() == nullptr) {
    return unsupported(fmt::format("engine {} has no model that could be opened anew", input_.engine->name));
  }
  const Json options = with_members(Json::parse(input_.plan->backend_options, nullptr, false), way.backend_options);
  const std::string kind = dumped(options) + (way.resaved ? " resaved" : "");
  if (other_model_ && other_model_of_ == kind) return &*other_model_;
  other_model_.reset();  // one beside the group's at a time
  WorkerPlan plan = *input_.plan;
  plan.backend_options = dumped(options);
  if (way.resaved) {
    const Result<std::string> folder = resaved_checkpoint();
    if (!folder) return folder.status();
    Json model = Json::parse(plan.model, nullptr, false);
    model["checkpoint"] = *folder;
    plan.model = dumped(model);
  }
  Result<LoadedModel> loaded = LoadedModel::load(plan, *input_.registry);
  if (!loaded) return loaded.status();
  other_model_ = *std::move(loaded);
  other_model_of_ = kind;
  return &*other_model_;
}

Result<std::string> EngineLaboratory::resaved_checkpoint() {
  const std::string& from = input_.model->checkpoint();
  const Result<std::unique_ptr<model::Checkpoint>> checkpoint = model::Checkpoint::open(from);
  if (!checkpoint) return checkpoint.status();
  std::error_code code;
  fs::remove_all(input_.scratch, code);
  fs::create_directories(input_.scratch, code);
  const fs::space_info space = fs::space(input_.scratch, code);
  const uint64_t needed = model::rewritten_bytes(**checkpoint) + kSpareBytes;
  if (!code && space.available < needed) {
    return infra(
        fmt::format("{}: {:.1f} GB are free, {:.1f} GB are needed to write the weights anew; free some or "
                    "name another --output",
                    input_.scratch, static_cast<double>(space.available) / 1e9, static_cast<double>(needed) / 1e9));
  }
  if (Status written = model::rewrite_checkpoint(**checkpoint, input_.scratch); !written.ok()) return written;
  return input_.scratch;
}

}  // namespace assay::run
