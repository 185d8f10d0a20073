#include "plugins/engines/common/template_words.h"

#include <fmt/format.h>

#include <string_view>

#include "core/discover/nearest.h"

namespace assay::engines {
namespace {

Status unknown(const std::string& name, const TemplateVariables& variables) {
  std::vector<std::string_view> names;
  std::string list;
  for (const auto& [known, variable] : variables) {
    names.push_back(known);
    list += (list.empty() ? "{" : " {") + known + "}";
  }
  return invalid(fmt::format("there is no template variable {{{}}}{}; known: {}; write {{{{ and }}}} for braces", name,
                             discover::did_you_mean(name, names), list));
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i) text += (i > 0 ? " " : "") + words[i];
  return text;
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
      return invalid(fmt::format("a single brace {} that {}; write {}{} for the character", c,
                                 c == '}' ? "closes nothing" : "is never closed", c, c));
    }
    if (Status known = variable(word.substr(i + 1, end - i - 1)); !known.ok()) return known;
    i = end;
  }
  return {};
}

}  // namespace

Result<std::vector<std::string>> fill_in(const std::vector<std::string>& words, const TemplateVariables& variables,
                                         const std::string& what) {
  std::vector<std::string> filled;
  for (const std::string& word : words) {
    std::string made;
    const TemplateVariable* alone = nullptr;
    const auto put = [&](const std::string& name) -> Status {
      const auto found = variables.find(name);
      if (found == variables.end()) return unknown(name, variables);
      const TemplateVariable& variable = found->second;
      if (!variable.absent.empty()) {
        return invalid(fmt::format("{{{}}} has no value: {}", name, variable.absent));
      }
      if (variable.several && word.size() == name.size() + 2) {
        alone = &variable;
      } else if (variable.several && !variable.joined) {
        return invalid(fmt::format("{{{}}} stands for several words: let it stand alone", name));
      } else {
        made += joined(variable.words);
      }
      return {};
    };
    const Status done = parts_of(
        word, [&](char c) { made += c; }, put);
    if (!done.ok()) return done.with(fmt::format("{}, word '{}'", what, word));
    if (alone == nullptr) {
      filled.push_back(std::move(made));
    } else {
      filled.insert(filled.end(), alone->words.begin(), alone->words.end());
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
