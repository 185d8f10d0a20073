#include "core/run/maker.h"

#include <fmt/format.h>
#include <sys/utsname.h>

#include <nlohmann/json.hpp>

#include "core/golden/date.h"
#include "core/golden/digest.h"
#include "core/run/backend_choice.h"

namespace assay::run {
namespace {

std::string digest_or_empty(const std::filesystem::path& file) {
  const Result<std::string> digest = digest_of_file(file.string());
  return digest ? *digest : "";
}

std::string kernel_release() {
  utsname machine{};
  ::uname(&machine);
  return fmt::format("{} {}", machine.sysname, machine.release);
}

// Bits of mantissa with the hidden one (plugin_abi.h) to the dtype's name.
std::string dtype_of(int32_t mantissa) {
  switch (mantissa) {
    case 24:
      return "fp32";
    case 11:
      return "fp16";
    case 8:
      return "bf16";
    default:
      return "";
  }
}

}  // namespace

Maker::Maker(const WorkerPlan& plan, const plugin::Plugin& engine, const LoadedModel& model) : model_(model) {
  known_.run_id = plan.run_id;
  known_.assay_version = plan.assay_version;
  known_.platform = plan.platform;
  if (!engine.can(ASSAY_CAP_RECORDED)) {
    known_.engine = engine.name;
    known_.engine_version = engine.version;
    known_.engine_build = digest_or_empty(engine.file);
  }
  if (const plugin::Plugin* backend = model.plugin()) {
    known_.backend = backend->name;
    known_.backend_version = backend->version;
    known_.backend_build = digest_or_empty(backend->file);
    known_.dtype = dtype_of(model.logits_mantissa());
    known_.device = model.device();
    if (default_platform(backend->name) == default_platform("")) known_.driver = kernel_release();
  }
}

Provenance Maker::provenance(uint64_t requests, uint64_t batch) const {
  Provenance made = known_;
  made.recorded_at = utc_now();
  made.schedule = fmt::format("{} request{}, batch {}", requests, requests == 1 ? "" : "s", batch);
  return made;
}

Result<Maker::Digests> Maker::read_digests() const {
  Digests digests;
  if (!model_.checkpoint().empty()) {
    Result<std::string> weights = digest_of_folder(model_.checkpoint());
    if (!weights) return weights.status().with("sha256 of the weights");
    digests.weights = *std::move(weights);
  }
  const nlohmann::json spec = nlohmann::json::parse(model_.tokenizer_json(), nullptr, false);
  const std::string file = spec.is_object() ? spec.value("model", "") : "";
  if (!file.empty()) {
    Result<std::string> tokenizer = digest_of_file(file);
    if (!tokenizer) return tokenizer.status().with("sha256 of the tokenizer");
    digests.tokenizer = *std::move(tokenizer);
  }
  return digests;
}

Status Maker::add_digests(Provenance* provenance) {
  if (!digests_) digests_ = read_digests();
  if (!digests_->ok()) return digests_->status();
  provenance->weights_sha256 = (**digests_).weights;
  provenance->tokenizer_sha256 = (**digests_).tokenizer;
  return {};
}

}  // namespace assay::run
