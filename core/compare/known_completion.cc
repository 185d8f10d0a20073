#include "core/compare/known_completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/golden/file.h"
#include "core/golden/text.h"

namespace assay::compare {
namespace {

constexpr size_t kMaxPlacesNamed = 5;

std::string without_carriage_returns(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '\r' && at + 1 < text.size() && text[at + 1] == '\n') continue;
    out += text[at];
  }
  return out;
}

size_t first_ill_formed(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint point = text::decode(text, at);
    if (!point.valid) return at;
    at += point.length;
  }
  return text.size();
}

struct Place {
  const SourceText* source;
  size_t offset;  // bytes

  std::string name() const {
    const auto line = std::count(source->text.begin(), source->text.begin() + static_cast<ptrdiff_t>(offset), '\n') + 1;
    return fmt::format("{}:{}", source->path, line);
  }
};

std::vector<Place> places_of(std::string_view prompt, const std::vector<SourceText>& sources) {
  std::vector<Place> places;
  for (const SourceText& source : sources) {
    for (size_t at = source.text.find(prompt); at != std::string::npos; at = source.text.find(prompt, at + 1)) {
      places.push_back({&source, at});
    }
  }
  return places;
}

std::string list_places(const std::vector<Place>& places, const std::vector<SourceText>& sources) {
  std::vector<std::string> names;
  for (const Place& place : places) {
    if (names.size() == kMaxPlacesNamed) {
      names.emplace_back("...");
      break;
    }
    names.push_back(place.name());
  }
  if (!places.empty()) return fmt::format("at {}", fmt::join(names, ", "));
  for (const SourceText& source : sources) names.push_back(source.path);
  return fmt::format("in {}", fmt::join(names, ", "));
}

Status contradiction(std::string_view id, std::string_view golden, std::string_view known, size_t offset) {
  constexpr size_t kBefore = 30;
  constexpr size_t kAfter = 30;
  return invalid(
      fmt::format("request {}: the golden's generated_text contradicts the known completion at code point "
                  "{}: golden {}, source {}; the golden is wrong or the source is another text",
                  text::printable(id), text::count(golden.substr(0, offset)),
                  text::around(golden, offset, kBefore, kAfter), text::around(known, offset, kBefore, kAfter)));
}

}  // namespace

Result<std::vector<SourceText>> load_sources(const std::vector<std::string>& paths) {
  std::vector<SourceText> sources;
  for (const std::string& path : paths) {
    const Result<std::string> content = read_file(path);
    if (!content) return invalid("known-completion source " + content.status().message());
    const std::string& text = *content;
    if (text.empty()) return invalid(path + ": known-completion source is empty");
    if (const size_t bad = first_ill_formed(text); bad != text.size()) {
      return invalid(fmt::format("{}: known-completion source is not UTF-8: ill-formed byte at offset {}", path, bad));
    }
    sources.push_back({path, without_carriage_returns(text)});
  }
  return sources;
}

Result<std::string> known_reference(const std::vector<SourceText>& sources, const KnownRequest& request) {
  const std::string id = text::printable(request.id);
  if (!request.prompt || request.prompt->empty()) {
    return invalid(
        fmt::format("request {}: neither golden nor result records input_prompt, which is needed to find the "
                    "known completion in its source",
                    id));
  }
  const std::vector<Place> places = places_of(*request.prompt, sources);
  if (places.size() != 1) {
    return invalid(
        fmt::format("request {}: its prompt {} occurs {} times {}; a known completion needs exactly one place", id,
                    text::quoted(*request.prompt, 40), places.size(), list_places(places, sources)));
  }
  const std::string_view source = places[0].source->text;
  const std::string_view after = source.substr(places[0].offset + request.prompt->size());
  const std::string_view known = after.substr(0, std::min(after.find("\n\n"), after.size()));
  if (const size_t length = text::count(known); length < kLeastKnownCompletion) {
    return invalid(
        fmt::format("request {}: only {} code points follow its prompt at {} before the first blank line; a "
                    "known completion needs at least {}",
                    id, length, places[0].name(), kLeastKnownCompletion));
  }
  size_t reached = known.size();  // bytes of `known` that the golden covers
  if (request.golden_text) {
    const std::string_view golden = request.golden_text->substr(0, text::first_blank_line(*request.golden_text));
    reached = std::min(golden.size(), known.size());
    const size_t equal = text::common_prefix(golden, known);
    if (equal < reached) return contradiction(request.id, golden, known, equal);
  }
  const std::string_view actual = request.actual_text.value_or(std::string_view());
  if (actual.size() > known.size()) {
    const size_t shown = std::max(actual.size(), known.size() + 2);  // the blank line itself included
    return std::string(text::prefix(after, text::count(after.substr(0, shown))));
  }
  if (request.out_of_tokens) reached = std::min(reached, text::offset_of(known, kLeastKnownCompletion));
  // As many code points as the result has, at least as many as it must have.
  const size_t length = std::max(text::offset_of(known, text::count(actual)), reached);
  return std::string(known.substr(0, length));
}

Status check_own_reference(const KnownRequest& request) {
  const std::string id = text::printable(request.id);
  if (!request.golden_text) {
    return invalid(
        fmt::format("request {}: a known completion without source needs generated_text in the golden; it is "
                    "missing: add it or name the source in ASSAY.known_completion",
                    id));
  }
  const size_t length = text::count(request.golden_text->substr(0, text::first_blank_line(*request.golden_text)));
  if (length >= kLeastKnownCompletion) return {};
  return invalid(
      fmt::format("request {}: the golden's known completion has {} code points before its first blank line; "
                  "at least {} are needed",
                  id, length, kLeastKnownCompletion));
}

}  // namespace assay::compare
