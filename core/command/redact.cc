#include "core/command/redact.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "core/command/files_below.h"

namespace assay::command {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLeastEcho = 4;    // bytes of a value that is looked for
constexpr size_t kPiece = 1 << 20;  // bytes of a file that are read at once
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
    } else if (c == '\b' || c == '\f') {
      text += c == '\b' ? "\\b" : "\\f";
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

// The name of an option word like "--api-key" or "--api-key=x"; empty: it is none.
std::string_view option_name(std::string_view word) {
  if (!word.starts_with("--")) return {};
  word.remove_prefix(2);
  return word.substr(0, word.find('='));
}

bool is_secret_option_word(std::string_view word) { return is_secret_option(option_name(word)); }

// What a script's line may hold between blanks, without quotes around it.
std::vector<std::string> pieces_of(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string> pieces;
  for (size_t begin = text.find_first_not_of(kBlanks); begin != std::string_view::npos;) {
    const size_t end = std::min(text.find_first_of(kBlanks, begin), text.size());
    std::string piece(text.substr(begin, end - begin));
    std::erase_if(piece, [](char c) { return c == '"' || c == '\''; });
    pieces.push_back(std::move(piece));
    begin = text.find_first_not_of(kBlanks, end);
  }
  return pieces;
}

// As a shell takes a line apart: quotes hold blanks and signs together, a backslash the next character.
std::vector<std::string> shell_pieces_of(std::string_view text) {
  constexpr std::string_view kBetween = " \t\r\n;&|()<>";
  std::vector<std::string> pieces;
  std::string piece;
  const auto end_piece = [&] {
    if (!piece.empty()) pieces.push_back(piece);
    piece.clear();
  };
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      const char next = text[++i];
      if (quote == '"' && next != '"' && next != '\\' && next != '$' && next != '`') piece += c;
      if (next != '\n') piece += next;
    } else if (quote == 0 ? c == '"' || c == '\'' : c == quote) {
      quote = quote == 0 ? c : '\0';
    } else if (quote == 0 && kBetween.find(c) != std::string_view::npos) {
      end_piece();
    } else {
      piece += c;
    }
  }
  end_piece();
  return pieces;
}

// The first bytes of a file, in pieces. False: they cannot be read.
bool copy_beginning(const fs::path& from, size_t bytes, std::ofstream& to) {
  std::ifstream in(from, std::ios::binary);
  std::string piece;
  for (size_t left = bytes; left > 0 && in;) {
    piece.resize(std::min(left, kPiece));
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    to.write(piece.data(), in.gcount());
    left -= piece.size();
  }
  return in.good();
}

}  // namespace

Redactor::Redactor(const std::map<std::string, std::string>& environment) { add(environment); }

void Redactor::add(const std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : environment) add(name, value);
}

void Redactor::add(std::string_view name, std::string_view value) {
  if (value.size() < kLeastEcho || !is_secret_name(name) || is_plain(value) || is_count(name, value)) return;
  if (std::find(spellings_.begin(), spellings_.end(), value) != spellings_.end()) return;
  spellings_.emplace_back(value);
  if (std::string json = escaped(value); json != value) spellings_.push_back(std::move(json));
  std::stable_sort(spellings_.begin(), spellings_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

void Redactor::add_secret(std::string_view value) { add("SECRET", value); }

void Redactor::add_words(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    add_urls(word);
    if (word.find_first_of(" \t\r\n;") != std::string::npos) {
      for (const std::vector<std::string>& inside : {pieces_of(word), shell_pieces_of(word)}) {
        if (inside.size() > 1 || (inside.size() == 1 && inside[0].size() < word.size())) add_words(inside);
      }
    }
    const size_t equals = word.find('=');
    if (is_secret_option_word(word)) {
      if (equals != std::string::npos) {
        add_secret(word.substr(equals + 1));
        if (word.size() < equals + 1 + kLeastEcho) add_secret(word);
      } else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
        add_secret(words[i + 1]);
      }
    } else if (equals != std::string::npos && is_name(word.substr(0, equals))) {
      add(word.substr(0, equals), word.substr(equals + 1));
    }
  }
}

