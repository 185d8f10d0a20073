#include "core/command/proc_file.h"

#include <charconv>
#include <fstream>
#include <string>

namespace assay::command {

uint64_t proc_kilobytes(const std::filesystem::path& file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (line.size() <= name.size() || line.compare(0, name.size(), name) != 0 || line[name.size()] != ':') continue;
    const size_t digit = line.find_first_of("0123456789");
    uint64_t value = 0;
    if (digit != std::string::npos) std::from_chars(line.data() + digit, line.data() + line.size(), value);
    return value * 1024;
  }
  return 0;
}

std::string proc_name(pid_t pid) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/comm");
  std::string name;
  std::getline(in, name);
  return name;
}

std::string proc_variable(pid_t pid, std::string_view name) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/environ", std::ios::binary);
  for (std::string one; std::getline(in, one, '\0');) {
    if (one.size() > name.size() && one.starts_with(name) && one[name.size()] == '=')
      return one.substr(name.size() + 1);
  }
  return {};
}

}  // namespace assay::command
