// What a relation that does not hold points at: its two ways differ in one thing alone.
#include <fmt/format.h>

#include "core/metamorphic/relation.h"
#include "core/report/diagnosis_rules.h"

namespace assay::report {
namespace {

using metamorphic::Relation;

struct Suspect {
  const char* cause;
  const char* where;  // to look
};

Suspect suspect_of(Relation relation) {
  switch (relation) {
    case Relation::kSoloVsBatch:
      return {"the size of the batch", "padding, masks, sums over the rows of a batch, kernels chosen by their number"};
    case Relation::kShuffledOrder:
      return {"the order of the requests",
              "outputs, random draws or cache slots that go by order instead of by request"};
    case Relation::kChangedNeighbours:
      return {"the neighbours in the batch",
              "rows or cache blocks that are mixed up, masks, capacities that experts share among requests"};
    case Relation::kRepeatedCall:
      return {"state left over by an earlier call",
              "cache blocks, positions, samplers or prefixes that the end of a call or a reset does not clean"};
    case Relation::kPrefixCache:
      return {"the prefix cache",
              "keys that do not cover the whole prefix, blocks reused before they are full or after they changed, "
              "positions behind the cached part"};
    case Relation::kChunkedPrefill:
      return {"the borders of prefill chunks",
              "positions or masks that start anew with a chunk, logits taken from the wrong row of the last one"};
    case Relation::kPreemptResume:
      return {"what happens to an interrupted request",
              "generated tokens lost or fed twice when it is computed again, positions, the key of random draws"};
    case Relation::kStopContinue:
      return {
          "the end of a request",
          "the last token's entry in the cache, positions and keys of random draws when it goes on, tokens added or "
          "dropped at the end"};
    case Relation::kStaticVsBuffered:
      return {"one of the two engines", "the relations of each engine by itself, which tell the two apart"};
    case Relation::kPrefillVsDecode:
      return {"prefill and decode compute differently",
              "masks and positions that are off by one, other kernels or rounding points for one row and for many"};
    case Relation::kThreadCount:
      return {"the number of threads",
              "sums divided by threads instead of by size, races, work left out at the borders"};
    case Relation::kSaveLoad:
      return {"weights that a file does not keep", "dtypes, transposed or divided tensors, weights that are left out"};
  }
  return {"", ""};
}

}  // namespace

void diagnose_relation(const ReportCase& report, Diagnoses& found) {
  const std::optional<Relation> relation = metamorphic::parse_relation(report.relation);
  const Verdict verdict = report.verdict.judged.value_or(report.verdict.verdict);
  if (!relation || (verdict != Verdict::kDrift && verdict != Verdict::kDiverged && verdict != Verdict::kFlaky)) return;
  const metamorphic::RelationInfo& info = metamorphic::info_of(*relation);
  const Suspect suspect = suspect_of(*relation);
  found.push_back(
      {suspect.cause, fmt::format("\"{}\" and \"{}\" must give the same and do not, all else being equal: look "
                                  "at {}",
                                  info.reference, info.changed, suspect.where)});
}

}  // namespace assay::report
