#include "core/run/relation_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/discover/metamorphic_block.h"

namespace assay::run {

std::vector<std::string> relations_wanted(const TestCase& test, bool metamorphic) {
  if (test.assay.metamorphic) return discover::relations_of(*test.assay.metamorphic);
  return metamorphic ? discover::relations_of(MetamorphicBlock{}) : std::vector<std::string>{};
}

std::string row_name(const std::string& case_name, std::string_view relation) {
  return relation.empty() ? case_name : case_name + "@" + std::string(relation);
}

std::string case_of_row(const std::string& row_name, std::string_view relation) {
  const std::string end = fmt::format("@{}", relation);
  if (relation.empty() || !row_name.ends_with(end)) return row_name;
  return row_name.substr(0, row_name.size() - end.size());
}

metamorphic::Parameters parameters_of(const TestCase& test) {
  metamorphic::Parameters parameters;
  const MetamorphicBlock block = test.assay.metamorphic.value_or(MetamorphicBlock{});
  if (!block.batches.empty()) parameters.batches = block.batches;
  if (!block.chunks.empty()) parameters.chunks = block.chunks;
  if (!block.threads.empty()) parameters.threads = block.threads;
  parameters.prompt_tokens = block.prompt_tokens.value_or(parameters.prompt_tokens);
  parameters.new_tokens = block.new_tokens.value_or(parameters.new_tokens);
  return parameters;
}

double relation_tokens(std::string_view relation, const metamorphic::Parameters& parameters) {
  using metamorphic::Relation;
  constexpr double kFew = 4;  // requests of a way that says nothing else
  const auto& batches = parameters.batches;
  const double largest = batches.empty() ? 1 : *std::max_element(batches.begin(), batches.end());
  double requests = 2 * kFew;
  const std::optional<Relation> known = metamorphic::parse_relation(relation);
  if (known == Relation::kSoloVsBatch) requests = largest + std::accumulate(batches.begin(), batches.end(), 0.0);
  if (known == Relation::kChunkedPrefill) requests = kFew * (1 + static_cast<double>(parameters.chunks.size()));
  if (known == Relation::kThreadCount) requests = kFew * static_cast<double>(parameters.threads.size());
  return requests * (parameters.prompt_tokens + parameters.new_tokens);
}

}  // namespace assay::run
