// Arguments given on the command line, overlaid with those of the checkpoint (megatron.md 10.4).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "assay/status.h"
#include "backends/model/args_record.h"

namespace assay::model {

enum class ArgOrigin { kArgument, kCheckpoint, kDefault };
std::string_view to_string(ArgOrigin origin);  // "argument", "checkpoint", "default"

struct EffectiveArg {
  ArgValue value;
  ArgOrigin origin = ArgOrigin::kArgument;
};
// Namespace name ("num_layers") -> value; absent: neither given nor restored, so that Megatron's default holds.
using EffectiveArgs = std::map<std::string, EffectiveArg, std::less<>>;

// `given` holds the arguments written in MODEL_ARGS alone (no defaults); `checkpoint` may be null. With
// use_checkpoint_args among the given, values of the checkpoint replace given ones (forced names) or fill unset ones.
EffectiveArgs apply_checkpoint_args(const ArgRecord& given, const ArgRecord* checkpoint);

// One line of text of a value, as Python prints it: None, True, 1e-05, [0, 1].
std::string to_text(const ArgValue& value);

bool is_none(const ArgValue& value);

// Typed reading with Megatron's default for what is absent or None. A value of another type is kept as the first
// failure (kInvalid, naming it) and the default returned.
class ArgReader {
 public:
  explicit ArgReader(const EffectiveArgs& args) : args_(args) {}

  bool flag(std::string_view name, bool otherwise = false);
  std::optional<int> integer(std::string_view name);
  int integer(std::string_view name, int otherwise);
  std::optional<double> number(std::string_view name);
  double number(std::string_view name, double otherwise);
  std::string text(std::string_view name, std::string_view otherwise);
  const ArgValue* value(std::string_view name) const;  // nullptr: absent or None
  ArgOrigin origin(std::string_view name) const;       // kDefault: absent or None

  const Status& status() const { return status_; }

 private:
  void fail(std::string_view name, std::string_view expected);

  const EffectiveArgs& args_;
  Status status_;
};

}  // namespace assay::model
