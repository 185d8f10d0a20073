// Walks directory trees for case directories.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "assay/status.h"

namespace assay::discover {

struct FoundDirectory {
  std::string root;                  // the given path it was found below
  std::string path;                  // of the directory, root included
  std::vector<std::string> goldens;  // names of its golden_values_*.json, sorted
  Status error;                      // it could not be listed, or looked at
};

// Directories below `root` that hold model_config.yaml, and those that cannot be listed to their end, or of which the
// system cannot say whether they are directories (a link that leads nowhere is none). `seen` holds device and inode of
// directories already walked, which are passed over.
struct DirectoryId {
  unsigned long long device = 0;
  unsigned long long inode = 0;
  bool operator<(const DirectoryId& other) const {
    return device != other.device ? device < other.device : inode < other.inode;
  }
};
Status find_directories(const std::string& root, std::vector<DirectoryId>& seen, std::vector<FoundDirectory>& found);

// The directories above `root`, links in its path followed: a link to one of them would bring in all that is below it.
std::set<DirectoryId> directories_above(const std::string& root);

}  // namespace assay::discover
