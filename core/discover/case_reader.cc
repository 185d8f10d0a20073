#include "core/discover/case_reader.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>
#include <vector>

#include "core/discover/assay_block.h"
#include "core/discover/nearest.h"
#include "core/discover/schema.h"
#include "core/discover/written_metrics.h"
#include "core/discover/yaml_tree.h"

namespace assay::discover {
namespace {

constexpr std::array<std::string_view, 14> kTopLevel = {"ENV_VARS",
                                                        "TEST_TYPE",
                                                        "MODEL_ARGS",
                                                        "LAUNCHER",
                                                        "METRICS",
                                                        "MODE",
                                                        "BEFORE_SCRIPT",
                                                        "AFTER_SCRIPT",
                                                        "MODEL_ENV_VARS",
                                                        "TEST_EVALUATION",
                                                        "THROUGHPUT_TEST_PARAMS",
                                                        "ASSAY",
                                                        "MODEL_ARGS_2",
                                                        "BASE_MODEL_ARGS"};
constexpr std::array<std::string_view, 2> kEvaluations = {"pass", "xpass"};
constexpr std::array<std::string_view, 6> kTestTypes = {"regular",       "frozen-start",           "ckpt-resume",
                                                        "frozen-resume", "checkpoint-consistency", "release"};
constexpr std::array<std::string_view, 2> kLaunchers = {"torchrun", "ft_launcher"};
constexpr std::array<std::string_view, 12> kInferenceMetrics = {"generated_text",
                                                                "known_completion",
                                                                "generated_tokens",
                                                                "logprobs",
                                                                "top_n_logprobs",
                                                                "generated_top_n_logprobs",
                                                                "routing_indices",
                                                                "throughput",
                                                                "tpot",
                                                                "latency",
                                                                "mem-max-allocated-bytes",
                                                                "lifetime_prefill_token_count"};
constexpr std::array<std::string_view, 2> kDefaultTrainingMetrics = {"lm loss", "num-zeros"};
constexpr std::array<std::string_view, 3> kModes = {"inference", "pretraining", "rl"};

// Number n of MODEL_ARGS_n, n >= 2; 0: another key.
int further_number(std::string_view key) {
  constexpr std::string_view kPrefix = "MODEL_ARGS_";
  if (!key.starts_with(kPrefix)) return 0;
  int number = 0;
  const char* end = key.data() + key.size();
  const auto [stop, error] = std::from_chars(key.data() + kPrefix.size(), end, number);
  return error == std::errc() && stop == end && number >= 2 ? number : 0;
}

ModelArgs read_model_args(const std::string& name, const YamlNode& node, SchemaErrors& errors) {
  ModelArgs args;
  args.name = name;
  if (node.is_null()) return args;
  if (node.kind != YamlNode::Kind::kMap) {
    errors.add(node, name + " must be a mapping of --argument: value");
    return args;
  }
  args.present = true;
  args.entries.reserve(node.entries.size());
  for (const YamlEntry& entry : node.entries) {
    const YamlNode& value = *entry.value;
    ModelArg arg;
    arg.key = entry.key;
    arg.plain = value.plain;
    arg.place = {value.line, value.column};
    if (value.is_scalar()) {
      arg.text = value.text;
    } else if (value.kind == YamlNode::Kind::kSequence) {
      arg.is_list = true;
      for (const YamlNode* item : value.items) {
        if (!item->is_scalar()) errors.add(*item, name + " " + entry.key + ": a list holds scalars only");
        arg.items.push_back(item->text);
      }
    } else {
      errors.add(value, name + " " + entry.key + " is a mapping; a scalar or a list is expected");
    }
    args.entries.push_back(std::move(arg));
  }
  return args;
}

bool is_variable_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

void read_env_vars(const YamlNode& node, TestCase& test_case, SchemaErrors& errors) {
  if (node.is_null()) return;
  if (node.kind != YamlNode::Kind::kMap) return errors.add(node, "ENV_VARS must be a mapping of NAME: value");
  for (const YamlEntry& entry : node.entries) {
    if (!is_variable_name(entry.key)) errors.add(*entry.value, "ENV_VARS: '" + entry.key + "' is not a variable name");
    if (!entry.value->is_scalar()) errors.add(*entry.value, "ENV_VARS " + entry.key + ": a scalar is expected");
    if (entry.value->text.find('\0') != std::string::npos) {
      errors.add(*entry.value, "ENV_VARS " + entry.key + ": a variable cannot hold the character U+0000");
    }
    test_case.env_vars.push_back({entry.key,
                                  entry.value->is_null() ? std::string() : entry.value->text,
                                  {entry.value->line, entry.value->column}});
  }
}

// Variables of one MODEL_ARGS_n each.
void read_model_env_vars(const YamlNode& node, TestCase& test_case, SchemaErrors& errors) {
  if (node.is_null()) return;
  if (node.kind != YamlNode::Kind::kMap) return errors.add(node, "MODEL_ENV_VARS must be a mapping of MODEL_ARGS_n");
  for (const YamlEntry& args : node.entries) {
    if (args.value->kind != YamlNode::Kind::kMap) {
      errors.add(*args.value, "MODEL_ENV_VARS: " + args.key + " must be a mapping of NAME: value");
      continue;
    }
    for (const YamlEntry& entry : args.value->entries) {
      const YamlNode& value = *entry.value;
      if (!value.is_scalar()) errors.add(value, "MODEL_ENV_VARS: " + entry.key + " must be a single value");
      test_case.model_env_vars.push_back({args.key + "." + entry.key, value.text, {value.line, value.column}});
    }
  }
}

void read_metrics(const YamlNode& node, TestCase& test_case, SchemaErrors& errors) {
  test_case.metrics.emplace();
  test_case.written_metrics = written_metrics(node);
  test_case.metrics_is_null = node.is_null();
  if (node.is_null()) return;
  if (node.is_scalar()) return errors.add(node, "METRICS must be a list, not '" + node.text + "'");
  if (node.kind == YamlNode::Kind::kMap) {
    return errors.add(node, "METRICS must be a list of names, not a mapping: '- " +
                                (node.entries.empty() ? std::string("lm loss") : node.entries.front().key) + "'");
  }
  for (const YamlNode* item : node.items) {
    if (!item->is_scalar() || item->is_null()) errors.add(*item, "METRICS: an entry must be the name of a metric");
    test_case.metrics->push_back(item->text);
  }
}

void read_mode(const YamlNode& node, TestCase& test_case, SchemaErrors& errors) {
  errors.read_text(node, "MODE", test_case.mode);
  if (std::find(kModes.begin(), kModes.end(), test_case.mode) == kModes.end()) {
    errors.add(node, "MODE '" + test_case.mode + "' is none of inference, pretraining, rl" +
                         did_you_mean(test_case.mode, kModes));
  }
}

// A text that is one of `known`.
void read_one_of(const YamlNode& node, const std::string& key, std::span<const std::string_view> known,
                 SchemaErrors& errors, std::string& into) {
  errors.read_text(node, key, into);
  if (node.is_null() || !node.is_scalar()) return;
  if (std::find(known.begin(), known.end(), into) != known.end()) return;
  std::string all;
  for (const std::string_view one : known) all += (all.empty() ? "" : ", ") + std::string(one);
  errors.add(node, key + " '" + into + "' is none of " + all + did_you_mean(into, known));
}

// Metrics of training are one, however their words are joined.
bool same_metric(std::string_view a, std::string_view b, bool training) {
  const auto joins = [training](char c) { return training && (c == '-' || c == '_' || c == ' '); };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char x, char y) { return x == y || (joins(x) && joins(y)); });
}

