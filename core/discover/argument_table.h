// The arguments that Megatron-LM's parser and inference scripts know, and what each means to us.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace assay::discover {

enum class ArgumentClass {
  kUsed,         // decides what we compute, or is refused when we cannot honour its value
  kSubstituted,  // asks for a kernel, a layout or a check that our one process replaces
  kIrrelevant,   // no effect on inference
  kDynamic,      // used by the buffered engine; no effect in the static one
};
// "used", "substituted" or "irrelevant" for a case of this engine: kDynamic is "used" by "buffered" alone.
std::string_view class_name(ArgumentClass c, std::string_view engine);

enum class ArgumentKind {
  kFlag,      // stores true
  kNoFlag,    // stores false
  kOptional,  // stores true, its --no- form false
  kInt,
  kFloat,
  kText,
  kInts,     // one word, integers joined by commas
  kPattern,  // one word, an integer or a list expression such as ([0]*1+[1]*26)
};

struct ArgumentInfo {
  std::vector<std::string> options;  // "--num-layers"; the first is the name
  std::string dest;                  // name in the Namespace: "num_layers"
  ArgumentKind kind = ArgumentKind::kText;
  char several = 0;                  // '+' one or more values, '*' any number, a digit for that many; 0: one
  std::vector<std::string> choices;  // empty: any
  ArgumentClass cls = ArgumentClass::kUsed;
  std::string_view reason;  // the group's reason or subject

  bool takes_value() const { return kind > ArgumentKind::kOptional; }
};

// The table, in the order of its file; built once, then constant.
std::span<const ArgumentInfo> argument_table();

// nullptr: unknown. `option` with its dashes.
const ArgumentInfo* find_argument(std::string_view option);

// The entry whose `dest` is this; nullptr: none.
const ArgumentInfo* find_destination(std::string_view dest);

// " (did you mean '--num-layers'?)" or "".
std::string nearest_argument(std::string_view option);

}  // namespace assay::discover
