#include "core/command/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

namespace assay::command {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastEcho = 4;    // bytes of a value that is looked for
constexpr size_t kPiece = 1 << 20;  // bytes of a file that are read at once
constexpr std::array<const char*, 5> kSecretParts = {"KEY", "TOKEN", "API", "PASSWORD", "SECRET"};
constexpr std::array<const char*, 11> kPlainWords = {"true", "false", "none",    "null",     "auto",     "default",
                                                     "yes",  "no",    "enabled", "disabled", "undefined"};

bool is_plain(std::string_view value) {
  std::string lower(value);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  if (std::find(kPlainWords.begin(), kPlainWords.end(), lower) != kPlainWords.end()) return true;
  std::error_code code;
  return value.front() == '/' && fs::exists(fs::path(value), code);
}

// As a JSON writer that escapes no more than it must writes the inside of a string.
std::string escaped(std::string_view value) {
  constexpr const char* kHex = "0123456789abcdef";
  std::string text;
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      text += '\\';
      text += c;
    } else if (c == '\n' || c == '\t' || c == '\r') {
      text += c == '\n' ? "\\n" : c == '\t' ? "\\t" : "\\r";
    } else if (byte < 0x20) {
      text += "\\u00";
      text += kHex[byte >> 4];
      text += kHex[byte & 15];
    } else {
      text += c;
    }
  }
  return text;
}

bool is_name(std::string_view text) {
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return !text.empty() && std::isdigit(static_cast<unsigned char>(text.front())) == 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return std::any_of(kSecretParts.begin(), kSecretParts.end(),
                     [&](const char* part) { return upper.find(part) != std::string::npos; });
}

Redactor::Redactor(const std::map<std::string, std::string>& environment) { add(environment); }

void Redactor::add(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) add(name, value);
}

void Redactor::add(std::string_view name, std::string_view value) {
  if (value.size() < kLeastEcho || !is_secret_name(name) || is_plain(value)) return;
  const auto known = [&](const Secret& secret) { return secret.value == value; };
  if (std::any_of(secrets_.begin(), secrets_.end(), known)) return;
  secrets_.push_back({std::string(name), std::string(value)});
  spellings_.emplace_back(value);
  if (std::string json = escaped(value); json != value) spellings_.push_back(std::move(json));
  std::stable_sort(secrets_.begin(), secrets_.end(),
                   [](const Secret& a, const Secret& b) { return a.value.size() > b.value.size(); });
  std::stable_sort(spellings_.begin(), spellings_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Redactor::text(std::string_view text) const {
  std::string result(text);
  for (const std::string& spelling : spellings_) {
    for (size_t at = result.find(spelling); at != std::string::npos; at = result.find(spelling, at)) {
      result.replace(at, spelling.size(), kRedacted);
      at += kRedacted.size();
    }
  }
  return result;
}

std::string Redactor::value(std::string_view name, std::string_view value) const {
  return is_secret_name(name) && !value.empty() ? std::string(kRedacted) : text(value);
}

std::string Redactor::word(std::string_view word) const {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return text(word);
  if (word.starts_with("--")) return std::string(word.substr(0, equals + 1)) + this->word(word.substr(equals + 1));
  if (!is_name(word.substr(0, equals))) return text(word);
  return std::string(word.substr(0, equals + 1)) + value(word.substr(0, equals), word.substr(equals + 1));
}

std::vector<std::string> Redactor::words(const std::vector<std::string>& words) const {
  std::vector<std::string> result;
  for (const std::string& one : words) result.push_back(word(one));
  return result;
}

// Pieces overlap by what the longest value may need: the end of a piece that could begin a value waits for the next.
Status Redactor::file(const fs::path& path) const {
  if (spellings_.empty()) return {};
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return {};
  const auto failed = [&path](const char* what) {
    return Status(StatusCode::kInfra, path.string() + ": secrets cannot be taken out: " + what + ": " +
                                          std::strerror(errno) + "; remove the file");
  };
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed("it cannot be read");
  const size_t longest = spellings_.front().size();
  const fs::path changed = path.string() + ".redacted";
  std::ofstream out;
  std::string pending;
  std::string clean;  // length of what was read and holds nothing, before `out` is needed
  size_t clean_bytes = 0;
  std::string piece(kPiece, '\0');
  for (bool more = true; more;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const auto got = static_cast<size_t>(in.gcount());
    more = got == piece.size();
    pending.append(piece, 0, got);
    std::string done = text(pending);
    size_t keep = more ? std::min(longest - 1, done.size()) : 0;
    const bool holds = done != pending;
    if (holds && !out.is_open()) {
      out.open(changed, std::ios::binary | std::ios::trunc);
      std::ifstream before(path, std::ios::binary);
      for (size_t left = clean_bytes; left > 0;) {
        clean.resize(std::min(left, kPiece));
        before.read(clean.data(), static_cast<std::streamsize>(clean.size()));
        out.write(clean.data(), static_cast<std::streamsize>(clean.size()));
        left -= clean.size();
      }
    }
    const size_t finished = done.size() - keep;
    if (out.is_open()) {
      out.write(done.data(), static_cast<std::streamsize>(finished));
    } else {
      clean_bytes += finished;
    }
    pending = done.substr(finished);
  }
  if (!out.is_open()) return {};
  out.close();
  if (!out) {
    fs::remove(changed, code);
    return failed("the new one cannot be written");
  }
  fs::permissions(changed, fs::status(path, code).permissions(), code);
  fs::rename(changed, path, code);
  if (!code) return {};
  errno = code.value();
  fs::remove(changed, code);
  return failed("it cannot be replaced");
}

}  // namespace assay::command