// A tolerance for a metric that the case has not would silently be none.
void check_tolerances(const YamlNode& root, const TestCase& test_case, SchemaErrors& errors) {
  const bool training = test_case.mode != "inference";
  if (test_case.assay.metamorphic || (!training && !test_case.metrics)) return;
  std::vector<std::string_view> known;
  const bool says_training = training && root.find("MODE") != nullptr;
  if (test_case.metrics) {
    known.assign(test_case.metrics->begin(), test_case.metrics->end());
  } else {
    known.assign(kDefaultTrainingMetrics.begin(), kDefaultTrainingMetrics.end());
  }
  if (!says_training) known.insert(known.end(), kInferenceMetrics.begin(), kInferenceMetrics.end());
  for (const auto& [name, value] : test_case.assay.tolerance) {
    const auto same = [&, metric = name](std::string_view one) { return same_metric(one, metric, training); };
    if (std::any_of(known.begin(), known.end(), same)) continue;
    const YamlNode* block = root.find("ASSAY");
    errors.add(block == nullptr ? root : *block,
               "ASSAY.tolerance '" + name + "' is no metric of the case" + did_you_mean(name, known));
  }
}

void read_evaluation(const YamlNode& node, TestCase& test_case, SchemaErrors& errors) {
  errors.read_text(node, "TEST_EVALUATION", test_case.test_evaluation);
  if (std::find(kEvaluations.begin(), kEvaluations.end(), test_case.test_evaluation) != kEvaluations.end()) return;
  test_case.notes.push_back("line " + std::to_string(node.line) + ": TEST_EVALUATION '" + test_case.test_evaluation +
                            "' is neither pass nor xpass and counts as pass" +
                            did_you_mean(test_case.test_evaluation, kEvaluations));
}

