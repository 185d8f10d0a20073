#include "tools/assay/golden_options.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/discover/discover.h"
#include "core/golden/golden_name.h"

namespace assay::cli {

namespace po = boost::program_options;
namespace fs = std::filesystem;

namespace {

std::string variable(const std::string& name) {
  const auto variables = environment();
  const auto found = variables.find(name);
  return found == variables.end() ? std::string() : found->second;
}

// First line of what a command prints; empty when it fails.
std::string first_line(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command, "r"), ::pclose);
  if (!pipe) return {};
  std::array<char, 256> buffer{};
  if (std::fgets(buffer.data(), buffer.size(), pipe.get()) == nullptr) return {};
  std::string line = buffer.data();
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  return line;
}

bool matches(const govern::PendingItem& item, const PendingPlace& place, const po::variables_map& values) {
  const std::string file = fs::path(item.pending.path).filename().string();
  const auto name = parse_golden_name(file);
  const std::string environment = values["environment"].as<std::string>();
  const std::string platform = values["platform"].as<std::string>();
  return (place.file.empty() || place.file == file) && (environment.empty() || name->environment == environment) &&
         (platform.empty() || name->platform == platform);
}

}  // namespace

bool in_ci() {
  std::string value = variable("CI");
  std::transform(value.begin(), value.end(), value.begin(), [](unsigned char c) { return std::tolower(c); });
  return !value.empty() && value != "0" && value != "false" && value != "no";
}

std::optional<int> refuse_in_ci(const std::string& what) {
  if (!in_ci()) return std::nullopt;
  std::cerr << "assay: " << what << " is refused where CI is set: continuous integration never writes golden files; "
            << "do it where a person decides\n";
  return kExitUsage;
}

std::string user_name() {
  std::string name = first_line("git config user.name 2>/dev/null");
  if (name.empty()) name = variable("USER");
  if (!name.empty()) return name;
  const passwd* entry = ::getpwuid(::getuid());
  return entry == nullptr ? std::string() : entry->pw_name;
}

compare::ComparatorLookup comparators_of(plugin::PluginRegistry& registry) {
  return [&registry](std::string_view metric) { return registry.comparator_table(metric); };
}

Result<PendingPlace> find_pending_place(const std::string& word) {
  const fs::path path(word);
  PendingPlace place{.word = word, .file = "", .cases = {}};
  std::string folder = word;
  if (const auto name = parse_golden_name(path.filename().string()); name && name->pending) {
    folder = path.has_parent_path() ? path.parent_path().string() : ".";
    place.file = path.filename().string();
  }
  auto cases = discover::discover({folder});
  if (!cases) return cases.status();
  if (cases->empty()) return not_found(folder + ": no case here; expected a case folder or a pending golden in one");
  place.cases = *std::move(cases);
  return place;
}

Result<govern::PendingItem> find_pending_item(const PendingPlace& place, const po::variables_map& values,
                                              const compare::ComparatorLookup& lookup) {
  auto items = govern::pending_items(place.cases, values["pending-dir"].as<std::string>(), lookup);
  if (!items) return items.status();
  items->erase(std::remove_if(items->begin(), items->end(),
                              [&](const govern::PendingItem& item) { return !matches(item, place, values); }),
               items->end());
  if (items->empty() && place.cases.size() == 1) {
    if (Status has = govern::check_has_golden(place.cases.front()); !has.ok()) return has;
  }
  if (items->empty()) return not_found(place.word + ": no pending golden; 'assay record' makes one");
  if (items->size() > 1) {
    std::string names;
    for (const govern::PendingItem& item : *items) names += (names.empty() ? "" : ", ") + item.pending.path;
    return invalid(place.word + ": several pending goldens, name one of " + names);
  }
  return std::move(items->front());
}

void add_pending_options(po::options_description* options) {
  options->add_options()("pending-dir", po::value<std::string>()->default_value(""),
                         "folder of pending goldens, for trees that cannot be written (default: beside the goldens)")(
      "plugin-path", po::value<Words>(), "folder to look for plugins in first; repeatable");
}

}  // namespace assay::cli
