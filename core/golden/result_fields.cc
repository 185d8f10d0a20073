#include "core/golden/result_fields.h"

#include <algorithm>
#include <array>
#include <utility>

namespace assay::json {

Field field_of(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, Field>, 15> kFields = {{
      {"input_prompt", Field::kPrompt},
      {"generated_text", Field::kText},
      {"generated_tokens", Field::kTokens},
      {"tpot", Field::kTpot},
      {"latency", Field::kLatency},
      {"generated_top_n_logprobs", Field::kTopN},
      {"logprobs", Field::kLogprobs},
      {"top_n_logprobs", Field::kTopN},
      {"prompt_top_n_logprobs", Field::kPromptTopN},
      {"prompt_logprobs", Field::kPromptLogprobs},
      {"generated_logprobs", Field::kGeneratedLogprobs},
      {"routing_indices", Field::kRouting},
      {"routing_indices_token_indices", Field::kPositions},
      {"prompt_tokens", Field::kPromptIds},
      {"routing_margins", Field::kMargins},
  }};
  for (const auto& [field_name, field] : kFields) {
    if (field_name == name) return field;
  }
  return Field::kExtra;
}

Type type_of(Field field) {
  switch (field) {
    case Field::kPrompt:
    case Field::kText:
      return Type::kString;
    case Field::kTokens:
    case Field::kPromptIds:
    case Field::kPositions:
      return Type::kInts;
    case Field::kLatency:
      return Type::kDouble;
    case Field::kTopN:
    case Field::kPromptTopN:
      return Type::kTopLists;
    case Field::kRouting:
      return Type::kRouting;
    case Field::kMargins:
      return Type::kMargins;
    default:
      return Type::kDoubles;
  }
}

bool may_be_quantity(std::string_view name) {
  const bool digits = std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return !digits && !marks_request(name);
}

bool marks_request(std::string_view name) { return name == "id" || field_of(name) != Field::kExtra; }

}  // namespace assay::json
