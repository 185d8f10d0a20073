#include "core/command/files_below.h"

#include <string>
#include <system_error>

namespace assay::command {

Status files_below(const std::filesystem::path& folder, Walk walk, std::vector<std::filesystem::path>* files) {
  namespace fs = std::filesystem;
  std::error_code code;
  for (fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, code), end;
       !code && at != end; at.increment(code)) {
    std::error_code ignored;
    if (walk == Walk::kFolderAlone) at.disable_recursion_pending();
    if (!at->is_symlink(ignored) && at->is_regular_file(ignored)) files->push_back(at->path());
  }
  std::error_code unseen;
  if (!code || fs::status(folder, unseen).type() == fs::file_type::not_found) return {};
  return infra(folder.string() + ": cannot be read to its end: " + code.message() + "; check the disk");
}

}  // namespace assay::command
