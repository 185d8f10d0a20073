// Metrics top_n_logprobs and generated_top_n_logprobs: the lists of likeliest tokens at every generated position.
// Entries are known by their text. One that both sides hold may differ by the tolerance of logprobs. One that a side
// lacks is a tie at the boundary of the list where its logprob is within tolerance of that side's last entry; else its
// logprob there is beyond tolerance too, by at least the distance to the last entry. An entry of the result below the
// golden's last one is no difference. Where the generated tokens part, the position at which
// they do is the last one compared: what comes before it is the same on both sides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>

#include "assay/sdk.hpp"
#include "core/compare/comparator.h"
#include "core/compare/divergence.h"
#include "core/compare/tolerance.h"
#include "core/golden/text.h"

namespace {

using assay::compare::emit;
using assay::compare::Tolerance;
namespace sdk = assay::sdk;
using Entries = std::span<const assay_candidate>;

std::string shown(assay_str token) { return assay::text::quoted(sdk::text(token), 20); }

const assay_candidate* find(Entries entries, assay_str token) {
  const auto same = [&](const assay_candidate& entry) { return sdk::text(entry.text) == sdk::text(token); };
  const auto found = std::find_if(entries.begin(), entries.end(), same);
  return found == entries.end() ? nullptr : &*found;
}

// Logprob at which a list ends. Entries may stand in any order.
double last_of(Entries entries) {
  return std::min_element(entries.begin(), entries.end(),
                          [](const assay_candidate& a, const assay_candidate& b) { return a.logprob < b.logprob; })
      ->logprob;
}

// What one pair's lists show.
struct Seen {
  uint64_t compared = 0;   // entries
  uint64_t different = 0;  // entries that are not the same on both sides
  uint64_t ties = 0;       // of them, entries at the boundary that one side lacks
  uint64_t over = 0;       // entries of both sides beyond tolerance
  uint64_t missing = 0;    // entries that one side lacks and no tie explains
  double max = 0;     // |golden - result| of entries of both sides and, of missing ones, the distance to the boundary
  std::string worst;  // where that is
  std::string first_missing;
  size_t worst_position = 0;
  size_t first_missing_position = 0;
};

class Lists {
 public:
  Lists(const Tolerance& tolerance, Seen& seen) : tolerance_(tolerance.value), seen_(seen) {}

  void compare(size_t position, Entries golden, Entries result) {
    for (const assay_candidate& entry : golden) {
      ++seen_.compared;
      const assay_candidate* other = find(result, entry.text);
      if (other != nullptr) {
        shared(position, entry, *other);
      } else {
        lacks(position, "result", entry, std::fabs(entry.logprob - last_of(result)));
      }
    }
    const double last = last_of(golden);
    for (const assay_candidate& entry : result) {
      if (find(golden, entry.text) != nullptr || entry.logprob < last) continue;
      ++seen_.compared;
      lacks(position, "golden", entry, entry.logprob - last);
    }
  }

 private:
  void shared(size_t position, const assay_candidate& golden, const assay_candidate& result) {
    const double difference = std::fabs(golden.logprob - result.logprob);
    if (difference > 0) ++seen_.different;
    if (difference > tolerance_) ++seen_.over;
    if (difference <= seen_.max) return;
    note_worst(position, difference,
               fmt::format("{}: golden {:.6g}, result {:.6g}", shown(golden.text), golden.logprob, result.logprob));
  }

  void lacks(size_t position, const char* side, const assay_candidate& entry, double distance) {
    ++seen_.different;
    if (distance <= tolerance_) {
      ++seen_.ties;
    } else if (++seen_.missing == 1) {
      seen_.first_missing_position = position;
      seen_.first_missing = fmt::format("the {} lacks {} (logprob {:.6g}), {:.3g} from its last entry", side,
                                        shown(entry.text), entry.logprob, distance);
    }
    if (distance > seen_.max)
      note_worst(position, distance, fmt::format("{} missing in the {}", shown(entry.text), side));
  }

  void note_worst(size_t position, double difference, std::string what) {
    seen_.max = difference;
    seen_.worst_position = position;
    seen_.worst = std::move(what);
  }

