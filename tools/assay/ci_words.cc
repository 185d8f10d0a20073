#include "tools/assay/ci_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/discover/shell_words.h"

namespace assay::cli {
namespace {

constexpr std::array<const char*, 9> kMandatory = {
    "TRAINING_SCRIPT_PATH", "TRAINING_PARAMS_PATH", "GOLDEN_VALUES_PATH", "OUTPUT_PATH",    "TENSORBOARD_PATH",
    "CHECKPOINT_SAVE_PATH", "CHECKPOINT_LOAD_PATH", "DATA_PATH",          "DATA_CACHE_PATH"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }
bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), is_name_char);
}

std::string without_quotes(std::string value) {
  for (const char quote : {'"', '\''}) {
    if (value.ends_with(quote)) value.pop_back();
    if (value.starts_with(quote)) value.erase(0, 1);
  }
  return value;
}

// Every run of blanks becomes one blank; none at the ends.
std::string collapsed(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool blank = c == ' ' || c == '\t' || c == '\n';
    if (!blank) out += c;
    if (blank && !out.empty() && out.back() != ' ') out += ' ';
  }
  if (out.ends_with(' ')) out.pop_back();
  return out;
}

using Values = std::map<std::string, std::string>;

constexpr char kPlace = '\x01';  // stands for a variable's value, which a shell takes as it is

// $NAME and ${NAME}, where a shell expands them, become kPlace, and their values come after each other.
std::string with_places(const std::string& text, const Values& words, const Values& environment,
                        std::vector<std::string>* values) {
  std::string out;
  bool single = false;
  bool twofold = false;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\\' && !single) {
      out += text.substr(i, 2);
      i += 2;
      continue;
    }
    if (c == '\'' && !twofold) single = !single;
    if (c == '"' && !single) twofold = !twofold;
    const bool braced = text.compare(i, 2, "${") == 0;
    const size_t begin = i + (braced ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const std::string name = c == '$' && !single ? text.substr(begin, end - begin) : "";
    if (!is_name(name) || (braced && (end >= text.size() || text[end] != '}'))) {
      out += text[i++];
      continue;
    }
    const Values& from = words.count(name) != 0 ? words : environment;
    const auto found = from.find(name);
    values->push_back(found == from.end() ? "" : found->second);
    out += kPlace;
    i = braced ? end + 1 : end;
  }
  return out;
}

// What `eval echo TEXT` prints. The second reading of a shell: what it would execute or expand, other than variables,
// is refused.
Result<std::string> evaluated(const std::string& text, const Values& words, const Values& environment) {
  if (text.find(kPlace) != std::string::npos) return invalid("the value has the control character 0x01; leave it out");
  std::vector<std::string> values;
  const Result<std::vector<std::string>> split =
      discover::split_shell_words(with_places(text, words, environment, &values));
  if (!split) {
    const Status& why = split.status();
    return Status(why.code(), why.message() + " (run_ci_test.sh lets a shell read each value once more)");
  }
  const auto is_option = [](const std::string& word) {
    return word.size() > 1 && word[0] == '-' && word.find_first_not_of("neE", 1) == std::string::npos;
  };
  if (!split->empty() && is_option(split->front())) {
    return invalid("the value begins with " + split->front() + ", which the script's echo takes for an option");
  }
  std::string out;
  auto value = values.begin();
  for (const std::string& word : *split) {
    if (!out.empty()) out += ' ';
    for (const char c : word) {
      if (c == kPlace) {
        out += *value++;
      } else {
        out += c;
      }
    }
  }
  return collapsed(out);
}

}  // namespace

Result<std::map<std::string, std::string>> parse_ci_words(const Words& words, const Values& environment) {
  Values values;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string key = word.substr(0, equals);
    if (equals == std::string::npos || !is_name(key)) {
      return invalid("'" + key + "': expected KEY=VALUE, for example OUTPUT_PATH=/results; options begin with --");
    }
    if (values.count(key) != 0) return invalid(key + " is given twice; keep one");
    Result<std::string> value = evaluated(without_quotes(word.substr(equals + 1)), values, environment);
    if (!value) return value.status().with(key);
    values[key] = *std::move(value);
  }
  return values;
}

std::vector<std::string> missing_ci_words(const Values& words, const Values& environment) {
  std::vector<std::string> missing;
  for (const char* name : kMandatory) {
    const auto given = words.find(name);
    const auto inherited = environment.find(name);
    const bool there =
        given != words.end() ? !given->second.empty() : inherited != environment.end() && !inherited->second.empty();
    if (!there) missing.emplace_back(name);
  }
  return missing;
}

Values inherited_ci_words(const Values& words, const Values& environment) {
  std::vector<std::string> names(kMandatory.begin(), kMandatory.end());
  names.insert(names.end(), {"RUN_CI_BARRIER_DIR", "N_REPEAT"});
  Values inherited;
  for (const std::string& name : names) {
    const auto found = environment.find(name);
    if (words.count(name) != 0 || found == environment.end() || found->second.empty()) continue;
    inherited.insert(*found);
  }
  return inherited;
}

}  // namespace assay::cli
