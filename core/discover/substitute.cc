#include "core/discover/substitute.h"

#include <unordered_set>

#include "core/discover/yaml_text.h"

namespace assay::discover {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

struct Reference {
  std::string_view name;
  size_t end = 0;  // behind the reference
};

// The reference that starts with the $ at `at`; an empty name: none.
Reference reference_at(std::string_view text, size_t at) {
  const bool braced = at + 1 < text.size() && text[at + 1] == '{';
  const size_t begin = at + (braced ? 2 : 1);
  if (begin >= text.size() || !is_letter(text[begin])) return {};
  size_t end = begin;
  while (end < text.size() && is_name_char(text[end])) ++end;
  if (braced && (end >= text.size() || text[end] != '}')) return {};
  return {text.substr(begin, end - begin), braced ? end + 1 : end};
}

std::string at(const TestCase& test_case, const SourcePlace& place) {
  return at_place(test_case.config, place.line, place.column);
}

// Appends what `text` becomes; the name of the first variable that is not set and whose reference stayed, or "".
std::string_view replace(std::string_view text, const Variables& variables, std::string& out) {
  std::string_view unset;
  for (size_t i = 0; i < text.size();) {
    const Reference reference = text[i] == '$' ? reference_at(text, i) : Reference{};
    if (reference.name.empty()) {
      out += text[i++];
      continue;
    }
    const std::string* value = variables.find(reference.name);
    if (value == nullptr && unset.empty()) unset = reference.name;
    out += value == nullptr ? text.substr(i, reference.end - i) : std::string_view(*value);
    i = reference.end;
  }
  return unset;
}

}  // namespace

const std::string* Variables::find(std::string_view name) const {
  if (const auto found = set.find(name); found != set.end()) return &found->second;
  if (const auto found = environment.find(name); found != environment.end()) return &found->second;
  return nullptr;
}

Result<std::string> substitute(std::string_view text, const Variables& variables) {
  std::string out;
  const std::string name(replace(text, variables, out));
  if (name.empty()) return out;
  return invalid("variable " + name + " is not set: give it with --set " + name + "=VALUE or in the environment");
}

std::string substitute_known(std::string_view text, const Variables& variables) {
  std::string out;
  out.reserve(text.size());
  replace(text, variables, out);
  return out;
}

std::vector<std::string> referenced_variables(std::string_view text) {
  std::vector<std::string> names;
  std::unordered_set<std::string_view> seen;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    const std::string_view name = reference_at(text, at).name;
    const bool escaped = at > 0 && text[at - 1] == '\\';
    if (!name.empty() && !escaped && seen.insert(name).second) names.emplace_back(name);
  }
  return names;
}

Status substitute_env_vars(TestCase& test_case, const Variables& variables) {
  for (EnvVar& variable : test_case.env_vars) {
    Result<std::string> replaced = substitute(variable.value, variables);
    if (!replaced.ok()) return replaced.status().with(at(test_case, variable.place) + "ENV_VARS " + variable.name);
    variable.value = *std::move(replaced);
  }
  return {};
}

}  // namespace assay::discover
