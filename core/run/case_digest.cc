#include "core/run/case_digest.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "core/discover/arguments.h"
#include "core/discover/input_path.h"
#include "core/golden/digest.h"
#include "core/run/event_file.h"

namespace assay::run {
namespace {

constexpr size_t kSmall = size_t{64} << 10;

// Reads what files hold; each once, as cases share prompts and known texts.
class Files {
 public:
  // A name, a size, and what the file holds; of a larger one its digest.
  void add(const std::string& name, const std::string& path, std::string* text) {
    const auto [known, is_new] = known_.try_emplace(path);
    if (is_new) known->second = read(path);
    *text += name + " " + known->second;
  }

 private:
  static std::string read(const std::string& path) {
    struct stat info = {};
    if (path.empty() || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "absent\n";
    const std::string size = fmt::format("{}\n", info.st_size);
    const bool small = static_cast<size_t>(info.st_size) <= kSmall;
    const Result<std::string> content = small ? read_file(path) : digest_of_file(path);
    return size + (content ? *content : "unreadable");
  }

  std::map<std::string, std::string> known_;
};

// As written: a folder that differs between machines is none of the case's business.
std::string written_prompt_file(const TestCase& test) {
  for (const ModelArg& entry : test.model_args.entries) {
    if (entry.key == "--prompt-file") return entry.text;
  }
  return "";
}

// The prompt file that a run reads; "" where the case names none, or has arguments that no run takes.
std::string prompt_file(const TestCase& test, const discover::Variables& variables) {
  const auto may_name_one = [](const ModelArg& entry) {  // cheap, since most cases of a large tree name none
    return entry.key.find("--prompt-") != std::string::npos || entry.text.find("--prompt-") != std::string::npos;
  };
  const std::vector<ModelArg>& entries = test.model_args.entries;
  if (std::none_of(entries.begin(), entries.end(), may_name_one)) return "";
  discover::Variables all = variables;
  all.set.emplace("INFERENCE_OUTPUT_PATH", "actual.json");  // else a run gives it
  const Result<discover::ParsedArguments> arguments = discover::read_arguments(test, all);
  if (!arguments) return "";
  const discover::GivenArgument* given = arguments->find("prompt_file");
  if (given == nullptr || given->values.empty()) return "";
  const Result<std::string> found = discover::find_input(given->values.front(), test.dir);
  return found ? *found : given->values.front();
}

void add_files(const TestCase& test, const discover::Variables& variables, Files& files, std::string* text) {
  files.add("model_config.yaml", test.config, text);
  for (const GoldenFile& golden : test.goldens) files.add(golden.file, test.dir + "/" + golden.file, text);
  const std::string prompts = prompt_file(test, variables);
  if (!prompts.empty()) files.add("\nprompts " + written_prompt_file(test), prompts, text);
  for (const std::string& source : test.assay.known_completion) {
    const Result<std::string> found = discover::find_input(source, test.dir);
    files.add("\nknown completion " + source, found ? *found : "", text);
  }
}

// Nothing where the case asks for nothing itself.
void add_settings(const CaseSettings& own, std::string* text) {
  const std::string settings =
      fmt::format("{}\t{}\t{}\t{}\t{}\t{}\t{}", own.environment_name, own.platform, own.engine, own.repeat,
                  own.timeout.count(), own.settled ? to_string(*own.settled) : std::string_view(), own.reason);
  if (settings == "\t\t\t0\t0\t\t" && own.variables.empty()) return;
  *text += fmt::format("\nrecipe {}\n", settings);
  for (const auto& [name, value] : own.variables) *text += fmt::format("{}={}\n", name, value);
}

void add_own(const CaseSettings& own, discover::Variables* variables) {
  for (const auto& [name, value] : own.variables) {
    if (variables->find(name) == nullptr) variables->set.emplace(name, value);
  }
}

void add_case(const TestCase& test, const discover::Variables& variables, const CaseSettings& own, Files& files,
              std::string* text) {
  if (own.variables.empty()) {
    add_files(test, variables, files, text);
  } else {
    discover::Variables all = variables;
    add_own(own, &all);
    add_files(test, all, files, text);
  }
  add_settings(own, text);
}

std::string digest(const std::string& text) {
  const Result<std::string> made = digest_of_text(text);
  return made ? *made : "";
}

}  // namespace

discover::Variables variables_of(const RunOptions& options, const CaseSettings& own) {
  discover::Variables variables;
  for (const auto& [name, value] : options.variables) variables.set.emplace(name, value);
  for (const auto& [name, value] : options.environment) variables.environment.emplace(name, value);
  add_own(own, &variables);
  return variables;
}

std::string case_digest(const TestCase& test, const discover::Variables& variables, const CaseSettings& own) {
  std::string text;
  Files files;
  add_case(test, variables, own, files, &text);
  return digest(text);
}

std::string case_list_digest(const std::vector<const TestCase*>& cases, const discover::Variables& variables,
                             const std::vector<CaseSettings>& own) {
  Files files;
  std::string digests;
  std::string text;
  for (size_t i = 0; i < cases.size(); ++i) {
    text = cases[i]->name + "\n";
    add_case(*cases[i], variables, own.empty() ? CaseSettings() : own[i], files, &text);
    digests += digest(text);
  }
  return digest(digests);
}

}  // namespace assay::run
