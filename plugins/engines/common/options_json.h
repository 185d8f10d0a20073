// Engine options: a flat JSON object in, checked values out.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/plugin_abi.h"
#include "assay/status.h"

namespace assay::engines {

// What a number may be: above `above` and from `least` to `most`.
struct NumberRange {
  double above = -std::numeric_limits<double>::infinity();
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
};

// Reads the members of one JSON object by name and notes the first failure. Not thread-safe.
class OptionsReader {
 public:
  // `what` names the object in messages, e.g. "options of engine static_legacy". Empty text counts as {}.
  OptionsReader(std::string_view json, std::string what);
  ~OptionsReader();
  OptionsReader(const OptionsReader&) = delete;
  OptionsReader& operator=(const OptionsReader&) = delete;

  // Each leaves *value alone when the member is absent or null.
  void integer(const char* name, int64_t least, int64_t most, std::optional<int64_t>* value);
  void integer(const char* name, int64_t least, int64_t most, int32_t* value);
  void number(const char* name, const NumberRange& range, double* value);
  void boolean(const char* name, bool* value);
  void string(const char* name, std::string* value);
  void choice(const char* name, std::initializer_list<const char*> choices, std::string* value);
  void strings(const char* name, std::vector<std::string>* value);
  // Each value of an object of strings.
  void string_map(const char* name, std::map<std::string, std::string>* value);
  // An object, or a list of objects, as JSON text.
  void object(const char* name, std::string* json);
  void objects(const char* name, std::string* json);
  // A member that somebody else reads: it is among the known ones.
  void known(const char* name);

  // kInvalid: not a JSON object, nested more than json::kDeepest deep, a member of the wrong type or range, or one that
  // nothing asked for (the nearest and all known names are told).
  Status finish();

 private:
  struct Document;
  void fail(const char* name, const std::string& expected);

  std::unique_ptr<Document> document_;
  std::string what_;
  Status status_;
};

}  // namespace assay::engines