void read_key(const YamlEntry& entry, TestCase& test_case, SchemaErrors& errors) {
  const std::string& key = entry.key;
  const YamlNode& value = *entry.value;
  if (key == "ENV_VARS") return read_env_vars(value, test_case, errors);
  if (key == "MODEL_ENV_VARS") return read_model_env_vars(value, test_case, errors);
  if (key == "METRICS") return read_metrics(value, test_case, errors);
  if (key == "MODEL_ARGS") {
    test_case.model_args = read_model_args(key, value, errors);
    return;
  }
  if (further_number(key) != 0) {
    test_case.further_model_args.push_back(read_model_args(key, value, errors));
    return;
  }
  if (key == "MODE") return read_mode(value, test_case, errors);
  if (key == "TEST_TYPE") return read_one_of(value, key, kTestTypes, errors, test_case.test_type);
  if (key == "LAUNCHER") return read_one_of(value, key, kLaunchers, errors, test_case.launcher);
  if (key == "TEST_EVALUATION") return read_evaluation(value, test_case, errors);
  if (key == "BEFORE_SCRIPT") return errors.read_text(value, key, test_case.before_script);
  if (key == "AFTER_SCRIPT") return errors.read_text(value, key, test_case.after_script);
  if (key == "ASSAY") return read_assay_block(value, test_case.assay, errors);
  if (std::find(kTopLevel.begin(), kTopLevel.end(), key) != kTopLevel.end()) return;
  test_case.notes.push_back("line " + std::to_string(entry.line) + ": unknown key '" + key + "' is ignored" +
                            did_you_mean(key, kTopLevel));
}

}  // namespace

void read_config(std::string text, TestCase& test_case, bool needs_model_args) {
  test_case.config_text = text;
  const Result<YamlTree> tree = parse_yaml(std::move(text), test_case.config);
  if (!tree.ok()) {
    test_case.error = tree.status();
    return;
  }
  SchemaErrors errors(test_case.config);
  const YamlNode* root = tree->root;
  if (root == nullptr || root->kind != YamlNode::Kind::kMap) {
    test_case.error = invalid(test_case.config + ":1:1: a mapping with MODEL_ARGS is expected, the file holds " +
                              (root == nullptr || root->is_null() ? "nothing" : "something else"));
    return;
  }
  for (const YamlDuplicate& twice : tree->duplicates) {
    test_case.notes.push_back("line " + std::to_string(twice.line) + ": '" + twice.key + "' repeats line " +
                              std::to_string(twice.first_line) + "; the later one counts");
  }
  for (const YamlEntry& entry : root->entries) read_key(entry, test_case, errors);
  std::sort(test_case.further_model_args.begin(), test_case.further_model_args.end(),
            [](const ModelArgs& a, const ModelArgs& b) { return further_number(a.name) < further_number(b.name); });
  if (needs_model_args && root->find("MODEL_ARGS") == nullptr) errors.add(*root, "MODEL_ARGS is missing");
  check_tolerances(*root, test_case, errors);
  test_case.error = errors.first();
}

}  // namespace assay::discover
