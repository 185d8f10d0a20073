#include "plugins/launchers/command/template.h"

#include <algorithm>
#include <functional>
#include <string_view>

#include "core/discover/nearest.h"

namespace assay::launchers {
namespace {

// Calls `text` for what stands for itself and `variable` for each name; false at a brace that has no partner.
bool walk(std::string_view word, const std::function<void(std::string_view)>& text,
          const std::function<void(std::string_view)>& variable) {
  for (size_t at = 0; at < word.size();) {
    const size_t brace = std::min(word.find_first_of("{}", at), word.size());
    if (brace > at) text(word.substr(at, brace - at));
    if (brace == word.size()) break;
    if (brace + 1 < word.size() && word[brace + 1] == word[brace]) {
      text(word.substr(brace, 1));
      at = brace + 2;
      continue;
    }
    const size_t end = word.find('}', brace);
    if (word[brace] == '}' || end == std::string_view::npos) return false;
    variable(word.substr(brace + 1, end - brace - 1));
    at = end + 1;
  }
  return true;
}

}  // namespace

std::vector<std::string> expand_template(const std::vector<std::string>& words, const TemplateValues& values) {
  std::vector<std::string> made;
  for (const std::string& word : words) {
    const bool alone = word.size() > 2 && word.front() == '{' && word.find_first_of("{}", 1) == word.size() - 1;
    if (alone && word.back() == '}') {
      if (const auto found = values.find(word.substr(1, word.size() - 2)); found != values.end()) {
        made.insert(made.end(), found->second.begin(), found->second.end());
      }
      continue;
    }
    std::string text;
    walk(
        word, [&](std::string_view plain) { text += plain; },
        [&](std::string_view name) {
          const auto found = values.find(std::string(name));
          if (found == values.end()) return;
          for (size_t i = 0; i < found->second.size(); ++i) text += (i > 0 ? " " : "") + found->second[i];
        });
    made.push_back(std::move(text));
  }
  return made;
}

Status check_template(const std::vector<std::string>& words, const std::vector<std::string>& known,
                      const std::string& what) {
  Status status;
  for (const std::string& word : words) {
    const bool closed = walk(
        word, [](std::string_view) {},
        [&](std::string_view name) {
          if (!status.ok() || std::find(known.begin(), known.end(), name) != known.end()) return;
          const std::vector<std::string_view> names(known.begin(), known.end());
          std::string list;
          for (const std::string& one : known) list += (list.empty() ? "{" : ", {") + one + "}";
          status = invalid(what + " holds {" + std::string(name) + "}, which is no variable" +
                           discover::did_you_mean(name, names) + "; known: " + list);
        });
    if (!status.ok()) return status;
    if (!closed)
      return invalid(what + " holds '" + word + "': a brace without its partner; {{ and }} stand for braces");
  }
  return {};
}

}  // namespace assay::launchers
