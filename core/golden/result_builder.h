// Turns the events of a JSON parser into a ResultSet: the one place that knows the rules of result files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "assay/golden.h"
#include "core/golden/json_text.h"
#include "core/golden/raw_json.h"
#include "core/golden/result_fields.h"

namespace assay::json {

inline constexpr size_t kShownText = 40;  // code points of a string quoted in a message

// routing_margins as read so far: (rows, row_size) where the rows have one size.
struct MarginRows {
  std::vector<float> values;
  size_t rows = 0;
  size_t row_size = 0;
  size_t complete = 0;  // values in closed rows
};

// Handler for nlohmann::json::sax_parse. Numbers go straight into typed arrays. After a parse that returned false,
// error() says what was wrong; error_offset() is the byte where the parser stopped, or npos when the document is well
// formed JSON of the wrong content (error() then names request, field and index).
class ResultBuilder {
 public:
  // `set` is filled; both are borrowed for the builder's life.
  ResultBuilder(ResultSet& set, const std::vector<NonFinite>& nonfinite) : set_(set), nonfinite_(nonfinite) {}

  const std::string& error() const { return error_; }
  size_t error_offset() const { return error_offset_; }
  // The top level was a string: its content, to be parsed once more.
  bool was_string() const { return was_string_; }
  std::string& top_string() { return top_string_; }

  // Events; names and signatures are the parser's.
  bool null();
  bool boolean(bool value);
  bool number_integer(int64_t value);
  bool number_unsigned(uint64_t value);
  bool number_float(double value, const std::string& spelling);
  bool string(std::string& value);
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t);
  bool end_object();
  bool start_array(size_t);
  bool end_array();
  bool key(std::string& name);
  bool parse_error(size_t position, const std::string& last_token, const nlohmann::json::exception& failure);

 private:
  enum class Place : uint8_t { kOutside, kTop, kQuantity, kRequest, kValue, kExtra, kProvenance };
  struct Number {
    double value;
    bool integral;     // fits int64_t and was spelled without fraction or exponent
    int64_t integer;   // valid when integral
    std::string text;  // filled where a message or a raw field needs it
  };

  bool number(Number number);
  bool number_in_value(const Number& number);
  void add_top_entry(double logprob);
  Quantity& add_quantity();
  bool start_value_array();
  bool end_margin_row();
  bool join_margins();
  bool end_routing_level();
  bool begin_request();
  bool end_request();
  bool end_value();
  void clear_field();
  void place_extra(std::string json);
  bool top_value(std::string_view seen);
  bool wrong(std::string_view seen);
  bool fail(std::string message);
  std::string where();
  std::string_view expected() const;
  std::string number_text(const Number& number) const;
  RequestRecord& record() { return set_.requests[request_]; }
  // The place of field_ in the request being read, by its type.
  std::optional<std::vector<int32_t>>& ints();
  std::optional<std::vector<double>>& doubles();
  std::optional<TopLists>& lists();

  ResultSet& set_;
  const std::vector<NonFinite>& nonfinite_;
  size_t next_nonfinite_ = 0;
  uint64_t numbers_ = 0;
  std::unordered_map<std::string, size_t> requests_by_id_;

  Place place_ = Place::kOutside;
  std::string name_;    // top-level key
  size_t request_ = 0;  // index into set_.requests
  std::string field_name_;
  Field field_ = Field::kExtra;
  uint32_t seen_ = 0;   // bit per Field met in this request
  uint32_t depth_ = 0;  // brackets open inside the value
  bool top_n_is_generated_ = false;
  std::string token_;  // key inside a top-n position
  size_t layers_ = 0;  // of the routing row being read
  size_t topk_ = 0;    // of the routing cell being read
  bool routing_shaped_ = false;
  std::optional<std::vector<int32_t>> positions_;  // routing_indices_token_indices
  std::optional<MarginRows> margins_;              // routing_margins
  RawJson raw_;

  bool was_string_ = false;
  std::string top_string_;
  std::string error_;
  size_t error_offset_ = std::string::npos;
};

}  // namespace assay::json
