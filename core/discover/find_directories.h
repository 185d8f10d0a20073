// Walks directory trees for case directories.
#pragma once

#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::discover {

struct FoundDirectory {
  std::string root;                  // the given path it was found below
  std::string path;                  // of the directory, root included
  std::vector<std::string> goldens;  // names of its golden_values_*.json, sorted
  Status error;                      // the directory could not be listed
};

// Directories below `root` that hold model_config.yaml, and those that cannot be listed. `seen` holds device and inode
// of directories already walked, which are passed over.
struct DirectoryId {
  unsigned long long device = 0;
  unsigned long long inode = 0;
  bool operator<(const DirectoryId& other) const {
    return device != other.device ? device < other.device : inode < other.inode;
  }
};
Status find_directories(const std::string& root, std::vector<DirectoryId>& seen, std::vector<FoundDirectory>& found);

}  // namespace assay::discover
