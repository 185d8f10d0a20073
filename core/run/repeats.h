// A case that is run several times: are the results the same, and what is the verdict of all of them? Pure, except
// folder names.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "assay/golden.h"
#include "assay/verdict.h"

namespace assay::run {

// Folder of a case below cases/: its name, but that a part like repeat_2 in the folder of another case gets a "~" at
// its end, as a repeat of that case has this folder.
std::string id_of_case(const std::string& name);

// OUTPUT/cases/ID for the first repeat, .../repeat_2 for the second and so on.
std::filesystem::path folder_of_repeat(const std::filesystem::path& output, const std::string& id, int repeat);

// In that folder: a checkpoint that a relation wrote anew, while the relation runs.
inline constexpr const char* kResavedFolder = "resaved";

struct RepeatVerdict {
  CaseVerdict verdict;
  bool has_results = false;  // of every request, in actual.json
  std::string difference;    // compare::first_difference from the earliest repeat that has results
};

struct CombinedVerdict {
  CaseVerdict verdict;  // findings and evidence are those of `shown`
  size_t shown = 0;     // index of the repeat that explains the verdict
};

// Name of the part of the verdict that tells how the repeats compare with each other.
inline constexpr std::string_view kRepeatsMetric = "repeats";

// `repeats` (at least one) of `planned`:
//   all pass, bit-equal      the worst of their verdicts
//   all pass, not bit-equal  the same, but at least EQUIVALENT
//   some pass, some fail     FLAKY; INFRA where nothing but INFRA kept the others from passing
//   none passes              the worst of their verdicts, INFRA only where all are
CombinedVerdict combine_repeats(const std::vector<RepeatVerdict>& repeats, size_t planned);

}  // namespace assay::run
