#include "core/golden/raw_json.h"

#include <utility>

#include "core/golden/json_text.h"

namespace assay::json {

void RawJson::reset() {
  text_.clear();
  open_.clear();
  first_ = true;
  after_key_ = false;
}

void RawJson::separate() {
  if (!after_key_ && !first_) text_ += ", ";
  first_ = false;
  after_key_ = false;
}

void RawJson::scalar(std::string_view json) {
  separate();
  text_ += json;
}

void RawJson::string(std::string_view value) {
  separate();
  append_string(text_, value);
}

void RawJson::key(std::string_view name) {
  separate();
  append_string(text_, name);
  text_ += ": ";
  after_key_ = true;
}

bool RawJson::start(char bracket) {
  if (open_.size() == kMaxDepth) return false;
  separate();
  text_ += bracket;
  open_.push_back(bracket == '{' ? '}' : ']');
  first_ = true;
  return true;
}

void RawJson::end() {
  text_ += open_.back();
  open_.pop_back();
  first_ = false;
}

std::string RawJson::take() {
  std::string result = std::move(text_);
  reset();
  return result;
}

}  // namespace assay::json
