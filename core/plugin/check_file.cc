#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include "core/plugin/plugin.h"

namespace assay::plugin {
namespace {

// Machine of the program that runs, read from its own ELF header: no list of architectures is kept here.
uint16_t own_machine() {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  Elf64_Ehdr header{};
  self.read(reinterpret_cast<char*>(&header), sizeof(header));
  return self ? header.e_machine : static_cast<uint16_t>(EM_NONE);
}

LoadError error(LoadFailure failure, std::string message) { return {failure, std::move(message)}; }

// End of the last byte that the headers of `header` speak of.
uint64_t promised_bytes(const Elf64_Ehdr& header) {
  const uint64_t programs = header.e_phoff + uint64_t{header.e_phnum} * header.e_phentsize;
  const uint64_t sections = header.e_shoff + uint64_t{header.e_shnum} * header.e_shentsize;
  return std::max(programs, sections);
}

}  // namespace

std::optional<LoadError> check_file(const std::filesystem::path& file) {
  const std::string path = file.string();
  std::error_code code;
  const std::filesystem::file_status link = std::filesystem::symlink_status(file, code);
  if (!std::filesystem::exists(link)) {
    return error(LoadFailure::kNotFound, fmt::format("{}: no such file; check the plugin search path", path));
  }
  const std::filesystem::file_status status = std::filesystem::status(file, code);
  if (!std::filesystem::exists(status)) {
    return error(LoadFailure::kNotFound, fmt::format("{}: a link that leads nowhere ({}); restore its target", path,
                                                     std::filesystem::read_symlink(file, code).string()));
  }
  if (!std::filesystem::is_regular_file(status)) {
    return error(LoadFailure::kNotAFile,
                 fmt::format("{}: {}, expected a shared object", path,
                             std::filesystem::is_directory(status) ? "a directory" : "not a regular file"));
  }
  std::ifstream in(file, std::ios::binary);
  if (!in) return error(LoadFailure::kNotFound, fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  Elf64_Ehdr header{};
  in.read(reinterpret_cast<char*>(&header), sizeof(header));
  const auto got = static_cast<size_t>(in.gcount());
  if (got < SELFMAG || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return error(LoadFailure::kNotElf,
                 fmt::format("{}: no ELF header, expected a shared object built for Linux", path));
  }
  if (got < sizeof(header)) {
    return error(LoadFailure::kTruncated,
                 fmt::format("{}: {} bytes, shorter than an ELF header; build or copy it again", path, got));
  }
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != own_machine()) {
    return error(LoadFailure::kWrongMachine,
                 fmt::format("{}: ELF class {} machine {}, expected class {} machine {}; build it for this machine",
                             path, header.e_ident[EI_CLASS], header.e_machine, int{ELFCLASS64}, own_machine()));
  }
  if (header.e_type != ET_DYN) {
    return error(LoadFailure::kNotElf,
                 fmt::format("{}: ELF type {}, expected a shared object ({})", path, header.e_type, int{ET_DYN}));
  }
  const uint64_t size = std::filesystem::file_size(file, code);
  if (promised_bytes(header) > size) {
    return error(LoadFailure::kTruncated, fmt::format("{}: {} bytes, its header promises {}; build or copy it again",
                                                      path, size, promised_bytes(header)));
  }
  return std::nullopt;
}

}  // namespace assay::plugin
