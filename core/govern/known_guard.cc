// A known completion is a fact about a text: no run can change it.
#include <fmt/format.h>

#include "core/compare/checks.h"
#include "core/compare/known_completion.h"
#include "core/discover/input_path.h"
#include "core/golden/text.h"
#include "core/govern/merge.h"

namespace assay::govern {
namespace {

std::string_view judged_part(std::string_view text) { return text.substr(0, text::first_blank_line(text)); }

std::string unescaped_newlines(std::string text) {
  for (size_t at = text.find("\\n"); at != std::string::npos; at = text.find("\\n", at + 1)) text.replace(at, 2, "\n");
  return text;
}

Status too_short(const std::string& id, std::string_view now, std::string_view before) {
  return invalid(
      fmt::format("request {}: a known completion may not become shorter: {} code points before the first "
                  "blank line, the golden has {}",
                  id, text::count(now), text::count(before)));
}

// The golden is the only source: it may be added to where it has no text, and not changed.
Status check_own(const RequestRecord& request, const RequestRecord* old, const std::string& id) {
  const std::string_view now = judged_part(*request.text);
  if (old == nullptr || !old->text) {
    return compare::check_own_reference(
        {.id = request.id, .prompt = {}, .golden_text = *request.text, .actual_text = {}});
  }
  const std::string_view before = judged_part(*old->text);
  if (now == before) return {};
  const size_t at = text::common_prefix(now, before);
  return invalid(fmt::format(
      "request {}: a known completion cannot be accepted from a run: at code point {} the golden "
      "says {}, the run {}; the golden is the known text (no ASSAY.known_completion source)",
      id, text::count(before.substr(0, at)), text::around(before, at, 30, 30), text::around(now, at, 30, 30)));
}

// The file that holds the prompt; known_reference made sure that there is one.
std::string source_of(const std::vector<compare::SourceText>& sources, std::string_view prompt) {
  for (const compare::SourceText& source : sources) {
    if (source.text.find(prompt) != std::string::npos) return source.path;
  }
  return {};
}

Status check_source(const std::vector<compare::SourceText>& sources, const RequestRecord& request,
                    const RequestRecord* old, const std::string& id) {
  const auto reference = compare::known_reference(
      sources, {.id = request.id, .prompt = request.prompt, .golden_text = {}, .actual_text = *request.text});
  if (!reference) return reference.status().with("a known completion cannot be accepted without its source");
  const std::string_view now = judged_part(*request.text);
  const std::string_view known = judged_part(*reference);
  if (const size_t at = text::common_prefix(now, known); at < now.size()) {
    return invalid(
        fmt::format("request {}: a known completion cannot be accepted unless its text is the source's: at "
                    "code point {} the run says {}, {} says {}",
                    id, text::count(now.substr(0, at)), text::around(now, at, 30, 30),
                    source_of(sources, *request.prompt), text::around(known, at, 30, 30)));
  }
  if (text::count(now) < compare::kLeastKnownCompletion) {
    return invalid(
        fmt::format("request {}: only {} code points before the first blank line; a known completion needs "
                    "at least {}",
                    id, text::count(now), compare::kLeastKnownCompletion));
  }
  if (old == nullptr || !old->text) return {};
  const std::string_view before = judged_part(*old->text);
  const bool right = before.size() <= known.size() && known.substr(0, before.size()) == before;
  if (right && now.size() < before.size()) return too_short(id, now, before);
  return {};
}

}  // namespace

Status check_known_completion(const TestCase& test, const ResultSet& before, const ResultSet& set) {
  if (test.assay.golden != GoldenKind::kKnownCompletion) return {};
  std::vector<std::string> paths;
  for (const std::string& source : test.assay.known_completion) {
    auto path = discover::find_input(source, test.dir);
    if (!path) return path.status().with("ASSAY.known_completion");
    paths.push_back(*std::move(path));
  }
  const auto sources = compare::load_sources(paths);
  if (!sources) return sources.status();
  for (const RequestRecord& old : before.requests) {
    if (set.find(old.id) != nullptr) continue;
    return invalid(
        fmt::format("request {}: a known completion may not be dropped; record every request, or remove "
                    "the golden first if the case does not ask for it any more",
                    text::printable(old.id)));
  }
  const bool escaped = compare::escapes_newlines(set);
  for (const RequestRecord& given : set.requests) {
    const std::string id = text::printable(given.id);
    if (!given.text) continue;
    RequestRecord request;
    request.id = given.id;
    request.prompt = given.prompt;
    request.text = escaped ? unescaped_newlines(*given.text) : *given.text;
    if (escaped && given.prompt) request.prompt = unescaped_newlines(*given.prompt);
    const RequestRecord* old = before.find(given.id);
    if (Status status = sources->empty() ? check_own(request, old, id) : check_source(*sources, request, old, id);
        !status.ok()) {
      return status;
    }
  }
  return {};
}

}  // namespace assay::govern
