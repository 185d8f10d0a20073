// The sub-commands of `assay` and what they share.
#pragma once

#include <boost/program_options.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/plugin/search_path.h"

namespace assay::cli {

// Exit codes that do not come from verdicts.
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInfra = 3;
inline constexpr int kExitNothingRan = 4;

using Words = std::vector<std::string>;

// Each takes the words after its name, writes to stdout and stderr and returns the exit code.
int run_command(const Words& words);
int list_command(const Words& words);
int show_command(const Words& words);
int ci_command(const Words& words);
int compare_command(const Words& words);
int record_command(const Words& words);
int review_command(const Words& words);
int accept_command(const Words& words);
int reject_command(const Words& words);
int calibrate_command(const Words& words);
int golden_command(const Words& words);
int tokenize_command(const Words& words);
int plugin_command(const Words& words);
int recipe_command(const Words& words);
int report_command(const Words& words);
int merge_command(const Words& words);
int simulate_command(const Words& words);
int self_test_command(const Words& words);
int bench_command(const Words& words);
int new_command(const Words& words);
int doctor_command(const Words& words);

// Parses `words` into `values`; the positional words go to the option `positional` ("" : none are allowed), which the
// help shows as the words that they are. Prints help or a usage error (one line) itself. Returns an exit code when the
// command is to end at once. Option names are never abbreviated. Where `options` have plugin-path, its folders must be
// such that plugins can be looked for in them; `any_folders` leaves that to the command.
std::optional<int> parse(const std::string& usage, const boost::program_options::options_description& options,
                         const std::string& positional, const Words& words,
                         boost::program_options::variables_map* values, bool any_folders = false);

// A bad command line: prints "assay: message; usage: ..." to stderr, with the first line of `usage`, and returns
// kExitUsage.
int refuse(const std::string& usage, const std::string& message);

// Prints "assay: message" to stderr and returns the exit code that fits the status.
int fail(const Status& status);

// The words of a repeatable option; empty when it was not given.
Words all(const boost::program_options::variables_map& values, const std::string& name);

// NAME=VALUE words of --set; the last one of a name wins. kInvalid names the word that has no name or no '='.
Result<std::map<std::string, std::string>> parse_settings(const Words& words);

// The process environment; read here and nowhere below tools/.
std::map<std::string, std::string> environment();

// Folder of the running program, where the others of this build lie too.
std::string program_dir();

// Where plugins are looked for: --plugin-path of `values`, ASSAY_PLUGIN_PATH, the folder of this build's plugins.
plugin::SearchOptions search_options(const boost::program_options::variables_map& values);

// That --compat, where it is given, names the one comparator that there is: megatron.
Status check_compat(const boost::program_options::variables_map& values);

// What --color auto|always|never means for stdout; nullopt for another word.
std::optional<bool> wants_colour(const std::string& word);

}  // namespace assay::cli
