#include "plugins/engines/process/output_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <string_view>
#include <system_error>

namespace assay::engines {

bool names_path(const std::vector<std::string>& words, const std::string& path) {
  const auto of_path = [](unsigned char c) {
    return std::isalnum(c) != 0 || c > 0x7f ||
           std::string_view("_./-+~@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  const auto names = [&](const std::string& word) {
    for (size_t at = word.find(path); at != std::string::npos; at = word.find(path, at + 1)) {
      const size_t end = at + path.size();
      if ((at == 0 || !of_path(word[at - 1])) && (end == word.size() || !of_path(word[end]))) return true;
    }
    return false;
  };
  return !path.empty() && std::any_of(words.begin(), words.end(), names);
}

Status remove_earlier(const std::filesystem::path& file) {
  namespace fs = std::filesystem;
  std::error_code code;
  const fs::file_type type = fs::symlink_status(file, code).type();
  if (type == fs::file_type::not_found) return {};
  const auto failed = [&file](const std::string& why) {
    return infra(fmt::format("{}: cannot be removed before the command: {}", file.string(), why));
  };
  if (type != fs::file_type::regular && type != fs::file_type::symlink) {
    return failed("it is no file; name another output path");
  }
  fs::remove(file, code);
  return code ? failed(code.message()) : Status();
}

}  // namespace assay::engines
