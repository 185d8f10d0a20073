// JSON as a stream of events, with errors in one line. nlohmann's SAX parser underneath is included by json_events.cc
// alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "core/include/assay/status.h"

namespace assay::model {

// Derive, override the four events and call parse once. An event that returns fail(...) ends the parse.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  // text: one JSON value and blanks. kInvalid with the byte offset for invalid UTF-8, a lone surrogate escape, a byte
  // order mark or anything else that is not JSON; else the failure of an event.
  Status parse(std::string_view text);

 protected:
  // null, bool, integer, any other number, string. An integer beyond int64 counts as another number.
  using Scalar = std::variant<std::monostate, bool, int64_t, double, std::string>;

  virtual bool on_scalar(const Scalar& value) = 0;
  virtual bool on_begin(bool is_object) = 0;  // else a list; depth() is still that outside of it
  virtual bool on_key(const std::string& key) = 0;
  virtual bool on_end() = 0;  // depth() is again that outside of it

  int depth() const { return depth_; }  // number of open lists and objects
  bool fail(std::string message);       // kInvalid; always returns false

 private:
  class Adapter;

  int depth_ = 0;
  Status status_;
};

}  // namespace assay::model
