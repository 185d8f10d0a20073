#include "core/golden/key_scan.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/golden/json_reason.h"
#include "core/golden/text.h"

namespace assay::json {
namespace {

constexpr size_t kShown = 60;  // code points of a name in a message

class Scanner : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return true;
  }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool key(string_t& name) override {
    if (!keys_.back().insert(name).second) found_.twice.insert(name);
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& failure) override {
    found_.error = reason_of(failure.what());
    return false;
  }
  KeyScan take() { return std::move(found_); }

 private:
  std::vector<std::set<std::string>> keys_;
  KeyScan found_;
};

}  // namespace

KeyScan scan_keys(std::string_view text) {
  Scanner scanner;
  nlohmann::json::sax_parse(text.begin(), text.end(), &scanner);
  return scanner.take();
}

std::string repeated_key(std::string_view text) {
  const KeyScan scan = scan_keys(text);
  return scan.twice.empty() ? "" : text::quoted(*scan.twice.begin(), kShown);
}

}  // namespace assay::json
