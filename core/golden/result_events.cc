// The value events of ResultBuilder: what a number, string or bracket means at each place.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/golden/result_builder.h"
#include "core/golden/text.h"

namespace assay::json {

bool ResultBuilder::null() {
  if (place_ == Place::kExtra || place_ == Place::kProvenance) {
    raw_.scalar("null");
    return !raw_.done() || end_value();
  }
  if (place_ == Place::kTop && may_be_quantity(name_)) return true;  // a counter that was not taken
  if (place_ == Place::kTop) return top_value("null");
  if (place_ == Place::kValue && depth_ == 0) return end_value();  // Python's None: the field is absent
  if (place_ == Place::kValue && depth_ == 1 && type_of(field_) == Type::kTopLists) {
    lists()->counts.push_back(0);
    return true;
  }
  return wrong("null");
}

bool ResultBuilder::boolean(bool value) {
  const std::string_view text = value ? "true" : "false";
  if (place_ == Place::kExtra || place_ == Place::kProvenance) {
    raw_.scalar(text);
    return !raw_.done() || end_value();
  }
  return place_ == Place::kTop ? top_value(text) : wrong(text);
}

bool ResultBuilder::number_integer(int64_t value) { return number({static_cast<double>(value), true, value, {}}); }

bool ResultBuilder::number_unsigned(uint64_t value) {
  if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return number({static_cast<double>(value), false, 0, std::to_string(value)});
  }
  return number({static_cast<double>(value), true, static_cast<int64_t>(value), {}});
}

bool ResultBuilder::number_float(double value, const std::string& spelling) {
  if (place_ == Place::kValue && depth_ > 0) return number({value, false, 0, {}});
  return number({value, false, 0, spelling});
}

std::string ResultBuilder::number_text(const Number& number) const {
  if (!number.text.empty()) return number.text;
  std::string text;
  if (number.integral) {
    append_integer(text, number.integer);
  } else {
    append_double(text, number.value);
  }
  return text;
}

bool ResultBuilder::number(Number number) {
  if (next_nonfinite_ < nonfinite_.size() && nonfinite_[next_nonfinite_].ordinal == numbers_) {
    number = {nonfinite_[next_nonfinite_++].value, false, 0, {}};
  }
  ++numbers_;
  switch (place_) {
    case Place::kOutside:
    case Place::kRequest:
      return wrong("the number " + number_text(number));
    case Place::kTop: {
      if (!may_be_quantity(name_)) return top_value("the number " + number_text(number));
      add_quantity().values.push_back(number.value);
      set_.quantities.back().scalar = true;
      return true;
    }
    case Place::kQuantity:
      set_.quantities.back().values.push_back(number.value);
      return true;
    case Place::kValue:
      return number_in_value(number);
    case Place::kExtra:
    case Place::kProvenance:
      raw_.scalar(number_text(number));
      return !raw_.done() || end_value();
  }
  return false;
}

bool ResultBuilder::number_in_value(const Number& number) {
  const Type type = type_of(field_);
  const bool fits = number.integral && number.integer >= std::numeric_limits<int32_t>::min() &&
                    number.integer <= std::numeric_limits<int32_t>::max();
  if (type == Type::kDoubles && depth_ == 1) {
    doubles()->push_back(number.value);
  } else if (type == Type::kInts && depth_ == 1 && fits) {
    ints()->push_back(static_cast<int32_t>(number.integer));
  } else if (type == Type::kTopLists && depth_ == 2) {
    add_top_entry(number.value);
  } else if (type == Type::kRouting && depth_ == 3 && number.integral && number.integer >= 0 &&
             number.integer <= std::numeric_limits<uint16_t>::max()) {
    record().routing->experts.push_back(static_cast<uint16_t>(number.integer));
    ++topk_;
  } else if (type == Type::kMargins && depth_ == 2) {
    margins_->values.push_back(static_cast<float>(number.value));
  } else if (type == Type::kDouble && depth_ == 0) {
    record().latency = number.value;
    return end_value();
  } else {
    return wrong("the number " + number_text(number));
  }
  return true;
}

// Python's dict: the last value of equal keys, at the first one's place.
void ResultBuilder::add_top_entry(double logprob) {
  TopLists& top = *lists();
  uint32_t& count = top.counts.back();
  for (size_t i = top.entries.size() - count; i < top.entries.size(); ++i) {
    if (top.entries[i].text == token_) {
      top.entries[i].logprob = logprob;
      return;
    }
  }
  top.entries.push_back({token_, logprob});
  ++count;
}

// The quantity called name_, empty, as the last one of the set.
Quantity& ResultBuilder::add_quantity() {
  auto& all = set_.quantities;
  const auto same = std::find_if(all.begin(), all.end(), [&](const Quantity& q) { return q.name == name_; });
  if (same != all.end()) {
    all.erase(same);
    set_.notes.push_back(fmt::format("{} occurs more than once: the last one counts", text::quoted(name_, kShownText)));
  }
  all.push_back({name_, {}, false});
  return all.back();
}

