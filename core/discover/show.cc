#include "core/discover/show.h"

#include <nlohmann/json.hpp>

#include "core/discover/list.h"
#include "core/discover/metamorphic_block.h"
#include "core/discover/waivers.h"
#include "core/golden/text.h"

namespace assay::discover {
namespace {

using Json = nlohmann::ordered_json;

std::string joined(const std::vector<std::string>& texts, const char* none) {
  std::string out;
  for (const std::string& text : texts) out += (out.empty() ? "" : ", ") + text;
  return out.empty() ? none : out;
}

// One line: line ends as \n, cut after 100 bytes at a character border.
std::string shortened(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  if (out.size() <= 100) return out;
  size_t end = 100;
  while (end > 0 && (static_cast<unsigned char>(out[end]) & 0xc0) == 0x80) --end;
  return out.substr(0, end) + "...";
}

std::string numbers(const std::vector<int32_t>& list) {
  std::string out;
  for (const int32_t number : list) out += (out.empty() ? "" : ", ") + std::to_string(number);
  return out;
}

// What the case asks for, and what it leaves to the default is not shown.
std::string metamorphic_text(const MetamorphicBlock& block) {
  const std::vector<std::string> relations = relations_of(block);
  std::string out = "relations " + joined(relations, "-") + " (" + std::to_string(relations.size()) + ")\n";
  for (const auto& [what, list] : {std::pair("batches", &block.batches), std::pair("chunks", &block.chunks),
                                   std::pair("threads", &block.threads)}) {
    if (!list->empty()) out += std::string("  ") + what + " " + numbers(*list) + "\n";
  }
  if (block.prompt_tokens) out += "  prompt_tokens " + std::to_string(*block.prompt_tokens) + "\n";
  if (block.new_tokens) out += "  new_tokens " + std::to_string(*block.new_tokens) + "\n";
  return out;
}

Json metamorphic_json(const std::optional<MetamorphicBlock>& block) {
  if (!block) return nullptr;
  Json json = {{"relations", relations_of(*block)}};
  if (!block->batches.empty()) json["batches"] = block->batches;
  if (!block->chunks.empty()) json["chunks"] = block->chunks;
  if (!block->threads.empty()) json["threads"] = block->threads;
  if (block->prompt_tokens) json["prompt_tokens"] = *block->prompt_tokens;
  if (block->new_tokens) json["new_tokens"] = *block->new_tokens;
  return json;
}

std::vector<std::string> names_of(const std::vector<Verdict>& verdicts) {
  std::vector<std::string> names;
  names.reserve(verdicts.size());
  for (const Verdict verdict : verdicts) names.emplace_back(to_string(verdict));
  return names;
}

std::string waivers_text(const std::vector<Waiver>& waivers, const std::string& today) {
  if (waivers.empty()) return "";
  std::string out = "waivers (" + std::to_string(waivers.size()) + ")\n";
  for (const Waiver& waiver : waivers) {
    out += "  " + joined(names_of(waiver.verdicts), "-") + (waiver.expect_failure ? " expected, " : ", ") +
           waiver_validity(waiver, today);
    for (const auto& [what, limits] :
         {std::pair("metrics", &waiver.metrics), std::pair("platforms", &waiver.platforms),
          std::pair("environments", &waiver.environments), std::pair("relations", &waiver.relations)}) {
      if (!limits->empty()) out += std::string("; ") + what + " " + joined(*limits, "");
    }
    out += "\n    " + shortened(waiver.reason) + " (" + waiver.owner + ", " + waiver.issue + ")\n";
  }
  return out;
}

Json waivers_json(const std::vector<Waiver>& waivers, const std::string& today) {
  Json list = Json::array();
  for (const Waiver& waiver : waivers) {
    list.push_back({{"reason", waiver.reason},
                    {"owner", waiver.owner},
                    {"issue", waiver.issue},
                    {"expires", waiver.expires},
                    {"days_left", waiver_days_left(waiver, today)},
                    {"verdicts", names_of(waiver.verdicts)},
                    {"metrics", waiver.metrics},
                    {"platforms", waiver.platforms},
                    {"environments", waiver.environments},
                    {"relations", waiver.relations},
                    {"expect_failure", waiver.expect_failure}});
  }
  return list;
}

// Arguments grouped by class, the groups in the order used, substituted, irrelevant.
std::string arguments_text(const ParsedArguments& arguments, const std::string& engine) {
  std::string out;
  for (const std::string_view cls : {"used", "substituted", "irrelevant"}) {
    size_t count = 0;
    std::string lines;
    for (const GivenArgument& given : arguments.given) {
      if (class_name(given.info->cls, engine) != cls) continue;
      ++count;
      std::string line = "  " + given.option;
      for (const std::string& value : given.values) line += " " + shortened(value);
      if (cls != "used") {
        line.append(line.size() < 50 ? 50 - line.size() : 1, ' ');
        line += std::string(given.info->reason);
      }
      if (given.overridden) line += "  (a later one counts)";
      lines += line + "\n";
    }
    out += "arguments " + std::string(cls) + " (" + std::to_string(count) + ")\n" + lines;
  }
  return out;
}

Json model_json(const model::ResolvedModel& model) {
  Json origins = Json::array();
  for (const model::FieldOrigin& field : model.origins) {
    origins.push_back({{"field", field.field},
                       {"value", field.value},
                       {"origin", std::string(to_string(field.origin))},
                       {"source", field.source.empty() ? Json(nullptr) : Json(field.source)}});
  }
  return {{"config", Json::parse(to_json(model.config))}, {"origins", std::move(origins)}, {"notes", model.notes}};
}

Json arguments_json(const ParsedArguments& arguments, const std::string& engine) {
  Json list = Json::array();
  for (const GivenArgument& given : arguments.given) {
    list.push_back({{"option", given.option},
                    {"values", given.values},
                    {"class", std::string(class_name(given.info->cls, engine))},
                    {"reason", std::string(given.info->reason)},
                    {"line", given.place.line},
                    {"overridden", given.overridden}});
  }
  return list;
}

// As a shell reads it; plain words stay as they are.
std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "_-+=:,./@%";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// A line an entry.
std::string words_text(const ShownWords& shown) {
  std::string out = "words of " + shown.name + " (" + std::to_string(shown.words.size()) + ")";
  for (const ArgumentWord& word : shown.words)
    out += (word.key ? "\n  " : " ") + text::printable(shell_quoted(word.text));
  return out + "\n";
}

Json words_json(const std::vector<ShownWords>& runs) {
  Json object = Json::object();
  for (const ShownWords& run : runs) {
    Json list = Json::array();
    for (const ArgumentWord& word : run.words) list.push_back(word.text);
    object[run.name] = std::move(list);
  }
  return object;
}

}  // namespace

std::string show_text(const ShowInput& input) {
  const TestCase& test_case = input.test_case;
  const std::string engine = engine_of(test_case);
  std::string out = "case      " + test_case.name + "\nfolder    " + test_case.dir + "\nmode      " + test_case.mode +
                    ", " + (test_case.test_type.empty() ? "no TEST_TYPE" : test_case.test_type) + "\nengine    " +
                    (engine.empty() ? "-" : engine) + "\nmetrics   " +
                    joined(test_case.metrics.value_or(std::vector<std::string>()), "none") + "\n";
  std::vector<std::string> files;
  for (const GoldenFile& golden : test_case.goldens) files.push_back(golden.file);
  const auto& metamorphic = test_case.assay.metamorphic;
  out += "goldens   " + joined(files, "none") + "\njudged by " +
         (metamorphic ? "relations between runs of its own" : joined(input.judging_goldens, "none")) + "\n";
  if (metamorphic) out += metamorphic_text(*metamorphic);
  const int32_t sharing = test_case.assay.workers_per_device.value_or(1);
  out +=
      "device    " + (sharing == 1 ? "one worker" : "up to " + std::to_string(sharing) + " workers share one") + "\n";
  out += waivers_text(test_case.assay.waivers, input.today);
  if (test_case.test_evaluation == "xpass") out += "TEST_EVALUATION xpass: the engine may fail\n";
  out += "ENV_VARS (" + std::to_string(test_case.env_vars.size()) + ")\n";
  for (const EnvVar& variable : test_case.env_vars)
    out += "  " + variable.name + "=" + shortened(variable.value) + "\n";
  for (const ShownWords& run : input.words) out += words_text(run);
  if (input.arguments != nullptr) out += arguments_text(*input.arguments, engine);
  if (input.model != nullptr) out += "model\n" + describe(*input.model);
  if (!input.prompts.empty()) out += "prompts (" + std::to_string(input.prompts.size()) + ")\n";
  for (const std::string& prompt : input.prompts) out += "  " + shortened(prompt) + "\n";
  for (const std::string& note : test_case.notes) out += "note: " + note + "\n";
  for (const std::string& note : input.notes) out += "note: " + note + "\n";
  if (!test_case.error.ok()) out += "error: " + test_case.error.message() + "\n";
  for (const std::string& error : input.errors) out += "error: " + error + "\n";
  return out;
}

std::string show_json(const ShowInput& input) {
  const TestCase& test_case = input.test_case;
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json env_vars = Json::object();
  for (const EnvVar& variable : test_case.env_vars) env_vars[variable.name] = variable.value;
  Json goldens = Json::array();
  for (const GoldenFile& golden : test_case.goldens) goldens.push_back(golden.file);
  std::vector<std::string> errors = input.errors, notes = test_case.notes;
  if (!test_case.error.ok()) errors.insert(errors.begin(), test_case.error.message());
  notes.insert(notes.end(), input.notes.begin(), input.notes.end());
  const Json object = {
      {"name", test_case.name},
      {"path", test_case.dir},
      {"mode", test_case.mode},
      {"test_type", or_null(test_case.test_type)},
      {"launcher", test_case.launcher},
      {"engine", or_null(engine_of(test_case))},
      {"metrics", test_case.metrics ? Json(*test_case.metrics) : Json(nullptr)},
      {"env_vars", std::move(env_vars)},
      {"words", words_json(input.words)},
      {"arguments",
       input.arguments == nullptr ? Json(nullptr) : arguments_json(*input.arguments, engine_of(test_case))},
      {"model", input.model == nullptr ? Json(nullptr) : model_json(*input.model)},
      {"prompts", input.prompts},
      {"goldens", std::move(goldens)},
      {"judging_goldens", input.judging_goldens},
      {"workers_per_device", test_case.assay.workers_per_device.value_or(1)},
      {"metamorphic", metamorphic_json(test_case.assay.metamorphic)},
      {"waivers", waivers_json(test_case.assay.waivers, input.today)},
      {"notes", notes},
      {"errors", errors}};
  return object.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace assay::discover
