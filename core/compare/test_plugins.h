// For tests: the comparators as built, and short ways to make results.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

#include "assay/golden.h"
#include "core/compare/judge.h"

namespace assay::compare {

// The comparator in this file; null where there is none.
inline const assay_comparator_table* comparator_of(const std::string& file) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  const auto query = reinterpret_cast<assay_plugin_query_fn>(dlsym(library, "assay_plugin_query"));
  const assay_plugin* plugin = query(ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR, nullptr);
  return static_cast<const assay_comparator_table*>(plugin->table);
}

// The comparator of a metric from the build folder.
inline Result<const assay_comparator_table*> built_comparator(std::string_view metric) {
  const std::string dir = ASSAY_BINARY_DIR "/lib/assay/plugins/";
  const std::string own = dir + "comparator_" + std::string(metric) + ".so";
  if (const auto* table = comparator_of(own); table != nullptr && table->metrics == nullptr) return table;
  for (const auto& entry : std::filesystem::directory_iterator(dir)) {
    if (!entry.path().filename().string().starts_with("comparator_")) continue;
    const assay_comparator_table* table = comparator_of(entry.path());
    if (table == nullptr || table->metrics == nullptr) continue;
    const auto end = table->metrics + table->metric_count;
    if (std::find(table->metrics, end, metric) != end) return table;
  }
  return not_found("no comparator serves this metric");
}

inline ResultSet results(std::string_view json) {
  Result<ResultSet> set = read_results_text(json, "inline.json");
  EXPECT_TRUE(set.ok()) << set.status().message();
  return set.ok() ? *std::move(set) : ResultSet();
}

inline JudgeOptions with_metrics(std::vector<std::string> metrics) {
  JudgeOptions options;
  options.metrics = std::move(metrics);
  options.lookup = built_comparator;
  return options;
}

inline CaseVerdict judge_json(const JudgeOptions& options, std::string_view golden, std::string_view actual) {
  const ResultSet reference = results(golden);
  const ResultSet candidate = results(actual);
  return judge_case({.options = &options, .golden = &reference, .golden_missing = "", .actual = &candidate});
}

}  // namespace assay::compare
