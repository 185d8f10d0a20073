// Whole numbers out of JSON that anybody may have written. nlohmann's get<int>() casts whatever number is there: of one
// that does not fit that is undefined.
#pragma once

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

namespace assay::json {

// The value as a T, where it is a whole number that T holds ("8" and "8.0"). Throws nlohmann's out_of_range, which is
// an nlohmann::json::exception, on any other.
template <typename T, typename Json>
T whole(const Json& value) {
  using Limits = std::numeric_limits<T>;
  static_assert(std::is_integral_v<T>);
  if (value.is_number_unsigned()) {
    const auto number = value.template get<uint64_t>();
    if (number <= static_cast<uint64_t>(Limits::max())) return static_cast<T>(number);
  } else if (value.is_number_integer()) {
    const auto number = value.template get<int64_t>();
    if (number >= 0 ? static_cast<uint64_t>(number) <= static_cast<uint64_t>(Limits::max())
                    : std::is_signed_v<T> && number >= static_cast<int64_t>(Limits::min())) {
      return static_cast<T>(number);
    }
  } else if (value.is_number_float()) {
    const auto number = value.template get<double>();
    const double end = std::ldexp(1.0, Limits::digits);  // the first that is too large
    if (number == std::trunc(number) && number < end && number >= static_cast<double>(Limits::min())) {
      return static_cast<T>(number);
    }
  }
  throw nlohmann::json::out_of_range::create(406,
                                             value.dump(-1, ' ', false, Json::error_handler_t::replace) +
                                                 " is no whole number from " + std::to_string(Limits::min()) + " to " +
                                                 std::to_string(Limits::max()),
                                             &value);
}

// The same of a member of an object; `absent` where there is none.
template <typename T, typename Json>
T whole(const Json& object, const char* name, T absent) {
  const auto found = object.find(name);
  return found == object.end() ? absent : whole<T>(*found);
}

}  // namespace assay::json