bool ResultBuilder::string(std::string& value) {
  if (place_ == Place::kOutside) {
    was_string_ = true;
    top_string_ = std::move(value);
    return true;
  }
  if (place_ == Place::kExtra || place_ == Place::kProvenance) {
    raw_.string(value);
    return !raw_.done() || end_value();
  }
  if (place_ == Place::kValue && depth_ == 0 && type_of(field_) == Type::kString) {
    (field_ == Field::kPrompt ? record().prompt : record().text) = std::move(value);
    return end_value();
  }
  const std::string seen = "the string " + text::quoted(value, kShownText);
  return place_ == Place::kTop ? top_value(seen) : wrong(seen);
}

bool ResultBuilder::start_object(size_t) {
  switch (place_) {
    case Place::kOutside:
      place_ = Place::kTop;
      return true;
    case Place::kTop:
      if (name_ != "assay") return begin_request();
      raw_.reset();
      raw_.start('{');
      place_ = Place::kProvenance;
      return true;
    case Place::kExtra:
    case Place::kProvenance:
      return raw_.start('{') || fail(where() + " is nested deeper than 64 levels");
    case Place::kValue:
      if (type_of(field_) != Type::kTopLists || depth_ != 1) return wrong("an object");
      lists()->counts.push_back(0);
      ++depth_;
      return true;
    default:
      return wrong("an object");
  }
}

bool ResultBuilder::end_object() {
  switch (place_) {
    case Place::kExtra:
    case Place::kProvenance:
      raw_.end();
      return !raw_.done() || end_value();
    case Place::kValue:
      --depth_;
      return true;
    case Place::kRequest:
      return end_request();
    default:
      place_ = Place::kOutside;
      return true;
  }
}

bool ResultBuilder::start_array(size_t) {
  switch (place_) {
    case Place::kTop:
      if (!may_be_quantity(name_)) return top_value("a list");
      add_quantity();
      place_ = Place::kQuantity;
      return true;
    case Place::kExtra:
    case Place::kProvenance:
      return raw_.start('[') || fail(where() + " is nested deeper than 64 levels");
    case Place::kValue:
      return start_value_array();
    default:
      return wrong("a list");
  }
}

bool ResultBuilder::start_value_array() {
  const Type type = type_of(field_);
  const bool routing = type == Type::kRouting && depth_ < 3;
  const bool nested = routing || (type == Type::kMargins && depth_ < 2);
  if (type == Type::kString || type == Type::kDouble || (depth_ > 0 && !nested)) return wrong("a list");
  if (routing && depth_ == 0) {
    record().routing.emplace();
    routing_shaped_ = false;
  }
  if (routing && depth_ == 1) layers_ = 0;
  if (routing && depth_ == 2) topk_ = 0;
  if (depth_++ > 0) return true;
  if (type == Type::kInts) ints().emplace();
  if (type == Type::kDoubles) doubles().emplace();
  if (type == Type::kTopLists) lists().emplace();
  if (type == Type::kMargins) margins_.emplace();
  return true;
}

bool ResultBuilder::end_array() {
  if (place_ == Place::kQuantity) {
    place_ = Place::kTop;
    return true;
  }
  if (place_ == Place::kExtra || place_ == Place::kProvenance) {
    raw_.end();
    return !raw_.done() || end_value();
  }
  --depth_;
  if (depth_ == 0) return end_value();
  if (type_of(field_) == Type::kMargins) return end_margin_row();
  return type_of(field_) != Type::kRouting || end_routing_level();
}

bool ResultBuilder::end_margin_row() {
  MarginRows& margins = *margins_;
  const size_t size = margins.values.size() - margins.complete;
  if (margins.rows > 0 && size != margins.row_size) {
    return fail(fmt::format("{} has {} margins, expected {} as in those before it", where(), size, margins.row_size));
  }
  margins.row_size = size;
  margins.complete = margins.values.size();
  ++margins.rows;
  return true;
}

// A row (depth 1) or a cell (depth 2) of the routing closed: all must have one shape.
bool ResultBuilder::end_routing_level() {
  Routing& routing = *record().routing;
  const auto ragged = [&](std::string_view what, size_t seen, size_t first) {
    return fail(fmt::format("{} has {} {}, expected {} as in those before it", where(), seen, what, first));
  };
  if (depth_ == 2) {
    if (routing_shaped_ && topk_ != routing.topk) return ragged("experts", topk_, routing.topk);
    routing.topk = topk_;
    routing_shaped_ = true;
    ++layers_;
    return true;
  }
  if (routing.tokens > 0 && layers_ != routing.layers) return ragged("layers", layers_, routing.layers);
  routing.layers = layers_;
  ++routing.tokens;
  return true;
}

bool ResultBuilder::parse_error(size_t position, const std::string&, const nlohmann::json::exception& failure) {
  constexpr size_t kShown = 160;
  std::string_view what = failure.what();
  // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ...": keep what follows.
  if (const size_t bracket = what.find("] "); bracket != std::string_view::npos) what.remove_prefix(bracket + 2);
  if (what.starts_with("parse error at ")) {
    const size_t colon = what.find(": ");
    if (colon != std::string_view::npos) what.remove_prefix(colon + 2);
  }
  const std::string_view cut = text::prefix(what, kShown);
  error_ = text::printable(cut) + (cut.size() < what.size() ? "..." : "");
  error_offset_ = position;
  return false;
}

}  // namespace assay::json
