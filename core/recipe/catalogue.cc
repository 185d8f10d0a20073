#include "core/recipe/catalogue.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <system_error>

#include "core/discover/discover.h"
#include "core/discover/find_directories.h"
#include "core/golden/text.h"

namespace assay::recipe {
namespace {

namespace fs = std::filesystem;

// Finds *.yaml below a folder, links followed, each folder once.
class RecipeWalker {
 public:
  RecipeWalker(const std::string& root, std::vector<fs::path>& found)
      : root_(root), above_(discover::directories_above(root)), found_(found) {}

  Status walk(const fs::path& folder) {
    struct stat info {};
    if (::stat(folder.c_str(), &info) != 0) return unsearchable(folder, std::generic_category().message(errno));
    const discover::DirectoryId id{info.st_dev, info.st_ino};
    if (above_.contains(id)) {
      return invalid(
          fmt::format("{}: leads to a folder above {}, all of whose recipes it would bring in; remove the "
                      "link, or give that folder",
                      folder.string(), root_));
    }
    if (!seen_.insert(id).second) return {};
    std::error_code error;
    std::vector<fs::path> below;
    for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
      std::error_code unknown;
      if (at->is_directory(unknown)) {
        below.push_back(at->path());
      } else if (at->path().extension() == ".yaml") {
        found_.push_back(at->path());  // a link that leads nowhere, too: reading it tells
      } else if (unknown && unknown != std::errc::no_such_file_or_directory && unknown != std::errc::not_a_directory &&
                 unknown != std::errc::too_many_symbolic_link_levels) {
        return unsearchable(at->path(), unknown.message());
      }
    }
    if (error) return unsearchable(folder, error.message());
    std::sort(below.begin(), below.end());
    for (const fs::path& child : below) {
      if (Status walked = walk(child); !walked.ok()) return walked;
    }
    return {};
  }

 private:
  static Status unsearchable(const fs::path& path, const std::string& reason) {
    return infra(fmt::format("{}: cannot be searched for recipes: {}", path.string(), reason));
  }

  const std::string& root_;
  std::set<discover::DirectoryId> above_;
  std::set<discover::DirectoryId> seen_;
  std::vector<fs::path>& found_;
};

Status add_files(const std::string& path, std::set<fs::path>& seen, std::vector<fs::path>& files) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return not_found(fmt::format("{}: no such recipe or folder", path));
  std::vector<fs::path> found;
  if (fs::is_directory(status)) {
    if (Status walked = RecipeWalker(path, found).walk(path); !walked.ok()) return walked;
    std::sort(found.begin(), found.end());
  } else {
    found.emplace_back(path);
  }
  for (const fs::path& file : found) {
    if (seen.insert(fs::weakly_canonical(file, error)).second) files.push_back(file);
  }
  return {};
}

bool equals(const Value& spec, const char* key, const std::string& word) {
  const auto found = spec.find(key);
  return found != spec.end() && found->is_string() && found->get_ref<const std::string&>() == word;
}

// Reads each config once.
class Cases {
 public:
  const std::optional<TestCase>& at(const std::string& config) {
    const auto [place, is_new] = cases_.try_emplace(config);
    std::error_code error;
    if (is_new && fs::is_regular_file(config, error)) place->second = discover::case_of(config);
    return place->second;
  }

 private:
  std::map<std::string, std::optional<TestCase>> cases_;
};

// A path of a script below the root. Scripts run in /opt/megatron-lm, which is the repository.
fs::path below(const fs::path& root, const std::string& path) {
  constexpr std::string_view kCheckout = "/opt/megatron-lm/";
  if (path.starts_with(kCheckout)) return (root / path.substr(kCheckout.size())).lexically_normal();
  return (root / path).lexically_normal();
}

class Reader {
 public:
  explicit Reader(const CatalogueOptions& options) : options_(options) {}

  void read(const fs::path& file) {
    const std::string name = file.string();
    ++result_.files;
    Result<std::string> text = discover::read_file(name, discover::YamlLimits{}.bytes);
    if (!text) {
      result_.findings.push_back({Severity::kError, name, 0, 0, text.status().message()});
      return;
    }
    Recipe recipe = expand(*std::move(text), name, options_.folders);
    Findings findings(name);
    findings.list() = std::move(recipe.findings);
    const fs::path root = options_.root.empty() ? repository_of(file) : fs::path(options_.root);
    result_.expanded += recipe.workloads.size();
    for (Workload& workload : recipe.workloads) add(std::move(workload), root, findings);
    if (recipe.build) builds_.push_back(*std::move(recipe.build));
    for (Finding& finding : findings.list()) result_.findings.push_back(std::move(finding));
  }

  Catalogue finish() {
    append_builds();
    return std::move(result_);
  }

 private:
  void add(Workload workload, const fs::path& root, Findings& findings) {
    note_duplicate(workload, findings);
    Entry entry;
    entry.words = script_words(workload.script);
    const TestCase* test = nullptr;
    if (!entry.words.params.empty()) {
      const fs::path config = below(root, entry.words.params);
      entry.case_dir = config.parent_path().string();
      const std::optional<TestCase>& found = cases_.at(config.string());
      if (found) test = &*found;
      check_paths(workload, entry, test, root, findings);
    }
    entry.flavour = flavour_of(entry.words, workload.script, test);
    if (!matches(options_.query, workload)) return;
    if (test != nullptr) entry.test = *test;
    entry.workload = std::move(workload);
    result_.entries.push_back(std::move(entry));
  }