  double tolerance_;
  Seen& seen_;
};

void broken(const assay_sink& sink, assay_str id, int64_t index, std::string message) {
  emit(sink, {.kind = ASSAY_FINDING_BROKEN, .id = id, .index = index, .message = std::move(message)});
}

// Positions that both sides share, or nullopt after a finding.
std::optional<size_t> shared_positions(const assay_sink& sink, const assay_pair& pair, std::optional<size_t> split) {
  const size_t golden = pair.reference->top_n.positions;
  const size_t result = pair.candidate->top_n.positions;
  for (const auto& [record, side] : {std::pair(pair.reference, "golden"), std::pair(pair.candidate, "result")}) {
    if ((record->has & ASSAY_HAS_TOKENS) == 0 || record->top_n.positions == record->tokens.size) continue;
    broken(sink, pair.id, -1,
           fmt::format("the {} has top-n lists of {} positions for {} generated tokens, expected one each", side,
                       record->top_n.positions, record->tokens.size));
    return std::nullopt;
  }
  if (golden == 0 || result == 0) {
    broken(sink, pair.id, -1, fmt::format("the top-n lists of the {} are empty", golden == 0 ? "golden" : "result"));
    return std::nullopt;
  }
  if (split) return std::min({*split + 1, golden, result});
  if (golden == result) return golden;
  broken(sink, pair.id, -1,
         fmt::format("top-n lists differ in number of positions: golden {}, result {}", golden, result));
  return std::nullopt;
}

// False after a finding.
bool compare_lists(const assay_sink& sink, const assay_pair& pair, size_t positions, Lists lists) {
  const assay_candidates& golden = pair.reference->top_n;
  const assay_candidates& result = pair.candidate->top_n;
  const assay_candidate* golden_entry = golden.entries;
  const assay_candidate* result_entry = result.entries;
  for (size_t position = 0; position < positions; ++position) {
    const Entries reference(golden_entry, golden.counts[position]);
    const Entries candidate(result_entry, result.counts[position]);
    golden_entry += golden.counts[position];
    result_entry += result.counts[position];
    for (const auto& [entries, side] : {std::pair(reference, "golden"), std::pair(candidate, "result")}) {
      const auto bad = std::find_if(entries.begin(), entries.end(),
                                    [](const assay_candidate& entry) { return !std::isfinite(entry.logprob); });
      if (!entries.empty() && bad == entries.end()) continue;
      broken(sink, pair.id, static_cast<int64_t>(position),
             entries.empty() ? fmt::format("top-n list {} of the {} is empty", position, side)
                             : fmt::format("top-n list {} of the {}: logprob of {} is {}", position, side,
                                           shown(bad->text), bad->logprob));
      return false;
    }
    lists.compare(position, reference, candidate);
  }
  return true;
}

std::string describe(const Seen& seen, const Tolerance& tolerance) {
  std::string line = fmt::format("max |Δ| {:.3g}", seen.max);
  if (seen.max > 0) line += fmt::format(" at position {} {}", seen.worst_position, seen.worst);
  line += fmt::format(", {} of {} entries over tolerance {:g} ({}), {} ties at the boundary", seen.over, seen.compared,
                      tolerance.value, tolerance.source, seen.ties);
  if (seen.missing > 0) {
    line += fmt::format(", {} missing on one side, first at position {}: {}", seen.missing, seen.first_missing_position,
                        seen.first_missing);
  }
  return line;
}

uint32_t kind_of(const Seen& seen) {
  if (seen.over + seen.missing > 0) return ASSAY_FINDING_BEYOND;
  return seen.different > 0 ? ASSAY_FINDING_WITHIN : ASSAY_FINDING_EQUAL;
}

void judge_pair(const assay_sink& sink, const assay_pair& pair, const Tolerance& tolerance) {
  if (assay::compare::emit_missing(sink, pair, ASSAY_HAS_TOP_N, "generated_top_n_logprobs")) return;
  std::optional<size_t> split;
  if ((pair.reference->has & pair.candidate->has & ASSAY_HAS_TOKENS) != 0) {
    split = assay::compare::first_divergent_token(pair.reference->tokens, pair.candidate->tokens);
  }
  const std::optional<size_t> positions = shared_positions(sink, pair, split);
  if (!positions) return;
  Seen seen;
  if (!compare_lists(sink, pair, *positions, Lists(tolerance, seen))) return;
  const uint32_t kind = kind_of(seen);
  const bool within = kind == ASSAY_FINDING_EQUAL || kind == ASSAY_FINDING_WITHIN;
  if (!split || !within) {
    emit(sink, {.kind = kind,
                .id = pair.id,
                .index = static_cast<int64_t>(seen.missing > 0 ? seen.first_missing_position : seen.worst_position),
                .compared = seen.compared,
                .differing = seen.over + seen.missing,
                .max_abs_difference = seen.max,
                .smallest_passing_tolerance = seen.max,
                .message = describe(seen, tolerance) + fmt::format(", smallest passing tolerance {}", seen.max)});
  }
  if (!split) return;
  emit(sink, {.kind = ASSAY_FINDING_DIFFERS,
              .id = pair.id,
              .index = static_cast<int64_t>(*split),
              .compared = within ? seen.compared : 0,
              .differing = 1,
              .max_abs_difference = seen.max,
              .message = fmt::format("tokens part at generated token {}: only the lists of the {} positions up to "
                                     "there are compared; {}; {}",
                                     *split, *positions, describe(seen, tolerance),
                                     assay::compare::describe_tokens(*pair.reference, *pair.candidate, *split))});
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  using assay::compare::ComparatorOptions;
  return assay::compare::judge_with_options(*judgement, error, [&](const ComparatorOptions& options) -> assay::Status {
    const Tolerance tolerance = assay::compare::logprob_tolerance(options);
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(*sink, judgement->pairs[i], tolerance);
    return {};
  });
}

const char* const kMetrics[] = {"top_n_logprobs", "generated_top_n_logprobs"};
const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, kMetrics, std::size(kMetrics)};
const assay_plugin kPlugin = assay::compare::comparator_plugin(
    "top_n_logprobs", "lists of the likeliest tokens, with ties at their ends", ASSAY_CAP_TOP_N, &kTable);

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
