// One loaded plugin, and the ways in which loading one can fail. Boost.DLL is used in this folder only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::plugin {

enum class Kind : uint32_t {
  kEngine = ASSAY_ENGINE,
  kBackend = ASSAY_BACKEND,
  kComparator = ASSAY_COMPARATOR,
  kLauncher = ASSAY_LAUNCHER,
};

// Lower-case word, e.g. "engine"; also the prefix of the file name.
std::string_view to_string(Kind kind);
std::optional<Kind> parse_kind(std::string_view word);

// Determinism levels among ASSAY_CAP_* bits.
inline constexpr uint64_t kLevels = ASSAY_CAP_L1 | ASSAY_CAP_L2 | ASSAY_CAP_L3;
// "L1, L2, L3"; "none".
std::string level_names(uint64_t capabilities);

// A loaded plugin. Everything in it stays valid until the process ends: shared objects are never unloaded.
struct Plugin {
  Kind kind = Kind::kEngine;
  std::string name;
  std::string version;
  std::string description;
  std::string options_schema;  // JSON schema
  uint64_t capabilities = 0;   // ASSAY_CAP_*
  uint32_t abi_major = 0;
  uint32_t abi_minor = 0;
  std::filesystem::path file;
  const void* table = nullptr;
  std::vector<std::string> metrics;  // comparators: names in METRICS that it serves; other kinds: empty

  bool can(uint64_t capability) const { return (capabilities & capability) == capability; }
  // The function table; calling the one of another kind is a bug (assertion).
  const assay_engine_table* engine() const;
  const assay_backend_table* backend() const;
  const assay_comparator_table* comparator() const;
  const assay_launcher_table* launcher() const;
};

enum class LoadFailure {
  kNotFound,       // no such file, or a link that leads nowhere
  kNotAFile,       // a directory, a device ...
  kNotElf,         // not a shared object
  kTruncated,      // an ELF header that promises more bytes than the file has
  kWrongMachine,   // ELF of another architecture
  kMissingSymbol,  // the loader refused it; its text is in the message
  kNoQuery,        // loads, but does not export assay_plugin_query
  kRefused,        // assay_plugin_query returned null
  kBadMagic,       // not a descriptor
  kBadDescriptor,  // descriptor too small, or with null members
  kAbiTooNew,      // made for a newer major ABI
  kAbiTooOld,      // made for an older major ABI
  kWrongKind,      // kind differs from the file name
  kWrongName,      // name differs from the file name
  kNullTable,      // no function table, or one with null entries
  kCrashed,        // died while probed
  kHung,           // did not answer in time while probed
};

// Lower-case words, e.g. "ABI too new".
std::string_view to_string(LoadFailure failure);

struct LoadError {
  LoadFailure failure = LoadFailure::kNotFound;
  std::string message;  // one line: path, what was seen, what was expected, remedy
};

// What a file name promises: <kind>_<name>.so.
struct FileName {
  Kind kind = Kind::kEngine;
  std::string name;
};
std::optional<FileName> parse_file_name(const std::filesystem::path& file);

// True for names that may be part of a file name: letters, digits, '_', '-', '.'; not starting with '.'.
bool valid_name(std::string_view name);

// Checks that `file` exists, is a regular file and a complete ELF shared object of this machine, without loading it.
std::optional<LoadError> check_file(const std::filesystem::path& file);

// Loads `file` into this process (RTLD_NOW | RTLD_LOCAL), asks it with `host` (valid until the process ends) and checks
// its descriptor against the file name. A plugin that crashes while it is loaded takes the process along: see probe.h.
// Not to be called from two threads at once. On failure `*plugin` is untouched.
std::optional<LoadError> load(const std::filesystem::path& file, const assay_host* host, Plugin* plugin);

// Likewise, asking as a program of another ABI would.
struct AbiVersion {
  uint32_t major = ASSAY_ABI_MAJOR;
  uint32_t minor = ASSAY_ABI_MINOR;
};
std::optional<LoadError> load_for(const std::filesystem::path& file, AbiVersion asked, const assay_host* host,
                                  Plugin* plugin);

}  // namespace assay::plugin
