// A recipe: whatever it holds, workloads and findings come out, each finding one line.
#include "core/recipe/list.h"
#include "tools/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace assay::recipe;
  const std::string text(assay::fuzz::text_of(data, size));
  Catalogue catalogue;
  for (const char* file : {"recipes/r.yaml", "recipes/_build-r.yaml"}) {
    Recipe recipe = expand(text, file, {});
    for (const Finding& finding : recipe.findings) {
      assay::fuzz::require(to_line(finding).find('\n') == std::string::npos, "a finding is one line");
    }
    assay::fuzz::require(recipe.workloads.size() <= kMostWorkloads, "workloads are bounded");
    for (Workload& workload : recipe.workloads) {
      if (catalogue.entries.size() >= 8) break;
      const ScriptWords words = script_words(workload.script);
      assay::fuzz::require(workload.spec.contains("cadence"), "a workload has a cadence");
      assay::fuzz::require(matches({}, workload), "no filter lets everything through");
      matches({.scope = "mr", .cadence = "pr", .test_case = "a,b"}, workload);
      Entry entry{.workload = std::move(workload), .words = words, .flavour = "", .case_dir = "", .test = {}};
      entry.flavour = flavour_of(words, entry.workload.script, nullptr);
      catalogue.entries.push_back(std::move(entry));
    }
  }
  assay::fuzz::require(Value::parse(list_json(catalogue)).size() == catalogue.entries.size(), "the list is JSON");
  assay::fuzz::require(!list_text(catalogue).empty(), "the list is text");
  return 0;
}
