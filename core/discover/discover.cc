#include "core/discover/discover.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <map>
#include <string_view>
#include <thread>

#include "core/discover/case_reader.h"
#include "core/discover/find_directories.h"
#include "core/discover/yaml_tree.h"
#include "core/golden/golden_name.h"
#include "core/golden/text.h"

namespace assay::discover {
namespace {

constexpr std::string_view kConfigName = "model_config.yaml";

// A config under another name.
bool is_other_config(const std::filesystem::path& path) {
  std::error_code code;
  return path.extension() == ".yaml" && path.filename() != kConfigName && std::filesystem::is_regular_file(path, code);
}

std::filesystem::path absolute_of(const std::string& path) {
  std::error_code ignored;
  std::filesystem::path result = std::filesystem::absolute(path, ignored).lexically_normal();
  return result.has_filename() ? result : result.parent_path();
}

GoldenFile golden_file(const std::string& file) {
  const GoldenName name = parse_golden_name(file).value_or(GoldenName{});
  return {file, name.environment, name.platform};
}

// A name that JSON can hold, whatever the folder is called: bytes that are no UTF-8 become \xNN, and so does a
// backslash before an x, so that no two folders have one name.
std::string as_text(std::string_view raw) {
  std::string made;
  for (size_t at = 0; at < raw.size();) {
    const text::CodePoint point = text::decode(raw, at);
    const bool escape = !point.valid || raw.substr(at, 2) == "\\x";
    if (escape) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const auto byte = static_cast<unsigned char>(raw[at]);
      made += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    } else {
      made += raw.substr(at, point.length);
    }
    at += point.length;
  }
  return made;
}

// Path below the root; the folder's own name when it is the root.
std::string name_below_root(const FoundDirectory& found) {
  if (found.path.size() > found.root.size()) {
    std::string name = found.path.substr(found.root.size());
    name.erase(0, name.find_first_not_of('/'));
    return as_text(name);
  }
  const std::string own = absolute_of(found.path).filename().string();
  return own.empty() ? "root" : as_text(own);
}

// Gives every case that shares its name with another one further parent folders in front, until names are unique.
void make_names_unique(std::vector<TestCase>& cases) {
  for (bool again = true; again;) {
    again = false;
    std::map<std::string, std::vector<TestCase*>> by_name;
    for (TestCase& test_case : cases) by_name[test_case.name].push_back(&test_case);
    for (const auto& [name, same] : by_name) {
      if (same.size() < 2) continue;
      for (TestCase* test_case : same) {
        const std::string full = absolute_of(test_case->dir).relative_path().string();
        const size_t levels = static_cast<size_t>(std::count(name.begin(), name.end(), '/')) + 2;
        size_t at = full.size();
        for (size_t i = 0; i < levels && at != std::string::npos && at != 0; ++i) at = full.rfind('/', at - 1);
        std::string longer = as_text(at == std::string::npos || at == 0 ? full : full.substr(at + 1));
        again |= longer != test_case->name;
        test_case->name = std::move(longer);
      }
    }
  }
}

TestCase read_case(const FoundDirectory& found, std::string_view config = kConfigName) {
  TestCase test_case;
  test_case.name = name_below_root(found);
  test_case.dir = found.path;
  test_case.config = (found.path.ends_with('/') ? found.path : found.path + "/") + std::string(config);
  test_case.model = absolute_of(found.path).parent_path().filename().string();
  test_case.model = as_text(test_case.model);
  for (const std::string& file : found.goldens) test_case.goldens.push_back(golden_file(file));
  test_case.error = found.error;
  if (!found.error.ok()) return test_case;
  if (text::ill_formed(found.path)) {
    test_case.dir = as_text(found.path);
    test_case.error =
        invalid(test_case.dir + ": a name in this path is no UTF-8, as events and reports need: rename it");
    return test_case;
  }
  Result<std::string> text = read_file(test_case.config, YamlLimits{}.bytes);
  if (text.ok()) {
    read_config(*std::move(text), test_case);
  } else {
    test_case.error = text.status();
  }
  return test_case;
}

}  // namespace

TestCase case_of(const std::string& config) {
  const std::filesystem::path file = config;
  FoundDirectory here;
  here.path = here.root = file.has_parent_path() ? file.parent_path().string() : ".";
  std::error_code code;
  std::filesystem::directory_iterator entry(here.path, code);
  for (; !code && entry != std::filesystem::directory_iterator(); entry.increment(code)) {
    const std::string name = entry->path().filename().string();
    if (is_golden_name(name)) here.goldens.push_back(name);
  }
  if (code) here.error = infra(as_text(here.path) + ": the directory cannot be listed: " + code.message());
  std::sort(here.goldens.begin(), here.goldens.end());
  TestCase made = read_case(here, file.filename().string());
  if (file.filename() != kConfigName) made.name += "/" + as_text(file.stem().string());
  return made;
}

Result<std::vector<TestCase>> discover(const std::vector<std::string>& paths, int threads) {
  std::vector<DirectoryId> seen;
  std::vector<FoundDirectory> found;
  std::vector<std::string> configs;
  for (const std::string& path : paths) {
    if (is_other_config(path)) {
      configs.push_back(path);
      continue;
    }
    if (Status walked = find_directories(path, seen, found); !walked.ok()) return walked;
  }
  std::sort(found.begin(), found.end(),
            [](const FoundDirectory& a, const FoundDirectory& b) { return a.path < b.path; });
  std::vector<TestCase> cases(found.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < found.size(); i = next++) cases[i] = read_case(found[i]);
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < threads && found.size() > 64; ++i) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  std::sort(configs.begin(), configs.end());
  configs.erase(std::unique(configs.begin(), configs.end()), configs.end());
  for (const std::string& config : configs) cases.push_back(case_of(config));
  make_names_unique(cases);
  return cases;
}

}  // namespace assay::discover
