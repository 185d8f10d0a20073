#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "core/command/redact.h"

namespace assay::command {
namespace {

constexpr std::array<const char*, 3> kParts = {"KEY", "TOKEN", "API"};
constexpr std::array<const char*, 5> kStrongParts = {"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "CREDENTIAL"};
constexpr std::array<const char*, 2> kEnds = {"PASS", "PWD"};           // of a word
constexpr std::array<std::string_view, 2> kShells = {"PWD", "OLDPWD"};  // folders

std::string upper_of(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
  return upper;
}

// AUTH, AUTHENTICATION, AUTHORIZATION; not AUTHOR or AUTHORITY.
bool has_auth(std::string_view upper) {
  for (size_t at = upper.find("AUTH"); at != std::string_view::npos; at = upper.find("AUTH", at + 1)) {
    const std::string_view rest = upper.substr(at + 4);
    if (!rest.starts_with("OR") || rest.starts_with("ORIZ") || rest.starts_with("ORIS")) return true;
  }
  return false;
}

bool is_secret_word(std::string_view word) {
  return word == "PAT" ||
         std::any_of(kEnds.begin(), kEnds.end(), [word](const char* end) { return word.ends_with(end); });
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string upper = upper_of(name);
  if (std::find(kShells.begin(), kShells.end(), upper) != kShells.end()) return false;
  const auto holds = [&upper](const char* part) { return upper.find(part) != std::string::npos; };
  if (std::any_of(kParts.begin(), kParts.end(), holds)) return true;
  if (std::any_of(kStrongParts.begin(), kStrongParts.end(), holds) || has_auth(upper)) return true;
  for (size_t begin = 0; begin < upper.size();) {
    const auto* const end = std::find_if(upper.data() + begin, upper.data() + upper.size(),
                                         [](unsigned char c) { return std::isalnum(c) == 0; });
    const auto length = static_cast<size_t>(end - upper.data()) - begin;
    if (is_secret_word(std::string_view(upper).substr(begin, length))) return true;
    begin += length + 1;
  }
  return false;
}

bool is_count(std::string_view name, std::string_view value) {
  return upper_of(name).find("TOKENS") != std::string::npos &&
         value.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_variable_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && letter(text[0]) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

bool is_secret_option(std::string_view name) {
  const std::string upper = upper_of(name);
  const auto holds = [&upper](const char* part) { return upper.find(part) != std::string::npos; };
  if (upper.ends_with("VARIABLE") || upper.ends_with("KEY_HEADER")) return false;
  if (std::any_of(kStrongParts.begin(), kStrongParts.end(), holds) || has_auth(upper)) return true;
  if (holds("API") && holds("KEY")) return true;
  const auto word = std::find_if(upper.rbegin(), upper.rend(), [](unsigned char c) { return std::isalnum(c) == 0; });
  const std::string_view last = std::string_view(upper).substr(static_cast<size_t>(upper.rend() - word));
  return last.ends_with("KEY") || last.ends_with("TOKEN") || is_secret_word(last);
}

}  // namespace assay::command
