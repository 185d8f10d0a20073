#include "core/plugin/plugin.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

namespace assay::plugin {
namespace {

constexpr std::array<std::pair<Kind, std::string_view>, 4> kKinds = {{{Kind::kEngine, "engine"},
                                                                      {Kind::kBackend, "backend"},
                                                                      {Kind::kComparator, "comparator"},
                                                                      {Kind::kLauncher, "launcher"}}};

}  // namespace

std::string_view to_string(Kind kind) {
  for (const auto& [value, word] : kKinds) {
    if (value == kind) return word;
  }
  return "unknown";
}

std::optional<Kind> parse_kind(std::string_view word) {
  for (const auto& [value, name] : kKinds) {
    if (name == word) return value;
  }
  return std::nullopt;
}

std::string level_names(uint64_t capabilities) {
  constexpr std::array<std::pair<uint64_t, const char*>, 3> kNames = {
      {{ASSAY_CAP_L1, "L1"}, {ASSAY_CAP_L2, "L2"}, {ASSAY_CAP_L3, "L3"}}};
  std::string names;
  for (const auto& [bit, name] : kNames) {
    if ((capabilities & bit) != 0) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names.empty() ? "none" : names;
}

const assay_engine_table* Plugin::engine() const {
  assert(kind == Kind::kEngine);
  return static_cast<const assay_engine_table*>(table);
}

const assay_backend_table* Plugin::backend() const {
  assert(kind == Kind::kBackend);
  return static_cast<const assay_backend_table*>(table);
}

const assay_comparator_table* Plugin::comparator() const {
  assert(kind == Kind::kComparator);
  return static_cast<const assay_comparator_table*>(table);
}

const assay_launcher_table* Plugin::launcher() const {
  assert(kind == Kind::kLauncher);
  return static_cast<const assay_launcher_table*>(table);
}

std::string_view to_string(LoadFailure failure) {
  switch (failure) {
    case LoadFailure::kNotFound:
      return "not found";
    case LoadFailure::kNotAFile:
      return "not a file";
    case LoadFailure::kNotElf:
      return "not a shared object";
    case LoadFailure::kTruncated:
      return "truncated";
    case LoadFailure::kWrongMachine:
      return "wrong machine";
    case LoadFailure::kMissingSymbol:
      return "cannot be loaded";
    case LoadFailure::kNoQuery:
      return "not a plugin";
    case LoadFailure::kRefused:
      return "refused this ABI";
    case LoadFailure::kBadMagic:
      return "bad magic";
    case LoadFailure::kBadDescriptor:
      return "bad descriptor";
    case LoadFailure::kAbiTooNew:
      return "ABI too new";
    case LoadFailure::kAbiTooOld:
      return "ABI too old";
    case LoadFailure::kWrongKind:
      return "wrong kind";
    case LoadFailure::kWrongName:
      return "wrong name";
    case LoadFailure::kNullTable:
      return "no function table";
    case LoadFailure::kCrashed:
      return "crashed while probed";
    case LoadFailure::kHung:
      return "hung while probed";
  }
  return "unknown";
}

bool valid_name(std::string_view name) {
  if (name.empty() || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
}

std::optional<FileName> parse_file_name(const std::filesystem::path& file) {
  if (file.extension() != ".so") return std::nullopt;
  const std::string stem = file.stem().string();
  const size_t cut = stem.find('_');
  if (cut == std::string::npos) return std::nullopt;
  const std::optional<Kind> kind = parse_kind(std::string_view(stem).substr(0, cut));
  const std::string name = stem.substr(cut + 1);
  if (!kind || !valid_name(name)) return std::nullopt;
  return FileName{*kind, name};
}

}  // namespace assay::plugin
