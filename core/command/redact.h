// Secrets of environments, kept out of everything that is printed, logged or written.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::command {

// What stands for a secret.
inline constexpr std::string_view kRedacted = "***";

// The name of a variable, in any case: holds KEY, TOKEN, API, PASSWORD, PASSWD, PASSPHRASE, SECRET, CREDENTIAL or AUTH
// (but not AUTHOR), has a word that ends with PASS or PWD (the shell's own PWD and OLDPWD apart), or the word PAT.
// Words are what stands between characters other than letters and digits.
bool is_secret_name(std::string_view name);

// The same of a member of options or an option of a command ("api-key", without dashes in front), where many names
// speak of tokens and keys that are no secrets (--moe-token-dispatcher-type): KEY and TOKEN have to end the name,
// unless API and KEY are both there. What ends with VARIABLE or KEY_HEADER names where a secret is.
bool is_secret_option(std::string_view name);

// MAX_TOKENS=2048: a number of what a model reads, no secret, whatever is_secret_name() says.
bool is_count(std::string_view name, std::string_view value);

// A text that can be the name of a variable: letters, digits and _, no digit first.
bool is_variable_name(std::string_view text);

// Knows the values that must not be shown. Copyable; const methods are safe from any thread.
class Redactor {
 public:
  Redactor() = default;
  explicit Redactor(const std::map<std::string, std::string>& environment);

  // Notes the value of a variable with a secret name, so that it is replaced wherever it is echoed: values of 4 and
  // more bytes, but for words that are no secrets (true, false, none, null, auto ...) and absolute paths of what
  // exists. Other names are left alone.
  void add(std::string_view name, std::string_view value);
  void add(const std::map<std::string, std::string>& environment);

  // Notes a value whatever its name, by the same rule for values.
  void add_secret(std::string_view value);

  // Notes what the words of a command hold: the value of "--option=VALUE" and of "--option", "VALUE" with a secret name
  // (is_secret_option), that of "NAME=VALUE", what add_urls() finds; the same between the blanks of a word, and between
  // what a shell makes of it: a word may be a whole script ("export NAME='a b'; run").
  void add_words(const std::vector<std::string>& words);

  // Notes user and password, and each "name=value" of the query, of every URL (SCHEME://...) in a text.
  void add_urls(std::string_view text);

  // Every known value replaced by ***, the longest first. Values also as JSON writes them (escaped).
  std::string text(std::string_view text) const;

  // As text(), for a part of a longer text that is still written: what may be the rest of a value at its beginning is
  // left out (unless the part is the `whole` text so far), and so is what may be the beginning of one at its end.
  std::string excerpt(std::string_view part, bool whole) const;

  // A variable in a listing: *** for a secret name, however short the value; else text(value).
  std::string value(std::string_view name, std::string_view value) const;

  // A word of a command line: "NAME=value" and "--option=NAME=value" as value() says, anything else as text() does; an
  // option with a secret name (is_secret_option) shows no value, and in words() neither does the word behind it.
  std::string word(std::string_view word) const;
  std::vector<std::string> words(const std::vector<std::string>& words) const;

  // Rewrites a file without the known values; one that holds none, or is not there, is left untouched. Large files are
  // read in pieces. The file is replaced: nobody may be writing to it. Fails with kInfra; the old file may then still
  // be there as it was.
  Status file(const std::filesystem::path& path) const;

  // file() of every regular file in a folder and in the folders below it, links apart. Goes on after a failure and
  // returns the first.
  Status folder(const std::filesystem::path& path) const;

  bool empty() const { return spellings_.empty(); }
  // What is looked for: the values, and how JSON writes them where that differs; the longest first.
  const std::vector<std::string>& spellings() const { return spellings_; }
  // Bytes of the longest of them; 0: there is none.
  size_t longest() const { return spellings_.empty() ? 0 : spellings_.front().size(); }

 private:
  // The last place up to which `text` can be dealt with before its continuation is known.
  size_t cut_between_values(std::string_view text) const;

  std::vector<std::string> spellings_;  // values and their escaped forms, longest first
};

}  // namespace assay::command
