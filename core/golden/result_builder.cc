#include "core/golden/result_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "core/golden/text.h"

namespace assay::json {
namespace {

std::string shown(std::string_view value) { return text::quoted(value, kShownText); }

}  // namespace

std::optional<std::vector<int32_t>>& ResultBuilder::ints() {
  if (field_ == Field::kPositions) return positions_;
  return field_ == Field::kTokens ? record().tokens : record().prompt_ids;
}

std::optional<std::vector<double>>& ResultBuilder::doubles() {
  RequestRecord& request = record();
  switch (field_) {
    case Field::kLogprobs:
      return request.logprobs;
    case Field::kPromptLogprobs:
      return request.prompt_logprobs;
    case Field::kGeneratedLogprobs:
      return request.generated_logprobs;
    default:
      return request.tpot;
  }
}

std::optional<TopLists>& ResultBuilder::lists() {
  return field_ == Field::kTopN ? record().top_n : record().prompt_top_n;
}

bool ResultBuilder::fail(std::string message) {
  if (error_.empty()) error_ = std::move(message);
  return false;
}

// The place the next value belongs to, for messages.
std::string ResultBuilder::where() {
  if (place_ == Place::kOutside) return "top level";
  if (place_ == Place::kTop) return fmt::format("top-level key {}", shown(name_));
  if (place_ == Place::kQuantity) {
    return fmt::format("{}[{}]", text::printable(name_), set_.quantities.back().values.size());
  }
  std::string place = fmt::format("request {}: {}", text::printable(name_), text::printable(field_name_));
  if (place_ != Place::kValue || depth_ == 0) return place;
  switch (type_of(field_)) {
    case Type::kInts:
      return fmt::format("{}[{}]", place, ints()->size());
    case Type::kDoubles:
      return fmt::format("{}[{}]", place, doubles()->size());
    case Type::kTopLists: {
      const size_t positions = lists()->counts.size();
      if (depth_ == 1) return fmt::format("{}[{}]", place, positions);
      return fmt::format("{}[{}][{}]", place, positions - 1, shown(token_));
    }
    case Type::kRouting: {
      const Routing& routing = *record().routing;
      place += fmt::format("[{}]", routing.tokens);
      if (depth_ >= 2) place += fmt::format("[{}]", layers_);
      if (depth_ >= 3) place += fmt::format("[{}]", topk_);
      return place;
    }
    case Type::kMargins:
      place += fmt::format("[{}]", margins_->rows);
      if (depth_ >= 2) place += fmt::format("[{}]", margins_->values.size() - margins_->complete);
      return place;
    default:
      return place;
  }
}

std::string_view ResultBuilder::expected() const {
  switch (place_) {
    case Place::kOutside:
      return "an object of requests";
    case Place::kTop:
      if (!may_be_quantity(name_)) return "a request (object)";
      return "a request (object), a number or a list of numbers";
    case Place::kQuantity:
      return "a number";
    default:
      break;
  }
  switch (type_of(field_)) {
    case Type::kString:
      return "a string";
    case Type::kDouble:
      return "a number";
    case Type::kInts:
      return depth_ == 0 ? "a list of ids" : "an id that fits int32";
    case Type::kDoubles:
      return depth_ == 0 ? "a list of numbers" : "a number";
    case Type::kTopLists:
      return depth_ == 0   ? "a list of objects {token: logprob}"
             : depth_ == 1 ? "an object {token: logprob}"
                           : "a logprob (number)";
    case Type::kRouting:
      return depth_ < 3 ? "a list: (tokens, layers, topk) expert indices" : "an expert index from 0 to 65535";
    case Type::kMargins:
      return depth_ < 2 ? "a list: (tokens, layers) margins" : "a margin (number)";
  }
  return "something else";
}

bool ResultBuilder::wrong(std::string_view seen) {
  return fail(fmt::format("{} is {}, expected {}", where(), seen, expected()));
}

// A value that is neither object, number nor list of numbers stands at a top-level key.
bool ResultBuilder::top_value(std::string_view seen) {
  if (marks_request(name_)) {
    return fail(
        fmt::format("the top level is one request without its id (FLAT form: {} is {}); expected "
                    "{{\"<request id>\": {{...}}}}: wrap the object, for example under \"0\"",
                    shown(name_), seen));
  }
  return wrong(seen);
}

void ResultBuilder::clear_field() {
  switch (type_of(field_)) {
    case Type::kString:
      (field_ == Field::kPrompt ? record().prompt : record().text).reset();
      break;
    case Type::kDouble:
      record().latency.reset();
      break;
    case Type::kInts:
      ints().reset();
      break;
    case Type::kDoubles:
      doubles().reset();
      break;
    case Type::kTopLists:
      lists().reset();
      break;
    case Type::kRouting:
      record().routing.reset();
      break;
    case Type::kMargins:
      margins_.reset();
      break;
  }
}

bool ResultBuilder::begin_request() {
  const auto [found, fresh] = requests_by_id_.try_emplace(name_, set_.requests.size());
  request_ = found->second;
  if (fresh) {
    set_.requests.emplace_back();
  } else {
    set_.requests[request_] = RequestRecord();
    set_.notes.push_back(fmt::format("request {} occurs more than once: the last one counts", shown(name_)));
  }
  record().id = name_;
  seen_ = 0;
  positions_.reset();
  margins_.reset();
  place_ = Place::kRequest;
  return true;
}

bool ResultBuilder::end_request() {
  RequestRecord& request = record();
  if (request.routing && positions_) {
    if (positions_->size() != request.routing->tokens) {
      return fail(
          fmt::format("request {}: routing_indices has {} rows but routing_indices_token_indices names {} "
                      "tokens; expected one row each",
                      text::printable(name_), request.routing->tokens, positions_->size()));
    }
    request.routing->positions = *std::move(positions_);
  }
  if (margins_ && !join_margins()) return false;
  place_ = Place::kTop;
  return true;
}

// The margins belong to routing_indices, wherever the two stand in the request.
bool ResultBuilder::join_margins() {
  const std::string id = text::printable(name_);
  if (!record().routing) {
    set_.notes.push_back(fmt::format("request {}: routing_margins without routing_indices: left out", id));
    return true;
  }
  Routing& routing = *record().routing;
  if (margins_->rows != routing.tokens || (margins_->rows > 0 && margins_->row_size != routing.layers)) {
    return fail(fmt::format(
        "request {}: routing_margins has shape ({}, {}), expected ({}, {}): one for each token and layer of "
        "routing_indices",
        id, margins_->rows, margins_->row_size, routing.tokens, routing.layers));
  }
  routing.margins = std::move(margins_->values);
  return true;
}

void ResultBuilder::place_extra(std::string json) {
  auto& extra = record().extra;
  const auto same =
      std::find_if(extra.begin(), extra.end(), [&](const auto& entry) { return entry.first == field_name_; });
  if (same == extra.end()) {
    extra.emplace_back(field_name_, std::move(json));
    return;
  }
  same->second = std::move(json);
  set_.notes.push_back(fmt::format("request {}: {} occurs more than once: the last one counts", text::printable(name_),
                                   text::printable(field_name_)));
}

// A value inside a request is complete.
bool ResultBuilder::end_value() {
  if (place_ == Place::kProvenance) {
    set_.extra = raw_.take();
    place_ = Place::kTop;
    return true;
  }
  if (place_ == Place::kExtra) place_extra(raw_.take());
  place_ = Place::kRequest;
  return true;
}

bool ResultBuilder::key(std::string& name) {
  switch (place_) {
    case Place::kTop:
      name_ = name;
      return true;
    case Place::kValue:
      token_ = name;
      return true;
    case Place::kExtra:
    case Place::kProvenance:
      raw_.key(name);
      return true;
    default:
      break;
  }
  field_name_ = name;
  field_ = field_of(name);
  depth_ = 0;
  if (field_ == Field::kExtra) {
    raw_.reset();
    place_ = Place::kExtra;
    return true;
  }
  place_ = Place::kValue;
  // Two names, one field: a second name only replaces what it brings itself.
  const bool generated = name == "generated_top_n_logprobs";
  const bool other_name = field_ == Field::kTopN && generated != top_n_is_generated_;
  const uint32_t bit = 1U << static_cast<uint32_t>(field_);
  if (field_ == Field::kTopN) top_n_is_generated_ = generated;
  if ((seen_ & bit) != 0 && !other_name) {
    set_.notes.push_back(fmt::format("request {}: {} occurs more than once: the last one counts",
                                     text::printable(name_), text::printable(name)));
    clear_field();
  }
  seen_ |= bit;
  return true;
}

}  // namespace assay::json
