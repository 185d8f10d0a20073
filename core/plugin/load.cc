#include <fmt/format.h>

#include <algorithm>
#include <boost/dll/shared_library.hpp>
#include <cstddef>
#include <span>
#include <vector>

#include "assay/sdk.hpp"
#include "core/plugin/plugin.h"

namespace assay::plugin {
namespace {

constexpr const char* kQuery = "assay_plugin_query";

LoadError error(LoadFailure failure, const std::string& path, const std::string& text) {
  return {failure, path + ": " + text};
}

// Shared objects loaded so far; never destroyed, so that nothing is unloaded while the process runs or exits.
std::vector<boost::dll::shared_library>& libraries() {
  static auto* kept = new std::vector<boost::dll::shared_library>;
  return *kept;
}

// dlerror's text, in full and on one line, out of what Boost.DLL throws: "... (dlerror system message: TEXT): ...".
std::string loader_text(std::string thrown) {
  constexpr std::string_view kBefore = "dlerror system message: ";
  const size_t begin = thrown.find(kBefore);
  const size_t end = thrown.rfind(')');
  if (begin != std::string::npos && end != std::string::npos && end > begin + kBefore.size()) {
    thrown = thrown.substr(begin + kBefore.size(), end - begin - kBefore.size());
  }
  std::replace(thrown.begin(), thrown.end(), '\n', ' ');
  return thrown;
}

// Bytes of the table of `kind` as it was first. Tables consist of a size, a reserved word and function pointers.
size_t table_bytes(Kind kind) {
  switch (kind) {
    case Kind::kEngine:
      return offsetof(assay_engine_table, info);
    case Kind::kBackend:
      return offsetof(assay_backend_table, device_facts);
    case Kind::kComparator:
      return offsetof(assay_comparator_table, metrics);
    case Kind::kLauncher:
      return sizeof(assay_launcher_table);
  }
  return 2 * sizeof(uint32_t);
}

std::optional<LoadError> check_table(const std::string& path, Kind kind, const void* table) {
  if (table == nullptr) {
    return error(LoadFailure::kNullTable, path, "function table is null, expected one of its kind; fix the plugin");
  }
  const uint32_t size = *static_cast<const uint32_t*>(table);
  if (size < table_bytes(kind)) {
    return error(LoadFailure::kNullTable, path,
                 fmt::format("function table has {} bytes, expected at least {}; rebuild it against this ABI", size,
                             table_bytes(kind)));
  }
  const auto* entries = reinterpret_cast<void* const*>(static_cast<const char*>(table) + 2 * sizeof(uint32_t));
  const size_t count = (table_bytes(kind) - 2 * sizeof(uint32_t)) / sizeof(void*);
  for (size_t i = 0; i < count; ++i) {
    if (entries[i] == nullptr) {
      return error(LoadFailure::kNullTable, path, fmt::format("function {} of its table is null; fix the plugin", i));
    }
  }
  return std::nullopt;
}

// A comparator that is made for ABI 1.0, or lists no metric, serves its own name.
std::vector<std::string> served_metrics(const FileName& file, const void* table) {
  if (file.kind != Kind::kComparator) return {};
  const auto* comparator = static_cast<const assay_comparator_table*>(table);
  if (!ASSAY_KNOWS(comparator, metric_count) || comparator->metrics == nullptr) return {file.name};
  return {comparator->metrics, comparator->metrics + comparator->metric_count};
}

std::optional<LoadError> check_metrics(const std::string& path, Kind kind, const void* table) {
  if (kind != Kind::kComparator) return std::nullopt;
  const auto* comparator = static_cast<const assay_comparator_table*>(table);
  if (!ASSAY_KNOWS(comparator, metric_count) || comparator->metrics == nullptr) return std::nullopt;
  if (comparator->metric_count == 0) {
    return error(LoadFailure::kNullTable, path, "its list of metrics is empty, expected names or null; fix the plugin");
  }
  for (size_t i = 0; i < comparator->metric_count; ++i) {
    if (comparator->metrics[i] != nullptr) continue;
    return error(LoadFailure::kNullTable, path, fmt::format("name {} of its metrics is null; fix the plugin", i));
  }
  return std::nullopt;
}

// The version is looked at before any member that a newer or older major might have moved.
std::optional<LoadError> check_descriptor(const std::string& path, const assay_plugin* d) {
  const std::string ours = fmt::format("{}.{}", ASSAY_ABI_MAJOR, ASSAY_ABI_MINOR);
  if (d == nullptr) {
    return error(LoadFailure::kRefused, path,
                 fmt::format("the plugin refuses ABI {} of this program; get a build of it for that ABI", ours));
  }
  if (d->magic != ASSAY_PLUGIN_MAGIC) {
    return error(LoadFailure::kBadMagic, path,
                 fmt::format("descriptor starts with {:#010x}, expected {:#010x}; rebuild it with assay/plugin_abi.h",
                             d->magic, ASSAY_PLUGIN_MAGIC));
  }
  const std::string theirs = fmt::format("{}.{}", d->abi_major, d->abi_minor);
  if (d->abi_major > ASSAY_ABI_MAJOR) {
    return error(LoadFailure::kAbiTooNew, path,
                 fmt::format("made for ABI {}, this program has {}; update assay or get an older build", theirs, ours));
  }
  if (d->abi_major < ASSAY_ABI_MAJOR) {
    return error(LoadFailure::kAbiTooOld, path,
                 fmt::format("made for ABI {}, this program has {}; rebuild the plugin", theirs, ours));
  }
  if (d->size < sizeof(assay_plugin)) {
    return error(
        LoadFailure::kBadDescriptor, path,
        fmt::format("descriptor has {} bytes, expected at least {}; rebuild it", d->size, sizeof(assay_plugin)));
  }
  for (const char* text : {d->name, d->version, d->description, d->options_schema}) {
    if (text == nullptr) {
      return error(LoadFailure::kBadDescriptor, path,
                   "name, version, description or options_schema is null; fix the plugin");
    }
  }
  return std::nullopt;
}

// Entries of a table that a capability promises, and that tables from before it end without.
std::optional<LoadError> check_promises(const std::string& path, Kind kind, const assay_plugin* d) {
  if (kind != Kind::kEngine || (d->capabilities & ASSAY_CAP_TRAIN) == 0) return std::nullopt;
  const auto* table = static_cast<const assay_engine_table*>(d->table);
  const bool known = ASSAY_KNOWS(table, train);
  if (known && table->train != nullptr) return std::nullopt;
  return error(
      LoadFailure::kNullTable, path,
      fmt::format("its capabilities have train, and its table {}; add the function, or take the capability out",
                  known ? "has null for it"
                        : fmt::format("of {} bytes ends before it, expected {}", table->size,
                                      offsetof(assay_engine_table, train) + sizeof(table->train))));
}

std::optional<LoadError> check_identity(const std::string& path, const FileName& expected, const assay_plugin* d) {
  if (d->kind != static_cast<uint32_t>(expected.kind)) {
    const std::string_view kind = to_string(static_cast<Kind>(d->kind));
    if (!parse_kind(kind)) {
      return error(LoadFailure::kWrongKind, path,
                   fmt::format("kind {}, expected {} (engine), {} (backend), {} (comparator) or {} (launcher); correct "
                               "the descriptor, or get an assay that knows this kind",
                               d->kind, ASSAY_ENGINE + 0, ASSAY_BACKEND + 0, ASSAY_COMPARATOR + 0, ASSAY_LAUNCHER + 0));
    }
    return error(LoadFailure::kWrongKind, path,
                 fmt::format("kind {} ({}), its file name says {}; rename the file to {}_{}.so", d->kind, kind,
                             to_string(expected.kind), kind, d->name));
  }
  if (d->name != expected.name) {
    return error(LoadFailure::kWrongName, path,
                 fmt::format("the plugin calls itself '{}', its file name says '{}'; rename the file to {}_{}.so",
                             d->name, expected.name, to_string(expected.kind), d->name));
  }
  return std::nullopt;
}

}  // namespace

std::optional<LoadError> load(const std::filesystem::path& file, const assay_host* host, Plugin* plugin) {
  return load_for(file, {}, host, plugin);
}

std::optional<LoadError> load_for(const std::filesystem::path& file, AbiVersion asked, const assay_host* host,
                                  Plugin* plugin) {
  const std::string path = file.string();
  const std::optional<FileName> expected = parse_file_name(file);
  if (!expected) {
    return error(LoadFailure::kWrongName, path,
                 "file name is not <kind>_<name>.so with kind engine, backend, comparator or launcher; rename it");
  }
  if (std::optional<LoadError> broken = check_file(file)) return broken;
  boost::dll::shared_library library;
  try {
    library.load(std::filesystem::absolute(file).string(),
                 boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  } catch (const std::exception& failure) {
    return error(LoadFailure::kMissingSymbol, path, "the loader says: " + loader_text(failure.what()));
  }
  libraries().push_back(library);
  if (!library.has(kQuery)) {
    return error(LoadFailure::kNoQuery, path,
                 fmt::format("does not export {}; see docs on writing a plugin, or move it elsewhere", kQuery));
  }
  const auto query = &library.get<const assay_plugin*(uint32_t, uint32_t, const assay_host*)>(kQuery);
  const assay_plugin* d = query(asked.major, asked.minor, host);
  if (auto broken = check_descriptor(path, d)) return broken;
  if (auto broken = check_identity(path, *expected, d)) return broken;
  if (auto broken = check_table(path, expected->kind, d->table)) return broken;
  if (auto broken = check_promises(path, expected->kind, d)) return broken;
  if (auto broken = check_metrics(path, expected->kind, d->table)) return broken;
  *plugin = Plugin{.kind = expected->kind,
                   .name = d->name,
                   .version = d->version,
                   .description = d->description,
                   .options_schema = d->options_schema,
                   .capabilities = d->capabilities,
                   .abi_major = d->abi_major,
                   .abi_minor = d->abi_minor,
                   .file = file,
                   .table = d->table,
                   .metrics = served_metrics(*expected, d->table)};
  return std::nullopt;
}

}  // namespace assay::plugin
