#include "core/report/html_text.h"

#include <fmt/format.h>

#include <cmath>

#include "core/golden/text.h"
#include "core/report/xml_text.h"

namespace assay::report {
namespace {

enum class Spaces { kSpelled, kKept, kMarked };

constexpr size_t kMostCodePoints = 8000;  // of one text: a page must stay one that opens

void append_space(std::string& out, char c, Spaces spaces) {
  if (spaces == Spaces::kKept && c != '\r') {
    out += c;
  } else if (spaces == Spaces::kMarked) {
    out += c == ' ' ? "<em>·</em>" : c == '\n' ? "<em>↵</em>" : c == '\t' ? "<em>⇥</em>" : "<em>␍</em>";
  } else {
    out += c == ' ' ? " " : c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
  }
}

std::string escaped(std::string_view whole, Spaces spaces) {
  const std::string_view text = text::prefix(whole, kMostCodePoints);
  std::string out;
  out.reserve(text.size() + text.size() / 8);
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint point = text::decode(text, at);
    const std::string_view bytes = text.substr(at, point.length);
    at += point.length;
    if (!point.valid) {
      for (const char c : bytes) out += fmt::format("\\x{:02x}", static_cast<uint8_t>(c));
      continue;
    }
    switch (point.value) {
      case ' ':
      case '\n':
      case '\t':
      case '\r':
        append_space(out, static_cast<char>(point.value), spaces);
        break;
      default:
        if (const std::string_view entity = markup_entity(point.value); !entity.empty()) {
          out += entity;
        } else if (point.value < 0x20) {
          out += fmt::format("\\x{:02x}", static_cast<uint32_t>(point.value));
        } else if (text::invisible(point.value)) {
          out += fmt::format("\\u{:04x}", static_cast<uint32_t>(point.value));
        } else {
          out += bytes;
        }
    }
  }
  if (text.size() < whole.size()) out += fmt::format("… ({} bytes more)", whole.size() - text.size());
  return out;
}

}  // namespace

std::string html(std::string_view text) { return escaped(text, Spaces::kSpelled); }
std::string html_block(std::string_view text) { return escaped(text, Spaces::kKept); }

std::string html_token(std::string_view text) { return text.empty() ? "<em>∅</em>" : escaped(text, Spaces::kMarked); }

std::string url_path(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '-' || c == '_' || c == '.';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<uint8_t>(c));
  }
  return out;
}

std::string figure(double value) { return fmt::format("{:.3g}", value); }

std::string duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  if (seconds < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  if (seconds < 120) return fmt::format("{:.3g} s", seconds);
  const auto whole = static_cast<uint64_t>(seconds);
  return whole < 7200 ? fmt::format("{} min {} s", whole / 60, whole % 60)
                      : fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string plural(uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace assay::report
