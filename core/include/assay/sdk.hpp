// C++ over plugin_abi.h, for both sides of the border: views, error passing, descriptors, exceptions into status.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "assay/plugin_abi.h"
#include "assay/status.h"

// Put before the definition of assay_plugin_query.
#define ASSAY_PLUGIN_EXPORT extern "C" __attribute__((visibility("default")))

namespace assay::sdk {

inline assay_str view(std::string_view text) { return {text.data(), text.size()}; }
inline assay_ids view(std::span<const int32_t> ids) { return {ids.data(), ids.size()}; }
inline assay_doubles view(std::span<const double> values) { return {values.data(), values.size()}; }

inline std::string_view text(assay_str value) {
  return value.size == 0 ? std::string_view() : std::string_view(value.data, value.size);
}
inline std::span<const int32_t> ids(assay_ids value) { return {value.data, value.size}; }
inline std::span<const double> doubles(assay_doubles value) { return {value.data, value.size}; }

// Writes a failed status into `error` and returns its code; ok returns ASSAY_OK and leaves `error` alone.
inline int32_t report(const Status& status, assay_error* error) {
  if (status.ok()) return ASSAY_OK;
  error->code = static_cast<int32_t>(status.code());
  const size_t length = std::min(status.message().size(), sizeof(error->message) - 1);
  std::memcpy(error->message, status.message().data(), length);
  error->message[length] = '\0';
  return error->code;
}

// Runs `body`, which returns a Status, at the border: an exception becomes kInternal (bad_alloc: kExhausted).
template <class Body>
int32_t guarded(assay_error* error, Body&& body) noexcept {
  try {
    return report(std::forward<Body>(body)(), error);
  } catch (const std::bad_alloc&) {
    return report(exhausted("out of memory in a plugin"), error);
  } catch (const std::exception& failure) {
    return report(internal(std::string("plugin: ") + failure.what()), error);
  } catch (...) {
    return report(internal("plugin: unknown exception"), error);
  }
}

// The caller's side: turns a code and error buffer into a Status.
inline Status to_status(int32_t code, const assay_error& error) {
  if (code == ASSAY_OK) return {};
  return {static_cast<StatusCode>(code), error.message};
}

// Calls `function(arguments..., &error)` and returns its Status.
template <class Function, class... Arguments>
Status call(Function function, Arguments&&... arguments) {
  assay_error error{};
  const int32_t code = function(std::forward<Arguments>(arguments)..., &error);
  return to_status(code, error);
}

// Zero-initialised struct with its `size` member set.
template <class T>
T sized() {
  T value{};
  value.size = sizeof(T);
  return value;
}

// True when `object->size` covers `member`, i.e. the other side knows it.
#define ASSAY_KNOWS(object, member) \
  ((object)->size >= offsetof(std::remove_reference_t<decltype(*(object))>, member) + sizeof((object)->member))

}  // namespace assay::sdk
