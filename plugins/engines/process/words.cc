#include "plugins/engines/process/words.h"

#include <fmt/format.h>

namespace assay::engines {
namespace {

std::string known_names(const TemplateVariables& variables) {
  std::string list;
  for (const auto& [name, variable] : variables) list += (list.empty() ? "{" : " {") + name + "}";
  return list;
}

// Calls text(char) and variable(name) for the parts of a word in order.
template <class Text, class Variable>
Status parts_of(const std::string& word, Text&& text, Variable&& variable) {
  for (size_t i = 0; i < word.size(); ++i) {
    const char c = word[i];
    if (c != '{' && c != '}') {
      text(c);
      continue;
    }
    if (i + 1 < word.size() && word[i + 1] == c) {
      text(c);
      ++i;
      continue;
    }
    const size_t end = word.find('}', i);
    if (c == '}' || end == std::string::npos) {
      return invalid(fmt::format("command, word '{}': a single brace {} that {}; write {}{} for the character", word, c,
                                 c == '}' ? "closes nothing" : "is never closed", c, c));
    }
    if (Status known = variable(word.substr(i + 1, end - i - 1)); !known.ok()) return known;
    i = end;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> fill_in(const std::vector<std::string>& words, const TemplateVariables& variables) {
  std::vector<std::string> filled;
  for (const std::string& word : words) {
    std::string made;
    const TemplateVariable* several = nullptr;
    const Status done = parts_of(
        word, [&](char c) { made += c; },
        [&](const std::string& name) -> Status {
          const auto found = variables.find(name);
          if (found == variables.end()) {
            return invalid(
                fmt::format("command, word '{}': there is no template variable {{{}}}; known: {}; write "
                            "{{{{ and }}}} for braces",
                            word, name, known_names(variables)));
          }
          const TemplateVariable& variable = found->second;
          if (!variable.absent.empty()) {
            return invalid(fmt::format("command, word '{}': {{{}}} has no value: {}", word, name, variable.absent));
          }
          if (!variable.several) {
            made += variable.words.front();
          } else if (word.size() == name.size() + 2) {
            several = &variable;
          } else {
            return invalid(
                fmt::format("command, word '{}': {{{}}} stands for several words: let it stand alone", word, name));
          }
          return {};
        });
    if (!done.ok()) return done;
    if (several == nullptr) {
      filled.push_back(std::move(made));
    } else {
      filled.insert(filled.end(), several->words.begin(), several->words.end());
    }
  }
  return filled;
}

bool names_variable(const std::vector<std::string>& words, const std::string& name) {
  bool named = false;
  for (const std::string& word : words) {
    const Status done = parts_of(
        word, [](char) {},
        [&](const std::string& one) {
          named = named || one == name;
          return Status();
        });
    if (!done.ok()) return named;
  }
  return named;
}

}  // namespace assay::engines
