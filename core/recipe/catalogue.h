// Workloads of many recipe files: read, checked against the tree they speak of, filtered.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "assay/case.h"
#include "core/recipe/recipe.h"
#include "core/recipe/script.h"

namespace assay::recipe {

// A filter that is empty lets everything through. Others compare for equality; `scope` by either of its names,
// `test_case` with each of its comma-separated names ("all": every one), `cadence` with each of a workload's.
struct Query {
  std::string scope = {};
  std::string cadence = {};
  std::string environment = {};
  std::string model = {};
  std::string tag = {};
  std::string platform = {};
  std::string test_case = {};
};

bool matches(const Query& query, const Workload& workload);

struct CatalogueOptions {
  Query query = {};
  Folders folders = {};
  std::string root = {};               // where relative paths of scripts lie; empty: repository_of() each recipe
  std::string container_tag = "main";  // of the image of builds
  std::string container_image = {};    // instead of the image that a build names
};

// A workload and what its script says.
struct Entry {
  Workload workload;
  ScriptWords words;
  std::string flavour;
  std::string case_dir;          // folder of TRAINING_PARAMS_PATH below the root; empty: the script names none
  std::optional<TestCase> test;  // of that folder; absent: there is no case
};

struct Catalogue {
  std::vector<Entry> entries;     // selected ones in the order of the files; builds that they name stand at the end
  std::vector<Finding> findings;  // of all files, whatever the filters select
  size_t files = 0;
  size_t expanded = 0;  // workloads before the filters
};

// Nearest folder around `file` that holds .git or tests/functional_tests; the file's own folder where there is none.
std::filesystem::path repository_of(const std::filesystem::path& file);

// Reads `paths`: recipe files, and folders that are searched for *.yaml, in the order of their paths, each file once.
// kNotFound or kInfra for a path that cannot be looked at; an empty result is no failure.
Result<Catalogue> read_catalogue(const std::vector<std::string>& paths, const CatalogueOptions& options);

}  // namespace assay::recipe
