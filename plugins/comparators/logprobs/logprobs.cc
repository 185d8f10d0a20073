// Metric logprobs: |golden - result| <= tolerance at every position (nats), prompt and generated; the tolerance is that
// of logprob_tolerance.
// Where the generated tokens part, the values up to there are compared and the rest means nothing.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"
#include "core/compare/tolerance.h"

namespace {

using assay::compare::emit;
using assay::compare::Tolerance;
namespace sdk = assay::sdk;

struct Statistics {
  uint64_t count = 0;
  uint64_t over = 0;       // values beyond tolerance
  uint64_t different = 0;  // values not equal
  double sum = 0;
  double max = 0;
  size_t max_index = 0;
  std::string max_id;               // request
  std::vector<double> differences;  // (count) in no order

  void add(const Statistics& other) {
    if (other.max > max || count == 0) {
      max = other.max;
      max_index = other.max_index;
      max_id = other.max_id;
    }
    count += other.count;
    over += other.over;
    different += other.different;
    sum += other.sum;
    differences.insert(differences.end(), other.differences.begin(), other.differences.end());
  }

  // The least difference that 99 of 100 do not exceed: the one of rank ceil(0.99 * count).
  double p99() {
    if (differences.empty()) return 0;
    const size_t rank = (differences.size() * 99 + 99) / 100 - 1;
    const auto place = differences.begin() + static_cast<ptrdiff_t>(rank);
    std::nth_element(differences.begin(), place, differences.end());
    return *place;
  }

  // Without the tolerance that would pass: where tokens part, none would.
  std::string numbers(const Tolerance& tolerance) {
    return fmt::format(
        "max |Δ| {:.3g} at request {} index {}, mean {:.3g}, p99 {:.3g}, {} of {} over tolerance {:g} ({})", max,
        max_id, max_index, count > 0 ? sum / static_cast<double>(count) : 0.0, p99(), over, count, tolerance.value,
        tolerance.source);
  }

  std::string line(const Tolerance& tolerance) {
    return numbers(tolerance) + fmt::format(", smallest passing tolerance {}", max);
  }

