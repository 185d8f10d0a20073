#include "tools/assay/command.h"

#include <unistd.h>

#include <filesystem>
#include <iostream>

#include "core/command/environment.h"
#include "core/golden/text.h"

namespace assay::cli {

namespace po = boost::program_options;

std::optional<int> parse(const std::string& usage, const po::options_description& options,
                         const std::string& positional, const Words& words, po::variables_map* values) {
  po::options_description all_options;
  all_options.add(options);
  all_options.add_options()("help", "print this help");
  po::positional_options_description places;
  if (!positional.empty()) places.add(positional.c_str(), -1);
  try {
    po::command_line_parser parser(words);
    parser.options(all_options)
        .positional(places)
        .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing);
    po::store(parser.run(), *values);
    if (values->count("help") != 0) {
      std::cout << "usage: " << usage << "\n\n" << options;
      return kExitOk;
    }
    po::notify(*values);
  } catch (const po::error& error) {
    std::cerr << "assay: " << error.what() << "\nusage: " << usage << "\n";
    return kExitUsage;
  }
  return std::nullopt;
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
