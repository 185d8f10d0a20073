#include "backends/model/tokenizer/json_line.h"

#include <limits>
#include <set>

#include "backends/model/tokenizer/json_events.h"
#include "backends/model/tokenizer/utf8.h"

namespace assay::model {
namespace {

// Depth 0 is the line, 1 the object, 2 the list of ids in it.
class LineReader final : public JsonEvents {
 public:
  LineReader(std::string_view field, bool wants_ids) : field_(field), wants_ids_(wants_ids) {}

  Status read(std::string_view line) {
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) return invalid("empty line, expected a JSON object");
    if (Status status = parse(line); !status.ok()) return status;
    if (keys_.contains(field_)) return {};
    return invalid("field '" + field_ + "' is missing, expected " + expected());
  }

  std::string text;
  std::vector<int32_t> ids;

 private:
  std::string expected() const {
    return wants_ids_ ? "{\"" + field_ + "\": [integers]}" : "{\"" + field_ + "\": \"...\"}";
  }
  bool wrong_type() { return fail("field '" + field_ + "' has another type, expected " + expected()); }

  bool on_scalar(const Scalar& value) override {
    if (depth() == 0) return fail("not a JSON object, expected " + expected());
    if (!in_field_) return true;
    if (wants_ids_) return depth() == 2 ? add_id(value) : wrong_type();
    const auto* string = std::get_if<std::string>(&value);
    if (string == nullptr) return wrong_type();
    text = *string;
    return true;
  }

  bool add_id(const Scalar& value) {
    const auto* id = std::get_if<int64_t>(&value);
    const std::string at = "field '" + field_ + "', index " + std::to_string(ids.size());
    if (id == nullptr) return fail(at + ": not an integer, expected a token id");
    if (*id < std::numeric_limits<int32_t>::min() || *id > std::numeric_limits<int32_t>::max()) {
      return fail(at + ": " + std::to_string(*id) + " is no 32-bit integer, expected a token id");
    }
    ids.push_back(static_cast<int32_t>(*id));
    return true;
  }

  bool on_begin(bool is_object) override {
    if (depth() == 0) return is_object || fail("a JSON list, expected " + expected());
    if (!in_field_) return true;
    return (wants_ids_ && depth() == 1 && !is_object) || wrong_type();
  }

  bool on_key(const std::string& key) override {
    if (depth() != 1) return true;
    in_field_ = key == field_;
    return keys_.insert(key).second || fail("key " + utf8::quote(key) + " is there twice, expected it once");
  }

  bool on_end() override { return true; }

  std::string field_;
  bool wants_ids_;
  bool in_field_ = false;
  std::set<std::string> keys_;
};

}  // namespace

Result<std::string> json_line_text(std::string_view line, std::string_view field) {
  LineReader reader(field, false);
  if (const Status status = reader.read(line); !status.ok()) return status;
  return std::move(reader.text);
}

Result<std::vector<int32_t>> json_line_ids(std::string_view line, std::string_view field) {
  LineReader reader(field, true);
  if (const Status status = reader.read(line); !status.ok()) return status;
  return std::move(reader.ids);
}

}  // namespace assay::model