  assay_finding_kind kind() const {
    if (over > 0) return ASSAY_FINDING_BEYOND;
    return different > 0 ? ASSAY_FINDING_WITHIN : ASSAY_FINDING_EQUAL;
  }
};

void broken(const assay_sink& sink, assay_str id, int64_t index, std::string message) {
  emit(sink, {.kind = ASSAY_FINDING_BROKEN, .id = id, .index = index, .message = std::move(message)});
}

// How many leading values of both lists belong together, and where the tokens part.
struct Shared {
  size_t values = 0;
  std::optional<size_t> divergent_token;
};

// nullopt: a finding was emitted instead.
std::optional<Shared> shared_part(const assay_sink& sink, const assay_pair& pair) {
  const assay_record& golden = *pair.reference;
  const assay_record& result = *pair.candidate;
  if ((golden.has & result.has & ASSAY_HAS_TOKENS) == 0) {
    if (golden.logprobs.size == result.logprobs.size) return Shared{golden.logprobs.size, std::nullopt};
    broken(sink, pair.id, -1,
           fmt::format("logprobs differ in length: golden {}, result {}", golden.logprobs.size, result.logprobs.size));
    return std::nullopt;
  }
  for (const auto& [record, side] : {std::pair(&golden, "golden"), std::pair(&result, "result")}) {
    if (record->logprobs.size >= record->tokens.size) continue;
    broken(sink, pair.id, -1,
           fmt::format("the {} has {} logprobs for {} generated tokens, expected at least one each", side,
                       record->logprobs.size, record->tokens.size));
    return std::nullopt;
  }
  const size_t golden_prompt = golden.logprobs.size - golden.tokens.size;
  const size_t result_prompt = result.logprobs.size - result.tokens.size;
  if (golden_prompt != result_prompt) {
    if (golden_prompt == 0 || result_prompt == 0) {
      emit(sink, {.kind = ASSAY_FINDING_MISSING,
                  .id = pair.id,
                  .message = fmt::format("the {} lacks logprobs of prompt positions (golden {} + {} generated, result "
                                         "{} + {})",
                                         result_prompt == 0 ? "result" : "golden", golden_prompt, golden.tokens.size,
                                         result_prompt, result.tokens.size)});
    } else {
      broken(sink, pair.id, -1,
             fmt::format("logprobs of prompt positions differ in number: golden {}, result {}: other prompt tokens",
                         golden_prompt, result_prompt));
    }
    return std::nullopt;
  }
  const std::optional<size_t> token = assay::compare::first_divergent_token(golden.tokens, result.tokens);
  return Shared{golden_prompt + token.value_or(golden.tokens.size), token};
}

// nullopt: a finding was emitted instead.
std::optional<Statistics> measure(const assay_sink& sink, const assay_pair& pair, size_t values, double tolerance) {
  Statistics statistics;
  statistics.max_id = sdk::text(pair.id);
  statistics.count = values;
  statistics.differences.reserve(values);
  for (size_t i = 0; i < values; ++i) {
    const double golden = pair.reference->logprobs.data[i];
    const double result = pair.candidate->logprobs.data[i];
    if (!std::isfinite(golden) || !std::isfinite(result)) {
      broken(sink, pair.id, static_cast<int64_t>(i),
             fmt::format("logprobs[{}] is not finite: golden {}, result {}", i, golden, result));
      return std::nullopt;
    }
    const double difference = std::fabs(golden - result);
    statistics.sum += difference;
    statistics.differences.push_back(difference);
    statistics.over += difference > tolerance ? 1U : 0U;
    statistics.different += difference > 0 ? 1U : 0U;
    if (difference > statistics.max) {
      statistics.max = difference;
      statistics.max_index = i;
    }
  }
  return statistics;
}

void judge_pair(const assay_sink& sink, const assay_pair& pair, const Tolerance& tolerance, Statistics& all) {
  if (assay::compare::emit_missing(sink, pair, ASSAY_HAS_LOGPROBS, "logprobs")) return;
  if (pair.reference->logprobs.size == 0 || pair.candidate->logprobs.size == 0) {
    broken(sink, pair.id, -1,
           fmt::format("logprobs of the {} is empty", pair.reference->logprobs.size == 0 ? "golden" : "result"));
    return;
  }
  const std::optional<Shared> shared = shared_part(sink, pair);
  if (!shared) return;
  std::optional<Statistics> statistics = measure(sink, pair, shared->values, tolerance.value);
  if (!statistics) return;
  all.add(*statistics);
  // Findings of equal length that tell one story: numbers of the shared part, then the token that ends it.
  if (!shared->divergent_token || statistics->over > 0) {
    emit(sink, {.kind = statistics->kind(),
                .id = pair.id,
                .index = static_cast<int64_t>(statistics->max_index),
                .compared = statistics->count,
                .differing = statistics->over,
                .max_abs_difference = statistics->max,
                .smallest_passing_tolerance = statistics->max,
                .message = statistics->line(tolerance)});
  }
  if (!shared->divergent_token) return;
  emit(sink, {.kind = ASSAY_FINDING_DIFFERS,
              .id = pair.id,
              .index = static_cast<int64_t>(shared->values),
              .compared = statistics->over > 0 ? 0 : statistics->count,
              .differing = 1,
              .max_abs_difference = statistics->max,
              .message = fmt::format(
                  "tokens part at generated token {}: only the {} logprobs before it are compared, "
                  "later ones belong to other texts; {}; {}",
                  *shared->divergent_token, shared->values, statistics->numbers(tolerance),
                  assay::compare::describe_tokens(*pair.reference, *pair.candidate, *shared->divergent_token))});
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    const Tolerance tolerance = assay::compare::logprob_tolerance(options);
    Statistics all;
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(*sink, judgement->pairs[i], tolerance, all);
    if (all.count > 0 && judgement->pair_count > 1) {
      emit(*sink, {.kind = ASSAY_FINDING_NOTE,
                   .index = static_cast<int64_t>(all.max_index),
                   .compared = all.count,
                   .differing = all.over,
                   .max_abs_difference = all.max,
                   .smallest_passing_tolerance = all.max,
                   .message = "all requests: " + all.line(tolerance)});
    }
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "logprobs", "log-probabilities within an absolute tolerance", ASSAY_CAP_LOGPROBS, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
