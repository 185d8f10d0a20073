// Where plugins are looked for, and what lies there. Nothing is loaded here.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "core/plugin/plugin.h"

namespace assay::plugin {

struct SearchOptions {
  std::vector<std::filesystem::path> plugin_path;  // --plugin-path, in the order given
  std::string environment;                         // value of ASSAY_PLUGIN_PATH, directories joined by ':'; may be ""
  std::filesystem::path install_dir;               // plugins that came with this build; trusted
};

struct SearchDir {
  std::filesystem::path path;
  bool trusted = false;  // its plugins are loaded without being probed in a child process first
  bool given = false;    // named on --plugin-path
};

// The directories of `options` in the order of search, each once (the first mention counts), empty ones left out.
std::vector<SearchDir> search_dirs(const SearchOptions& options);

// That every folder of --plugin-path can be listed, and that workers can be told of it and of those of
// ASSAY_PLUGIN_PATH, whose names must be UTF-8. A folder of ASSAY_PLUGIN_PATH may be missing. kInvalid names the first
// that is not so.
Status check_search(const SearchOptions& options);

// One file that claims to be a plugin.
struct Candidate {
  std::filesystem::path file;
  FileName claim;
  bool trusted = false;
  std::filesystem::path shadowed_by;  // the earlier file of the same kind and name; empty: this one is used
};

struct UnreadableDir {
  SearchDir dir;
  std::string reason;  // "No such file or directory"
};

struct Listing {
  std::vector<Candidate> candidates;            // in the order of search; within a directory by name
  std::vector<std::filesystem::path> misnamed;  // *.so files that no plugin name could be read from
  std::vector<UnreadableDir> unreadable;        // directories of the path that cannot be read, or not to their end

  // kInfra when a folder of --plugin-path is among the unreadable ones: another plugin of the same name would do its
  // work without a word.
  Status complete() const;
};

Listing list_files(const std::vector<SearchDir>& dirs);

}  // namespace assay::plugin
