// One call of `judge`, on lent memory, with what it promises expected.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/conformance/comparator_records.h"
#include "core/conformance/findings.h"

namespace assay::conformance {

struct JudgeInput {
  std::string metric;
  std::vector<std::pair<RecordData, RecordData>> pairs;  // golden, result
  std::vector<QuantityData> reference_quantities;
  std::vector<QuantityData> candidate_quantities;
  std::string options = "{}";
  bool known_completion = false;
  size_t record_size = sizeof(assay_record);  // of a host that is older or newer
};

// Two whole records that are equal on both sides.
JudgeInput equal_input(const std::string& metric);

struct Judged {
  Called called;
  std::vector<std::string> findings;  // "EQUAL 0 3 message", in order
  uint32_t kinds = 0;                 // bit of every assay_finding_kind that was emitted

  bool has(assay_finding_kind kind) const { return (kinds >> kind & 1) != 0; }
  // Something was judged and nothing speaks against the result.
  bool passes() const;
  std::string text() const;  // the first finding that does not pass, else the first one
};

Judged judge(const Subject& subject, Findings& findings, const JudgeInput& input);

}  // namespace assay::conformance
