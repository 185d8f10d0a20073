// results.jsonl of a run that may have been killed anywhere.
#include "core/run/read_run.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const assay::fuzz::Folder kFolder;
  kFolder.write("results.jsonl", assay::fuzz::text_of(data, size));
  const auto full = assay::run::read_run(kFolder.path());
  const auto verdicts = assay::run::read_run(kFolder.path(), assay::run::Detail::kVerdicts);
  if (!full) {
    assay::fuzz::require_message(full.status().message());
    return 0;
  }
  assay::fuzz::require(verdicts.ok(), "what reads in full reads for its verdicts");
  const auto& deep = full->summary.outcomes;
  const auto& flat = verdicts->summary.outcomes;
  assay::fuzz::require(deep.size() == flat.size(), "both depths have the same cases");
  for (size_t i = 0; i < deep.size(); ++i) {
    assay::fuzz::require(deep[i].verdict.verdict == flat[i].verdict.verdict, "both depths have the same verdicts");
  }
  return 0;
}
