#include "core/command/log_tail.h"

#include <algorithm>
#include <fstream>
#include <vector>

namespace assay::command {

std::string last_lines(const std::filesystem::path& file, const Redactor& redactor, size_t lines, size_t bytes) {
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  if (!in) return "";
  const auto size = static_cast<size_t>(std::max<std::streamoff>(in.tellg(), 0));
  const size_t take = std::min(size, bytes + redactor.longest());
  std::string text(take, '\0');
  in.seekg(static_cast<std::streamoff>(size - take));
  in.read(text.data(), static_cast<std::streamsize>(take));
  text.resize(static_cast<size_t>(std::max<std::streamsize>(in.gcount(), 0)));  // it may have been cut meanwhile
  text = redactor.excerpt(text, take == size);
  if (text.size() > bytes) text.erase(0, text.size() - bytes);
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == '\n') {
      if (!parts.back().empty()) parts.emplace_back();
    } else {
      parts.back() += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
  }
  if (parts.back().empty()) parts.pop_back();
  const size_t first = parts.size() > lines ? parts.size() - lines : 0;
  std::string joined;
  for (size_t i = first; i < parts.size(); ++i) {
    if (!joined.empty()) joined += " | ";
    joined += parts[i];
  }
  return joined;
}

}  // namespace assay::command
