#include "core/run/loaded_model.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "assay/sdk.hpp"

namespace assay::run {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Result<LoadedModel> LoadedModel::load(const WorkerPlan& plan, plugin::PluginRegistry& registry) {
  LoadedModel model;
  if (plan.backend.empty()) return model;
  const Json source = Json::parse(plan.model, nullptr, false);
  if (!source.is_object()) return internal("worker plan: \"model\" is no JSON object");
  if (!source.contains("config") || !source.contains("checkpoint")) {
    return invalid(fmt::format("backend {} needs a model: MODEL_ARGS name no checkpoint; add --load", plan.backend));
  }
  model.config_json_ = source["config"].dump();
  model.tokenizer_json_ = source.value("tokenizer", Json::object()).dump();
  model.checkpoint_ = source.value("checkpoint", "");
  model.arithmetic_ = source["config"].value("arithmetic", "");
  const Result<const plugin::Plugin*> backend = registry.find(plugin::Kind::kBackend, plan.backend);
  if (!backend) return backend.status();
  if (Status opened = model.open(plan, **backend); !opened.ok()) return opened;
  return model;
}

Status LoadedModel::open(const WorkerPlan& plan, const plugin::Plugin& plugin) {
  plugin_ = &plugin;
  backend_ = plugin.backend();
  auto source = sdk::sized<assay_model_source>();
  source.config_json = sdk::view(config_json_);
  source.checkpoint = sdk::view(checkpoint_);
  source.options = sdk::view(plan.backend_options);
  void* handle = nullptr;
  if (Status opened = sdk::call(backend_->open, &source, &handle); !opened.ok()) {
    return opened.with("backend " + plugin.name);
  }
  model_ = std::unique_ptr<void, Close>(handle, Close{backend_});
  auto info = sdk::sized<assay_model_info>();
  if (Status asked = sdk::call(backend_->model_info, handle, &info); !asked.ok()) {
    return asked.with("backend " + plugin.name);
  }
  device_ = sdk::text(info.device);
  weight_bytes_ = info.weight_bytes;
  logits_mantissa_ = info.logits_mantissa;
  vocab_size_ = info.vocab_size;
  max_positions_ = info.max_positions;
  routes_ = info.moe_layers > 0 && info.moe_topk > 0;
  const bool says = plugin.abi_minor >= 2 && ASSAY_KNOWS(&info, determinism);
  levels_ = (says ? info.determinism : plugin.capabilities) & plugin::kLevels;
  return {};
}

}  // namespace assay::run
