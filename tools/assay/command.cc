#include "tools/assay/command.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <string_view>

#include "core/command/environment.h"
#include "core/discover/nearest.h"
#include "core/golden/text.h"

namespace assay::cli {

namespace po = boost::program_options;

namespace {

// The options as Boost prints them, without those lines that are about `positional`.
std::string without(const po::options_description& options, const std::string& positional) {
  std::stringstream all;
  all << options;
  std::string shown;
  bool about = false;
  for (std::string line; std::getline(all, line);) {
    if (!line.starts_with("     ")) about = line.starts_with("  --" + positional + " ");  // else it goes on
    if (!about) shown += line + "\n";
  }
  return shown;
}

void print_help(const std::string& usage, const po::options_description& options, const std::string& positional) {
  std::cout << "usage: " << usage << "\n";
  if (const auto* words = positional.empty() ? nullptr : options.find_nothrow(positional, false)) {
    std::string name = positional;
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
    std::cout << "  " << name << ": " << words->description() << "\n";
  }
  std::cout << "\n" << without(options, positional);
}

// What the parser has against the words, with the option that may have been meant.
std::string complaint(const po::error& error, const po::options_description& options) {
  const auto* unknown = dynamic_cast<const po::unknown_option*>(&error);
  if (unknown == nullptr) return error.what();
  std::vector<std::string> names = {"--help"};
  for (const auto& option : options.options()) names.push_back("--" + option->long_name());
  const std::vector<std::string_view> known(names.begin(), names.end());
  return error.what() + discover::did_you_mean(unknown->get_option_name(), known);
}

}  // namespace

std::optional<int> parse(const std::string& usage, const po::options_description& options,
                         const std::string& positional, const Words& words, po::variables_map* values,
                         bool any_folders) {
  po::options_description all_options;
  all_options.add(options);
  all_options.add_options()("help", "print this help");
  po::positional_options_description places;
  if (!positional.empty()) places.add(positional.c_str(), -1);
  try {
    po::command_line_parser parser(words);
    parser.options(all_options).style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
    if (!positional.empty()) parser.positional(places);
    const po::parsed_options parsed = parser.run();
    po::store(parsed, *values);
    if (values->count("help") != 0) {
      print_help(usage, options, positional);
      return kExitOk;
    }
    for (const po::option& word : parsed.options) {
      if (!word.string_key.empty()) continue;  // the others have no place to go
      return refuse(usage, "'" + word.value.front() + "': no such word is expected");
    }
    po::notify(*values);
  } catch (const po::error& error) {
    return refuse(usage, complaint(error, options));
  }
  if (!any_folders && options.find_nothrow("plugin-path", false) != nullptr) {
    if (Status found = plugin::check_search(search_options(*values)); !found.ok())
      return refuse(usage, found.message());
  }
  return std::nullopt;
}

int refuse(const std::string& usage, const std::string& message) {
  std::cerr << "assay: " << text::printable(message) << "; usage: " << usage.substr(0, usage.find('\n')) << "\n";
  return kExitUsage;
}

int fail(const Status& status) {
  std::cerr << "assay: " << text::printable(status.message()) << "\n";
  return status.code() == StatusCode::kInfra ? kExitInfra : kExitUsage;
}

Words all(const po::variables_map& values, const std::string& name) {
  return values.count(name) != 0 ? values[name].as<Words>() : Words();
}

Result<std::map<std::string, std::string>> parse_settings(const Words& words) {
  std::map<std::string, std::string> settings;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      return invalid("--set '" + word + "': expected NAME=VALUE, for example --set CHECKPOINT_LOAD_PATH=/models");
    }
    settings[word.substr(0, equals)] = word.substr(equals + 1);
  }
  return settings;
}

std::map<std::string, std::string> environment() { return command::own_environment(); }

plugin::SearchOptions search_options(const po::variables_map& values) {
  plugin::SearchOptions search;
  for (const std::string& dir : all(values, "plugin-path")) search.plugin_path.emplace_back(dir);
  const auto variables = environment();
  const auto path = variables.find("ASSAY_PLUGIN_PATH");
  if (path != variables.end()) search.environment = path->second;
  search.install_dir = (std::filesystem::path(program_dir()) / ".." / "lib" / "assay" / "plugins").lexically_normal();
  return search;
}

std::string program_dir() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string(".") : self.parent_path().string();
}

Status check_compat(const po::variables_map& values) {
  if (values.count("compat") == 0 || values["compat"].as<std::string>() == "megatron") return {};
  return invalid("--compat '" + values["compat"].as<std::string>() + "': expected megatron");
}

std::optional<bool> wants_colour(const std::string& word) {
  if (word == "always") return true;
  if (word == "never") return false;
  if (word == "auto") return isatty(STDOUT_FILENO) == 1;
  return std::nullopt;
}

}  // namespace assay::cli