// The whole "user:password@" and "name=value" too, which are found however short the secret is.
void Redactor::add_urls(std::string_view text) {
  for (size_t at = text.find("://"); at != std::string_view::npos; at = text.find("://", at + 3)) {
    const std::string_view url = text.substr(at + 3, text.find_first_of(" \t\r\n\"'<>", at) - at - 3);
    const std::string_view place = url.substr(0, url.find_first_of("/?#"));
    if (const size_t sign = place.rfind('@'); sign != std::string_view::npos) {
      add_secret(place.substr(0, sign + 1));
      add_secret(place.substr(0, sign));
      const size_t colon = place.substr(0, sign).find(':');
      if (colon != std::string_view::npos) add_secret(place.substr(colon + 1, sign - colon - 1));
    }
    size_t begin = url.find('?');
    while (begin != std::string_view::npos && begin + 1 < url.size()) {
      const size_t end = std::min(url.find_first_of("&;#", begin + 1), url.size());
      const std::string_view pair = url.substr(begin + 1, end - begin - 1);
      add_secret(pair);
      if (const size_t equals = pair.find('='); equals != std::string_view::npos) add_secret(pair.substr(equals + 1));
      begin = end < url.size() && url[end] != '#' ? end : std::string_view::npos;
    }
  }
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

std::string Redactor::excerpt(std::string_view part, bool whole) const {
  std::string shown = text(part);
  size_t begin = 0;
  size_t end = shown.size();
  for (const std::string_view spelling : spellings_) {
    const size_t most = std::min(spelling.size() - 1, shown.size());
    for (size_t n = most; !whole && n > begin; --n) {
      if (shown.starts_with(spelling.substr(spelling.size() - n))) begin = n;
    }
    for (size_t n = most; n >= kLeastEcho && n > shown.size() - end; --n) {
      if (shown.ends_with(spelling.substr(0, n))) end = shown.size() - n;
    }
  }
  return begin < end ? shown.substr(begin, end - begin) : "";
}

std::string Redactor::value(std::string_view name, std::string_view value) const {
  return is_secret_name(name) && !value.empty() && !is_count(name, value) ? std::string(kRedacted) : text(value);
}

std::string Redactor::word(std::string_view word) const {
  const size_t equals = word.find('=');
  if (equals == std::string_view::npos) return text(word);
  if (word.starts_with("--")) {
    const std::string_view value = word.substr(equals + 1);
    const bool secret = is_secret_option_word(word) && !value.empty();
    return std::string(word.substr(0, equals + 1)) + (secret ? std::string(kRedacted) : this->word(value));
  }
  if (!is_name(word.substr(0, equals))) return text(word);
  return std::string(word.substr(0, equals + 1)) + value(word.substr(0, equals), word.substr(equals + 1));
}

std::vector<std::string> Redactor::words(const std::vector<std::string>& words) const {
  std::vector<std::string> result;
  for (size_t i = 0; i < words.size(); ++i) {
    const bool of_secret = i > 0 && words[i - 1].find('=') == std::string::npos && is_secret_option_word(words[i - 1]);
    const bool secret = of_secret && !words[i].empty() && !words[i].starts_with("--");
    result.push_back(secret ? std::string(kRedacted) : word(words[i]));
  }
  return result;
}

// Pieces are cut where no value lies across the cut and none can begin before it and end behind what was read.
Status Redactor::file(const fs::path& path) const {
  if (spellings_.empty()) return {};
  std::error_code code;
  const fs::file_status found = fs::status(path, code);
  if (fs::status_known(found) && !fs::is_regular_file(found)) return {};
  const auto failed = [&path](const char* what) {
    return Status(StatusCode::kInfra, path.string() + ": secrets cannot be taken out: " + what + ": " +
                                          std::strerror(errno) + "; remove the file");
  };
  std::ifstream in(path, std::ios::binary);
  if (!in) return failed("it cannot be read");
  const fs::path changed = path.string() + ".redacted";
  std::ofstream out;
  std::string pending;
  size_t clean_bytes = 0;  // length of what was read and holds nothing, before `out` is needed
  std::string piece(kPiece, '\0');
  for (bool more = true; more;) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    if (in.bad()) {  // what was read is not the whole of it
      const Status status = failed("it cannot be read to its end");
      if (out.is_open()) fs::remove(changed, code);
      return status;
    }
    const auto got = static_cast<size_t>(in.gcount());
    more = got == piece.size();
    pending.append(piece, 0, got);
    const size_t finished = more ? cut_between_values(pending) : pending.size();
    const std::string_view before = std::string_view(pending).substr(0, finished);
    const std::string done = text(before);
    if (done != before && !out.is_open()) {
      out.open(changed, std::ios::binary | std::ios::trunc);
      if (!copy_beginning(path, clean_bytes, out)) out.setstate(std::ios::failbit);
    }
    if (out.is_open()) {
      out.write(done.data(), static_cast<std::streamsize>(done.size()));
    } else {
      clean_bytes += finished;
    }
    pending.erase(0, finished);
  }
  if (!out.is_open()) return {};
  out.close();
  if (!out) {
    fs::remove(changed, code);
    return failed("a new one cannot be written");
  }
  fs::permissions(changed, fs::status(path, code).permissions(), code);
  fs::rename(changed, path, code);
  if (!code) return {};
  errno = code.value();
  fs::remove(changed, code);
  return failed("it cannot be replaced");
}

size_t Redactor::cut_between_values(std::string_view text) const {
  size_t cut = text.size() - std::min(text.size(), longest() - 1);
  for (bool moved = true; moved && cut > 0;) {
    moved = false;
    for (const std::string& spelling : spellings_) {
      const size_t from = cut - std::min(cut, spelling.size() - 1);
      const size_t at = text.find(spelling, from);
      if (at >= cut) continue;
      cut = at;
      moved = true;
    }
  }
  return cut;
}

Status Redactor::folder(const fs::path& path) const {
  if (spellings_.empty()) return {};
  std::vector<fs::path> files;
  Status first = files_below(path, Walk::kAndThoseBelow, &files).with("secrets cannot be taken out");
  for (const fs::path& one : files) {
    if (Status done = file(one); !done.ok() && first.ok()) first = done;
  }
  return first;
}

}  // namespace assay::command
