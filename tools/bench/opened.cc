#include "tools/bench/opened.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "assay/sdk.hpp"
#include "backends/model/checkpoint/model_writer.h"
#include "core/run/backend_choice.h"
#include "core/run/stopwatch.h"
#include "tools/bandwidth/read_bandwidth.h"
#include "tools/bench/work.h"

namespace assay::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kReadBytes = size_t{1} << 30;  // of one pass over the host's memory
constexpr int kReadPasses = 4;

Result<Json> options_of(const std::string& text) {
  Json json = Json::parse(text.empty() ? "{}" : text, nullptr, false);
  if (json.is_object()) return json;
  return invalid(fmt::format("--backend-options '{}': expected a JSON object like {{\"threads\":2}}", text));
}

bool has_option(const plugin::Plugin& plugin, const char* name) {
  const Json schema = Json::parse(plugin.options_schema, nullptr, false);
  return schema.is_object() && schema.value("properties", Json::object()).contains(name);
}

// A checkpoint of random weights.
Result<TemporaryFolder> write_random(const model::ModelConfig& config, uint64_t seed) {
  Result<TemporaryFolder> folder = TemporaryFolder::make();
  if (!folder) return folder.status();
  model::CheckpointSpec spec;
  spec.model = config;
  spec.seed = seed;
  if (config.arithmetic == model::Arithmetic::kFp32) spec.dtype = model::Dtype::kFloat32;
  std::error_code error;
  const std::uintmax_t room = std::filesystem::space(folder->path(), error).available;
  const double needed = static_cast<double>(parameters(config)) * static_cast<double>(model::dtype_size(spec.dtype));
  if (!error && needed > static_cast<double>(room)) {
    return exhausted(
        fmt::format("a checkpoint of {:.2f} GB in {}, where {:.2f} GB are free; set TMPDIR to a larger place",
                    needed * 1e-9, folder->path().parent_path().string(), static_cast<double>(room) * 1e-9));
  }
  if (Status written = model::write_checkpoint(spec, folder->path().string()); !written.ok()) return written;
  return folder;
}

}  // namespace

Result<Opened> Opened::open(const Subject& subject, const OpenRequest& request, plugin::PluginRegistry& registry) {
  Opened opened;
  opened.config_ = subject.config;
  opened.backend_ = request.backend;
  if (opened.backend_ == "auto") {
    Result<std::string> best = run::BackendChoice(registry).best();
    if (!best) return best.status();
    opened.backend_ = *std::move(best);
  }
  const Result<const plugin::Plugin*> plugin = registry.find(plugin::Kind::kBackend, opened.backend_);
  if (!plugin) return plugin.status();
  Result<Json> options = options_of(request.options);
  if (!options) return options.status();
  std::string checkpoint = subject.checkpoint;
  if (request.random && has_option(**plugin, "weights")) {
    (*options)["weights"] = fmt::format("random:{}", *request.random);
  } else if (request.random) {
    Result<TemporaryFolder> folder = write_random(subject.config, *request.random);
    if (!folder) return folder.status().with("random weights");
    checkpoint = folder->path().string();
    opened.written_ = *std::move(folder);
  }
  const Json model = {{"config", Json::parse(model::to_json(subject.config))}, {"checkpoint", checkpoint}};
  run::WorkerPlan plan;
  plan.backend = opened.backend_;
  plan.backend_options = options->dump();
  plan.model = model.dump(-1, ' ', false, Json::error_handler_t::replace);
  const run::Stopwatch watch;
  Result<run::LoadedModel> loaded = run::LoadedModel::load(plan, registry);
  if (!loaded) return loaded.status();
  opened.seconds_ = watch.seconds();
  opened.model_ = *std::move(loaded);
  const Result<MachineFacts> device = opened.device();
  if (!device && device.status().code() != StatusCode::kUnsupported) return device.status();
  opened.measures_device_ = device.ok();
  return opened;
}

double Opened::number() const {
  return std::max(1.0, std::round(static_cast<double>(model_.weight_bytes()) /
                                  static_cast<double>(std::max<uint64_t>(parameters(config_), 1))));
}

// kUnsupported where the backend measures nothing.
Result<MachineFacts> Opened::device() const {
  const assay_backend_table* table = model_.backend();
  if (!ASSAY_KNOWS(table, device_facts) || table->device_facts == nullptr) {
    return unsupported("backend " + backend_ + " measures nothing");
  }
  auto facts = sdk::sized<assay_device_facts>();
  if (Status asked = sdk::call(table->device_facts, model_.model(), &facts); !asked.ok()) {
    return asked.with("backend " + backend_);
  }
  return MachineFacts{facts.read_bandwidth, facts.memory_used, facts.memory_total};
}

Result<MachineFacts> Opened::machine() const {
  if (measures_device_) return device();
  const int threads = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  MachineFacts facts;
  facts.read_bandwidth = tools::measure_read_bandwidth(kReadBytes, threads, kReadPasses).best_gb_per_s * 1e9;
  return facts;
}

uint64_t host_peak() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace assay::bench