  static void check_paths(const Workload& workload, const Entry& entry, const TestCase* test, const fs::path& root,
                          Findings& findings) {
    const std::string name = text::printable(workload.text("test_case"));
    std::error_code error;
    const fs::path cases = fs::path(entry.case_dir).parent_path().parent_path();
    if (test == nullptr && !fs::exists(cases, error)) {
      findings.warn(0, 0,
                    fmt::format("no folder {}: cases and goldens are not looked for; name the repository with --root",
                                text::printable(cases.string())));
      return;
    }
    if (test == nullptr) {
      findings.warn(workload.line, workload.column,
                    fmt::format("case {} does not exist: no {}", name,
                                text::printable(below(root, entry.words.params).string())));
      return;
    }
    if (entry.words.golden.empty() || (test->metrics && test->metrics->empty())) return;
    const fs::path golden = below(root, entry.words.golden);
    if (fs::exists(golden, error)) return;
    findings.warn(workload.line, workload.column,
                  fmt::format("golden of {} does not exist: no {}", name, text::printable(golden.string())));
  }

  void note_duplicate(const Workload& workload, Findings& findings) {
    std::string key;
    for (const char* part : {"model", "test_case", "environment", "scope", "platforms", "tag"}) {
      const auto found = workload.spec.find(part);
      key += (found == workload.spec.end() ? "-" : python_repr(*found)) + "\n";
    }
    const auto [first, is_new] = rows_.try_emplace(key, fmt::format("{}:{}", workload.file, workload.line));
    if (is_new) return;
    findings.warn(workload.line, workload.column,
                  fmt::format("workload {} is there already, from {}: Megatron-LM's --test-case finds neither",
                              text::printable(workload.name), text::printable(first->second)));
  }

  // Builds that a selected workload names, each once. Megatron-LM's parser gives the image of the first one to all.
  void append_builds() {
    std::string image = options_.container_image;
    std::string given_by;
    std::set<const Workload*> done;
    const size_t count = result_.entries.size();
    for (size_t i = 0; i < count; ++i) {
      const std::string wanted = result_.entries[i].workload.text("build");
      for (const Workload& build : builds_) {
        if (build.name != wanted || !done.insert(&build).second) continue;
        Entry entry{.workload = build, .words = {}, .flavour = "build", .case_dir = {}, .test = {}};
        std::string& own = entry.workload.spec["source"]["image"].get_ref<std::string&>();
        if (image.empty()) {
          image = own;
          given_by = build.name;
        } else if (!given_by.empty() && image != own) {
          result_.findings.push_back({Severity::kWarning, build.file, build.line, build.column,
                                      fmt::format("build {} gets the image of build {}, as Megatron-LM's parser does "
                                                  "it; list the two apart, or name --container-image",
                                                  text::printable(build.name), text::printable(given_by))});
        }
        own = image + ":" + options_.container_tag;
        result_.entries.push_back(std::move(entry));
      }
    }
  }

  const CatalogueOptions& options_;
  Catalogue result_;
  Cases cases_;
  std::vector<Workload> builds_;
  std::map<std::string, std::string> rows_;  // what a workload is asked for by -> where it stands
};

}  // namespace

bool matches(const Query& query, const Workload& workload) {
  const Value& spec = workload.spec;
  const auto equal_or_any = [&spec](const char* key, const std::string& word) {
    return word.empty() || equals(spec, key, word);
  };
  if (!query.scope.empty() && !equals(spec, "scope", resolve_scope(query.scope))) return false;
  if (!query.cadence.empty()) {
    const auto found = spec.find("cadence");
    if (found == spec.end() || std::find(found->begin(), found->end(), query.cadence) == found->end()) return false;
  }
  if (!equal_or_any("environment", query.environment) || !equal_or_any("model", query.model) ||
      !equal_or_any("tag", query.tag) || !equal_or_any("platforms", query.platform)) {
    return false;
  }
  if (query.test_case.empty() || query.test_case == "all") return true;
  for (size_t at = 0; at <= query.test_case.size();) {
    const size_t end = std::min(query.test_case.find(',', at), query.test_case.size());
    if (equals(spec, "test_case", query.test_case.substr(at, end - at))) return true;
    at = end + 1;
  }
  return false;
}

fs::path repository_of(const fs::path& file) {
  std::error_code error;
  const fs::path own = fs::weakly_canonical(file, error).parent_path();
  for (fs::path folder = own;; folder = folder.parent_path()) {
    if (fs::exists(folder / ".git", error) || fs::exists(folder / "tests" / "functional_tests", error)) return folder;
    if (folder == folder.parent_path()) return own;
  }
}

Result<Catalogue> read_catalogue(const std::vector<std::string>& paths, const CatalogueOptions& options) {
  std::set<fs::path> seen;
  std::vector<fs::path> files;
  for (const std::string& path : paths) {
    if (Status added = add_files(path, seen, files); !added.ok()) return added;
  }
  Reader reader(options);
  for (const fs::path& file : files) reader.read(file);
  return reader.finish();
}

}  // namespace assay::recipe
