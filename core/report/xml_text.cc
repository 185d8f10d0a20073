#include "core/report/xml_text.h"

#include <fmt/format.h>

#include <cstdint>

#include "core/golden/text.h"

namespace assay::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool allowed(char32_t value) {
  if (value < 0x20) return value == '\t' || value == '\n' || value == '\r';
  return value != 0xFFFE && value != 0xFFFF;
}

}  // namespace

std::string_view markup_entity(char32_t value) {
  switch (value) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return {};
  }
}

std::string xml_escape(std::string_view text) {
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint point = text::decode(text, at);
    const std::string_view entity = markup_entity(point.value);
    if (!point.valid || !allowed(point.value)) {
      out += kReplacement;
    } else if (!entity.empty()) {
      out += entity;
    } else if (point.value < 0x20) {
      out += fmt::format("&#{};", static_cast<uint32_t>(point.value));
    } else {
      out += text.substr(at, point.length);
    }
    at += point.length;
  }
  return out;
}

}  // namespace assay::report
