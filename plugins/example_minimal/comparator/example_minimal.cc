// Comparator example_minimal: the generated text of a result equals the golden's.
#include <algorithm>
#include <string>
#include <string_view>

#include "assay/sdk.hpp"

namespace {

using assay::Status;
using namespace assay::sdk;

void judge_pair(const assay_pair& pair, const assay_sink& sink) {
  auto finding = sized<assay_finding>();
  finding.id = pair.id;
  finding.index = -1;
  std::string message;
  if ((pair.reference->has & pair.candidate->has & ASSAY_HAS_TEXT) == 0) {
    finding.kind = ASSAY_FINDING_MISSING;  // what is not there never counts as equal
    message = (pair.reference->has & ASSAY_HAS_TEXT) == 0 ? "the golden has no text" : "the result has no text";
  } else {
    const std::string_view golden = text(pair.reference->text);
    const std::string_view result = text(pair.candidate->text);
    const auto parted = std::mismatch(golden.begin(), golden.end(), result.begin(), result.end());
    const bool equal = golden == result;
    finding.kind = equal ? ASSAY_FINDING_EQUAL : ASSAY_FINDING_DIFFERS;
    finding.compared = 1;
    finding.differing = equal ? 0 : 1;
    if (!equal) finding.index = parted.first - golden.begin();
    message = equal ? "texts are equal" : "texts part at byte " + std::to_string(finding.index);
  }
  finding.message = view(message);  // copied before `finding` returns
  sink.finding(sink.context, &finding);
}

int32_t judge(const assay_judgement* judgement, const assay_sink* sink, assay_error* error) {
  return guarded(error, [&]() -> Status {
    for (size_t i = 0; i < judgement->pair_count; ++i) judge_pair(judgement->pairs[i], *sink);
    return {};
  });
}

const assay_comparator_table kTable = {sizeof(assay_comparator_table), 0, judge, nullptr, 0};

const assay_plugin kPlugin = {ASSAY_PLUGIN_MAGIC,
                              sizeof(assay_plugin),
                              ASSAY_ABI_MAJOR,
                              ASSAY_ABI_MINOR,
                              ASSAY_COMPARATOR,
                              0,
                              ASSAY_CAP_TEXT,     // what an engine must give for it
                              "example_minimal",  // the file is comparator_example_minimal.so
                              "1.0.0",
                              "the generated text equals the golden's",
                              R"({"type": "object"})",  // what `assay_judgement.options` says is accepted, and not used
                              &kTable};

}  // namespace

ASSAY_PLUGIN_EXPORT const assay_plugin* assay_plugin_query(uint32_t abi_major, uint32_t, const assay_host*) {
  return abi_major == ASSAY_ABI_MAJOR ? &kPlugin : nullptr;
}
