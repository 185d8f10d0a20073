#include "core/train/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/discover/arguments.h"
#include "core/discover/expand.h"
#include "core/discover/harness_args.h"

namespace assay::train {
namespace {

constexpr int64_t kDefaultIters = 100;
constexpr int64_t kDefaultRlIters = 50;

ModelArg* find(ModelArgs& args, const std::string& key) {
  const auto found =
      std::find_if(args.entries.rbegin(), args.entries.rend(), [&](const ModelArg& arg) { return arg.key == key; });
  return found == args.entries.rend() ? nullptr : &*found;  // the last one of a repeated key counts
}

void set(ModelArgs& args, const std::string& key, const std::string& value) {
  ModelArg* arg = find(args, key);
  if (arg == nullptr) {
    arg = &args.entries.emplace_back();
    arg->key = key;
  }
  arg->text = value;
  arg->items.clear();
  arg->is_list = false;
  arg->plain = true;
}

Result<int64_t> steps_of(ModelArgs& args, const std::string& key, int64_t otherwise, const std::string& config) {
  const ModelArg* arg = find(args, key);
  if (arg == nullptr || arg->text.empty()) return otherwise;
  Result<int64_t> steps = discover::parse_int(arg->text);
  if (steps && *steps >= 1) return steps;
  return invalid(fmt::format("{}:{}:{}: {} '{}': expected a number of steps, 1 or more", config, arg->place.line,
                             arg->place.column, key, arg->text));
}

}  // namespace

Result<int64_t> change_arguments(const ArgumentChanges& changes, const std::string& config, ModelArgs* all) {
  ModelArgs& args = *all;
  const std::string exit = "--exit-interval";
  if (changes.rl) return steps_of(args, exit, kDefaultRlIters, config);
  if (changes.type == TestType::kRelease) return steps_of(args, exit, kDefaultIters, config);
  if (changes.nemo) {
    if (changes.lightweight) set(args, "trainer.max_steps", "2");
    return steps_of(args, "trainer.max_steps", kDefaultIters, config);
  }
  if (changes.lightweight) {
    set(args, exit, "4");
    if (changes.type == TestType::kCkptResume || changes.type == TestType::kFrozenResume) {
      set(args, "--save-interval", "2");
    }
  } else if (const ModelArg* iters = find(args, "--train-iters"); iters != nullptr) {
    if (Result<int64_t> steps = steps_of(args, "--train-iters", kDefaultIters, config); !steps) return steps;
    set(args, exit, std::string(iters->text));
  }
  return steps_of(args, exit, kDefaultIters, config);
}

Result<std::vector<std::string>> argument_words(const TestCase& test, const discover::Variables& variables, int run,
                                                const ArgumentChanges& changes) {
  Result<ModelArgs> args = discover::harness_args(test, variables, run);
  if (!args) return args.status();
  if (args->name == "MODEL_ARGS") {
    const Result<int64_t> changed = change_arguments(changes, test.config, &*args);
    if (!changed) return changed.status();
  }
  const Result<std::vector<discover::ArgumentWord>> words =
      discover::expand_arguments(*args, test.config, changes.nemo);
  if (!words) return words.status();
  std::vector<std::string> texts;
  for (const discover::ArgumentWord& word : *words) texts.push_back(word.text);
  return texts;
}

}  // namespace assay::train
