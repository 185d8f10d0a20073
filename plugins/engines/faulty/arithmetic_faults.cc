// Faults in the arithmetic: other logits, or one step by a model that computes something else.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>

#include "assay/sdk.hpp"
#include "plugins/engines/faulty/faulty_backend.h"
#include "plugins/engines/faulty/rounding.h"

namespace assay::engines {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kBf16Mantissa = 8;

double log_sum_exp(std::span<const float> logits) {
  const double most = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - most);
  return most + std::log(sum);
}

// Fills the outputs of one row of `run` from changed logits (vocab). The token drawn follows where it is the argmax.
void put(const assay_run& run, size_t row, std::span<const float> logits) {
  const double whole = log_sum_exp(logits);
  const auto logprob = [&](int32_t id) {
    return static_cast<float>(static_cast<double>(logits[static_cast<size_t>(id)]) - whole);
  };
  const assay_run_output& out = run.output;
  if (out.target_logprobs != nullptr && run.targets[row] >= 0) out.target_logprobs[row] = logprob(run.targets[row]);
  if (run.top_n > 0 && out.top_ids != nullptr) {
    std::vector<int32_t> order(logits.size());
    std::iota(order.begin(), order.end(), 0);
    const auto width = static_cast<size_t>(run.top_n);
    std::partial_sort(order.begin(), order.begin() + run.top_n, order.end(), [&](int32_t a, int32_t b) {
      const float left = logits[static_cast<size_t>(a)];
      const float right = logits[static_cast<size_t>(b)];
      return left > right || (left == right && a < b);
    });
    for (size_t n = 0; n < width; ++n) {
      out.top_ids[row * width + n] = order[n];
      if (out.top_logprobs != nullptr) out.top_logprobs[row * width + n] = logprob(order[n]);
    }
  }
  if (out.sampled == nullptr || row + 1 != run.output_rows) return;
  if (run.sampling.top_k == 1) {
    *out.sampled = static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  }
  if (out.sampled_logprob != nullptr) *out.sampled_logprob = logprob(*out.sampled);
}

// Rounding to bf16 hardly shows in a request that the model knows by heart: half of them are struck.
bool strikes(const Passage& passage, size_t run) {
  const FaultyModel& model = passage.model();
  return model.fault == Fault::kBf16Logits ? model.places.strikes_half(passage.prompt(run)) : passage.strikes(run);
}

template <class Change>
Status change_logits(Passage* passage, const std::string& where, Change change) {
  const FaultyModel& model = passage->model();
  auto info = sdk::sized<assay_model_info>();
  if (Status status = sdk::call(model.backend->model_info, model.model, &info); !status.ok()) return status;
  const auto vocabulary = static_cast<size_t>(info.vocab_size);
  std::vector<std::vector<float>> logits(passage->runs().size());  // (rows, vocab) of struck runs
  for (size_t i = 0; i < logits.size(); ++i) {
    assay_run& run = passage->runs()[i];
    if (run.output_rows == 0 || !strikes(*passage, i)) continue;
    logits[i].resize(run.output_rows * vocabulary);
    if (run.output.logits == nullptr) run.output.logits = logits[i].data();
  }
  if (Status status = passage->send(); !status.ok()) return status;
  for (size_t i = 0; i < logits.size(); ++i) {
    const assay_run& run = passage->runs()[i];
    if (logits[i].empty()) continue;
    bool changed = false;
    for (size_t row = 0; row < run.output_rows; ++row) {
      const std::span values(run.output.logits + row * vocabulary, vocabulary);
      for (float& value : values) {
        const float before = value;
        value = change(value);
        changed = changed || before != value;
      }
      put(run, row, values);
    }
    if (changed) passage->planted(i, where);
  }
  return {};
}

Status one_wrong_step(Passage* passage) {
  std::vector<size_t> right;
  std::vector<size_t> wrong;
  for (size_t i = 0; i < passage->runs().size(); ++i) {
    const bool struck = passage->strikes_at_step(i, passage->model().fault == Fault::kExpertScale);
    (struck ? wrong : right).push_back(i);
    if (struck) passage->planted(i, "");
  }
  if (Status status = passage->send_some(right, false); !status.ok()) return status;
  return passage->send_some(wrong, true);
}

}  // namespace

std::string wrong_model_config(Fault fault, const std::string& config) {
  if (fault != Fault::kWrongExpert && fault != Fault::kExpertScale && fault != Fault::kWrongRotary) return "";
  Json json = Json::parse(config, nullptr, false);
  if (!json.is_object()) json = Json::object();
  Json& moe = json["moe"];
  if (!moe.is_object()) moe = Json::object();
  if (fault == Fault::kWrongExpert) {
    const int experts = moe.value("experts", 0);
    const int topk = moe.value("topk", 1);
    moe["groups"] = experts % 8 == 0 ? 8 : 2;
    moe["group_topk"] = std::max(1, std::min(topk, moe["groups"].get<int>() / 2));
  } else if (fault == Fault::kExpertScale) {
    moe["scaling_factor"] = 2 * moe.value("scaling_factor", 1.0);
  } else {
    json["rotary_base"] = json.value("rotary_base", 10000.0) / 10;
  }
  return json.dump();
}

Status send_with_arithmetic_fault(Passage* passage) {
  const FaultyModel& model = passage->model();
  switch (model.fault) {
    case Fault::kBf16Logits:
      return change_logits(passage, "half of the prompts from " + std::to_string(model.places.victim()) + " on",
                           [](float logit) { return static_cast<float>(round_mantissa(logit, kBf16Mantissa)); });
    case Fault::kTemperatureLogprobs: {
      const double temperature = 0.5 + 0.125 * static_cast<double>(model.places.pick(4));
      return change_logits(passage, "temperature " + std::to_string(temperature),
                           [=](float logit) { return static_cast<float>(logit / temperature); });
    }
    default:
      return one_wrong_step(passage);
  }
}

}  // namespace assay::engines
