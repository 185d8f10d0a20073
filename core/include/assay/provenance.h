// The object "assay" of a golden file: where its values come from, who accepted them, and how noisy they are.
// Plain data and pure functions; safe from any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay {

// What made a set of results. Empty members are not known.
struct Provenance {
  std::string run_id = {};
  std::string recorded_at = {};  // UTC, "2026-11-29T19:22:41Z"
  std::string assay_version = {};
  std::string engine = {};          // plugin name
  std::string engine_version = {};  // as the plugin says
  std::string engine_build = {};    // sha256 of the plugin's file
  std::string backend = {};
  std::string backend_version = {};
  std::string backend_build = {};
  std::string weights_sha256 = {};    // see weights_digest
  std::string tokenizer_sha256 = {};  // of the tokenizer's file
  std::string dtype = {};             // of the logits: "fp32", "bf16"
  std::string device = {};            // as the backend says
  std::string driver = {};            // kernel release, or the accelerator's driver version
  std::string platform = {};
  std::string schedule = {};                      // "2 requests, batch 1"
  std::map<std::string, std::string> facts = {};  // that the opened engine told of itself: its server, its model ...
};

// Run-to-run and batch-to-batch noise of one metric, measured by calibration.
struct MetricNoise {
  double max = 0;       // largest |difference| of two values that should be equal, in the metric's unit
  double p99 = 0;       // 99th percentile of them
  double relative = 0;  // performance metrics: (max - min) / median of the repeats' medians
  uint64_t samples = 0;
};

struct NoiseModel {
  uint64_t repeats = 0;
  std::string measured_at = {};  // UTC
  std::string device = {};
  std::vector<std::string> shapes = {};  // batch shapes that were compared: "batch 1", "batch 4"
  std::map<std::string, MetricNoise> metrics = {};
};

// Who let a metric's values into the golden.
struct Acceptance {
  std::string metric = {};  // "*": the whole file
  std::string who = {};
  std::string when = {};  // UTC
  std::string why = {};
  std::string run_id = {};
};

struct GoldenMeta {
  std::optional<Provenance> provenance = {};
  std::optional<NoiseModel> noise = {};
  std::vector<Acceptance> accepted = {};  // oldest first
  std::vector<std::pair<std::string, std::string>>
      further;  // members of other makers: name, JSON text; kept as they are
};

// Parses ResultSet::extra; empty text is an empty meta. Fails with kInvalid: not an object, a member of ours of the
// wrong type.
Result<GoldenMeta> parse_golden_meta(std::string_view json);

// Members in a fixed order, empty ones left out; "" when there is nothing to say.
std::string to_json(const GoldenMeta& meta);
std::string to_json(const Provenance& provenance);
Result<Provenance> parse_provenance(std::string_view json);

// A line for each member that both sides know and that differs, run_id and recorded_at apart: "device: golden NVIDIA
// H200, result cpu avx512 x2". Facts by their names: "facts.model: golden a, result b".
std::vector<std::string> provenance_differences(const Provenance& golden, const Provenance& result);

}  // namespace assay
