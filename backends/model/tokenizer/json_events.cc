#include "backends/model/tokenizer/json_events.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "backends/model/tokenizer/utf8.h"

namespace assay::model {

class JsonEvents::Adapter final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Adapter(JsonEvents& events) : events_(events) {}

  bool null() override { return events_.on_scalar({}); }
  bool boolean(bool value) override { return events_.on_scalar(value); }
  bool number_integer(int64_t value) override { return events_.on_scalar(value); }
  bool number_unsigned(uint64_t value) override {
    if (value > INT64_MAX) return events_.on_scalar(static_cast<double>(value));
    return events_.on_scalar(static_cast<int64_t>(value));
  }
  bool number_float(double value, const std::string&) override { return events_.on_scalar(value); }
  bool string(std::string& value) override { return events_.on_scalar(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(size_t) override { return begin(true); }
  bool end_object() override { return end(); }
  bool start_array(size_t) override { return begin(false); }
  bool end_array() override { return end(); }
  bool key(std::string& value) override { return events_.on_key(value); }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    std::string what = error.what();
    const std::string at = " at byte offset " + std::to_string(position == 0 ? 0 : position - 1);
    if (what.find("surrogate") != std::string::npos) {
      return events_.fail("a lone surrogate escape" + at + ", expected a pair \\uD8xx\\uDCxx or none; repair the text");
    }
    // The parser's own words sit between its position and the text it read last, which may hold control characters.
    if (const size_t reason = what.find(" - "); reason != std::string::npos) what.erase(0, reason + 3);
    what.erase(std::min(what.find("; last read"), what.size()));
    return events_.fail("not JSON" + at + ": " + what);
  }

 private:
  bool begin(bool is_object) {
    const bool go_on = events_.on_begin(is_object);
    ++events_.depth_;
    return go_on;
  }
  bool end() {
    --events_.depth_;
    return events_.on_end();
  }

  JsonEvents& events_;
};

Status JsonEvents::parse(std::string_view text) {
  if (Status status = utf8::validate(text); !status.ok()) return status;
  if (text.starts_with("\xEF\xBB\xBF")) return invalid("a byte order mark at byte offset 0, expected JSON; remove it");
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {  // the parser would take it for the end
    return invalid("not JSON: a NUL byte at byte offset " + std::to_string(nul));
  }
  Adapter adapter(*this);
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &adapter) && status_.ok()) status_ = invalid("not JSON");
  return status_;
}

bool JsonEvents::fail(std::string message) {
  status_ = invalid(std::move(message));
  return false;
}

}  // namespace assay::model
