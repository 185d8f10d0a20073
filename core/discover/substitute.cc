#include "core/discover/substitute.h"

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

Status substitute_args(ModelArgs& args, const TestCase& test_case, const Variables& variables) {
  for (ModelArg& arg : args.entries) {
    const auto replace = [&](std::string& text) -> Status {
      if (text.find('$') == std::string::npos) return {};
      Result<std::string> replaced = substitute(text, variables, SubstitutionUse::kArgument);
      if (!replaced.ok()) return replaced.status().with(at(test_case, arg.place) + args.name + " " + arg.key);
      text = *std::move(replaced);
      return {};
    };
    if (Status done = replace(arg.text); !done.ok()) return done;
    for (std::string& item : arg.items) {
      if (Status done = replace(item); !done.ok()) return done;
    }
  }
  return {};
}

}  // namespace

const std::string* Variables::find(std::string_view name) const {
  if (const auto found = set.find(name); found != set.end()) return &found->second;
  if (const auto found = environment.find(name); found != environment.end()) return &found->second;
  return nullptr;
}

Result<std::string> substitute(std::string_view text, const Variables& variables, SubstitutionUse use) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const Reference reference = text[i] == '$' ? reference_at(text, i) : Reference{};
    if (reference.name.empty()) {
      out += text[i++];
      continue;
    }
    const std::string name(reference.name);
    const std::string* value = variables.find(reference.name);
    const bool escaped = i > 0 && text[i - 1] == '\\';
    if (value == nullptr && !(escaped && use == SubstitutionUse::kArgument)) {
      std::string message = "variable ";
      message.append(name)
          .append(" is not set: give it with --set ")
          .append(name)
          .append("=VALUE or in the environment");
      return invalid(std::move(message));
    }
    if (value != nullptr && use == SubstitutionUse::kArgument &&
        value->find_first_of("'\"\\`$\n") != std::string::npos) {
      return invalid("the value of " + name +
                     " holds a quote, backslash, backtick, dollar or line end, which the shell of the run would "
                     "change: choose another path or value");
    }
    out += value == nullptr ? text.substr(i, reference.end - i) : std::string_view(*value);
    i = reference.end;
  }
  return out;
}

Status substitute_env_vars(TestCase& test_case, const Variables& variables) {
  for (EnvVar& variable : test_case.env_vars) {
    Result<std::string> replaced = substitute(variable.value, variables, SubstitutionUse::kPlain);
    if (!replaced.ok()) return replaced.status().with(at(test_case, variable.place) + "ENV_VARS " + variable.name);
    variable.value = *std::move(replaced);
  }
  return {};
}

Status substitute_model_args(TestCase& test_case, const Variables& variables) {
  if (Status done = substitute_args(test_case.model_args, test_case, variables); !done.ok()) return done;
  for (ModelArgs& args : test_case.further_model_args) {
    if (Status done = substitute_args(args, test_case, variables); !done.ok()) return done;
  }
  return {};
}

}  // namespace assay::discover
