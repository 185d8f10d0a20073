#include "core/discover/shell_words.h"

#include <optional>

namespace assay::discover {
namespace {

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// A word that echo takes for options: -n, -e, -E and combinations.
bool is_echo_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_not_of("neE", 1) == std::string_view::npos;
}

Status active(char c, const char* why) {
  return invalid(std::string("'") + c + "' " + why + ": quote it with a backslash, or write the value differently");
}

class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text) {}

  Result<std::vector<std::string>> split() {
    while (status_.ok() && at_ < text_.size()) step();
    end_word();
    if (!status_.ok()) return status_;
    return std::move(words_);
  }

 private:
  void fail(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  void put(char c, bool bare) {
    if (!word_) {
      word_.emplace();
      bare_.clear();
    }
    *word_ += c;
    bare_ += bare ? c : '\0';
  }
  void begin_quote() {
    if (!word_) {
      word_.emplace();
      bare_.clear();
    }
  }

  void step() {
    const char c = text_[at_];
    if (is_blank(c)) {
      end_word();
      ++at_;
    } else if (c == '\\') {
      if (++at_ >= text_.size()) return fail(active(c, "at the end would join the value and the next argument"));
      put(text_[at_++], false);
    } else if (c == '\'') {
      single_quoted();
    } else if (c == '"') {
      double_quoted();
    } else if (c == '$' || c == '`') {
      expansion(c);
    } else if (std::string_view(";&|<>()").find(c) != std::string_view::npos) {
      fail(active(c, "would end the command of the shell"));
    } else {
      put(c, true);
      ++at_;
    }
  }

  void single_quoted() {
    begin_quote();
    const size_t end = text_.find('\'', at_ + 1);
    if (end == std::string_view::npos) return fail(invalid("a single quote is never closed"));
    for (size_t i = at_ + 1; i < end; ++i) put(text_[i], false);
    at_ = end + 1;
  }

  void double_quoted() {
    begin_quote();
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '$' || text_[at_] == '`') {
        expansion(text_[at_]);
        if (!status_.ok()) return;
        --at_;
        continue;
      }
      const bool escape = text_[at_] == '\\' && at_ + 1 < text_.size() &&
                          std::string_view("$`\"\\\n").find(text_[at_ + 1]) != std::string_view::npos;
      if (escape) ++at_;
      if (!(escape && text_[at_] == '\n')) put(text_[at_], false);
    }
    if (at_ >= text_.size()) return fail(invalid("a double quote is never closed"));
    ++at_;
  }

  // A dollar that no expansion follows is literal; all else would run or expand.
  void expansion(char c) {
    const char next = at_ + 1 < text_.size() ? text_[at_ + 1] : ' ';
    const bool letter = (next >= 'a' && next <= 'z') || (next >= 'A' && next <= 'Z') || (next >= '0' && next <= '9');
    if (c == '`' || letter || std::string_view("_{([*@#?-$!'\"").find(next) != std::string_view::npos) {
      if (c == '$' && next == '"' && at_ + 2 >= text_.size()) return literal_dollar();
      return fail(active(c, "would be expanded by the shell"));
    }
    literal_dollar();
  }
  void literal_dollar() {
    put('$', false);
    ++at_;
  }

  void end_word() {
    if (!word_) return;
    if (status_.ok()) check_bare();
    words_.push_back(std::move(*word_));
    word_.reset();
  }

  // `bare_` holds the unquoted characters of the word, NUL for quoted ones.
  void check_bare() {
    if (bare_[0] == '~' || bare_[0] == '#')
      return fail(active(bare_[0], "at the start of a word is read by the shell"));
    const size_t open = bare_.find('{'), close = bare_.find('}', open == std::string::npos ? 0 : open);
    if (open != std::string::npos && close != std::string::npos) {
      const std::string inside = bare_.substr(open, close - open);
      if (inside.find(',') != std::string::npos || inside.find("..") != std::string::npos) {
        return fail(active('{', "begins a brace expansion of the shell"));
      }
    }
    if (bare_[0] == '[' && bare_.find("]=") != std::string::npos) return fail(active('[', "assigns an array element"));
    const size_t wild = bare_.find_first_of("*?");
    if (wild == std::string::npos) return;
    if (bare_.find('/') < wild || bare_.find_first_not_of("*?") == std::string::npos) {
      fail(active(bare_[wild], "is a file pattern of the shell"));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  std::optional<std::string> word_;
  std::string bare_;
  std::vector<std::string> words_;
  Status status_;
};

}  // namespace

Result<std::string> xargs_unquote(std::string_view text) {
  if (is_echo_option(text)) return std::string();
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (is_blank(c)) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
      continue;
    }
    in_word = true;
    if (c == '\\') {
      if (++i < text.size()) word += text[i];
    } else if (c == '\'' || c == '"') {
      const size_t end = text.find(c, i + 1);
      if (end == std::string_view::npos) {
        return invalid(std::string("unbalanced ") + (c == '"' ? "double quote" : "single quote (an apostrophe?)") +
                       ": xargs fails on it; write \\" + c + " instead");
      }
      word += text.substr(i + 1, end - i - 1);
      i = end;
    } else {
      word += c;
    }
  }
  if (in_word) words.push_back(std::move(word));
  while (!words.empty() && is_echo_option(words.front())) {
    if (words.front().find('e') != std::string::npos) {
      return invalid("the value begins with " + words.front() + ", which echo takes for an option");
    }
    words.erase(words.begin());
  }
  if (words.size() == 1 && (words[0] == "--help" || words[0] == "--version")) {
    return invalid("the value is " + words[0] + ", which echo takes for an option");
  }
  std::string joined;
  for (size_t i = 0; i < words.size(); ++i) joined += (i == 0 ? "" : " ") + words[i];
  return joined;
}

Result<std::vector<std::string>> split_shell_words(std::string_view text) { return Splitter(text).split(); }

}  // namespace assay::discover
