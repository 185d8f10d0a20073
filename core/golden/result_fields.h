// The members of a request that result files know by name. Pure functions without state.
#pragma once

#include <cstdint>
#include <string_view>

namespace assay::json {

enum class Field : uint8_t {
  kExtra,  // any other name: carried along as JSON text
  kPrompt,
  kText,
  kTokens,
  kPromptIds,
  kPositions,
  kLogprobs,
  kPromptLogprobs,
  kGeneratedLogprobs,
  kTpot,
  kLatency,
  kTopN,  // two names
  kPromptTopN,
  kRouting,
  kMargins,
  kCount
};

enum class Type : uint8_t { kString, kDouble, kInts, kDoubles, kTopLists, kRouting, kMargins };

Field field_of(std::string_view name);

// What stands in a field; of kExtra: meaningless.
Type type_of(Field field);

// Names that can only belong to a request: met at the top level they tell the FLAT form.
bool marks_request(std::string_view name);

// Names under which the top level may hold a number or a list of numbers.
bool may_be_quantity(std::string_view name);

}  // namespace assay::json
