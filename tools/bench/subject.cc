#include "tools/bench/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/config/resolve_model.h"
#include "core/discover/arguments.h"
#include "core/discover/discover.h"
#include "core/discover/engine_options.h"
#include "core/discover/input_path.h"

namespace assay::bench {
namespace {

constexpr int kTikTokenizerVocabulary = 131072;

// MODEL_ARGS as they stand on a command line.
Result<model::ArgRecord> record_of_words(const std::vector<std::string>& words) {
  ModelArgs args;
  std::vector<discover::ArgumentWord> typed;
  for (const std::string& word : words) {
    const bool key = word.starts_with("--");
    if (key)
      args.entries.push_back({.key = word, .text = {}, .items = {}, .is_list = false, .plain = true, .place = {}});
    typed.push_back({word, args.entries.size() - 1, key});
  }
  auto parsed = discover::parse_arguments(typed, args, "command line");
  if (!parsed) return parsed.status();
  return std::move(parsed->record);
}

// Names that the case's arguments use and nobody set.
void set_unset_variables(const TestCase& test, discover::Variables* variables) {
  constexpr std::string_view kNameChars = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  for (const ModelArg& arg : test.model_args.entries) {
    std::vector<std::string> texts = arg.items;
    texts.push_back(arg.text);
    for (const std::string& text : texts) {
      for (size_t at = text.find('$'); at != std::string::npos; at = text.find('$', at + 1)) {
        const size_t begin = at + (text.compare(at + 1, 1, "{") == 0 ? 2 : 1);
        const size_t end = std::min(text.find_first_not_of(kNameChars, begin), text.size());
        if (begin < end && (text[begin] < '0' || text[begin] > '9'))
          variables->environment.emplace(text.substr(begin, end - begin), "unset");
      }
    }
  }
}

struct Given {
  model::ArgRecord record;
  std::string dir;  // of the case; empty: none
};

Result<Given> read_given(const SubjectSources& sources) {
  Given given;
  if (sources.words.empty()) {
    given.record["use_checkpoint_args"] = {true};
    return given;
  }
  if (sources.words.front().starts_with("--")) {
    auto record = record_of_words(sources.words);
    if (!record) return record.status();
    given.record = *std::move(record);
    return given;
  }
  if (sources.words.size() > 1) {
    return invalid(fmt::format("{}: a second word behind the case; MODEL_ARGS come instead of a case, behind --",
                               sources.words[1]));
  }
  const auto cases = discover::discover(sources.words);
  if (!cases) return cases.status();
  if (cases->size() != 1) {
    return invalid(fmt::format("{} holds {} cases, expected one; 'assay list {}' names them", sources.words[0],
                               cases->size(), sources.words[0]));
  }
  const TestCase& test = cases->front();
  if (!test.error.ok()) return test.error;
  discover::Variables variables = sources.variables;
  variables.environment.emplace("INFERENCE_OUTPUT_PATH", "unset");
  if (sources.random) set_unset_variables(test, &variables);
  auto parsed = discover::read_arguments(test, variables);
  if (!parsed) return parsed.status();
  given.record = std::move(parsed->record);
  given.dir = test.dir;
  return given;
}

Result<std::string> folder_of(const SubjectSources& sources, const Given& given) {
  if (!sources.checkpoint.empty()) return sources.checkpoint;
  const model::EffectiveArgs args = model::apply_checkpoint_args(given.record, nullptr);
  model::ArgReader reader(args);
  discover::EngineOptions options;
  options.load = reader.text("load", "");
  if (options.load.empty()) {
    return invalid("no weights: give --checkpoint DIR, --random-weights, or --load among the model's arguments");
  }
  if (const auto step = reader.integer("ckpt_step")) options.checkpoint_step = *step;
  if (!reader.status().ok()) return reader.status();
  return discover::checkpoint_folder(options, given.dir);
}

int64_t vocabulary_of(const model::EffectiveArgs& args) {
  model::ArgReader reader(args);
  const int given = reader.integer("vocab_size", 0);
  if (given > 0) return given;
  return reader.text("tokenizer_type", "TikTokenizer") == "TikTokenizer" ? kTikTokenizerVocabulary : 0;
}

}  // namespace

Result<Subject> find_subject(const SubjectSources& sources) {
  if (sources.words.empty() && sources.checkpoint.empty()) {
    return invalid("no model: give a CASE, --checkpoint DIR, or MODEL_ARGS behind --");
  }
  if (sources.random && !sources.checkpoint.empty() && !sources.words.empty()) {
    return invalid("--checkpoint and --random-weights together; with both, the checkpoint alone gives the shape");
  }
  const Result<Given> given = read_given(sources);
  if (!given) return given.status();
  Subject subject;
  std::optional<model::ArgRecord> stored;
  if (!sources.random || !sources.checkpoint.empty()) {
    Result<std::string> folder = folder_of(sources, *given);
    if (!folder) return folder.status();
    const auto checkpoint = model::Checkpoint::open(*folder);
    if (!checkpoint) return checkpoint.status();
    auto record = (*checkpoint)->args();
    if (!record) return record.status();
    if (!record->empty()) stored = *std::move(record);
    if (!sources.random) subject.checkpoint = *std::move(folder);
  }
  const model::ArgRecord* const overlay = stored ? &*stored : nullptr;
  const int64_t vocabulary = vocabulary_of(model::apply_checkpoint_args(given->record, overlay));
  auto resolved =
      model::resolve_model({.given = given->record, .checkpoint = overlay, .tokenizer_vocab_size = vocabulary});
  if (!resolved) return resolved.status();
  subject.config = std::move(resolved->config);
  return subject;
}

}  // namespace assay::bench
