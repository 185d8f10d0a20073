// How an expected failure travels: Status for calls without a value, Result<T> for calls with one.
// Header-only and free of dependencies, so that core, backends and plugins may all use it.
#pragma once

#include <cassert>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace assay {

// Values are those of assay_code in plugin_abi.h.
enum class StatusCode : int32_t {
  kOk = 0,
  kInvalid = 1,      // the input is wrong: config, file, argument; retrying is of no use
  kNotFound = 2,     // a named thing does not exist
  kUnsupported = 3,  // well-formed, but this build or engine cannot do it
  kExhausted = 4,    // a limit was reached: memory, blocks, sequence length
  kInfra = 5,        // device, driver, disk or launcher failed
  kCancelled = 6,
  kInternal = 7,  // a bug of ours
};

// A code and, unless ok, one line of text that names the thing, what was seen, what was expected and the remedy.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same failure with "context: " in front of its message; ok stays ok.
  Status with(const std::string& context) const { return ok() ? *this : Status(code_, context + ": " + message_); }

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

inline Status invalid(std::string message) { return {StatusCode::kInvalid, std::move(message)}; }
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status unsupported(std::string message) { return {StatusCode::kUnsupported, std::move(message)}; }
inline Status exhausted(std::string message) { return {StatusCode::kExhausted, std::move(message)}; }
inline Status infra(std::string message) { return {StatusCode::kInfra, std::move(message)}; }
inline Status internal(std::string message) { return {StatusCode::kInternal, std::move(message)}; }

// Either a T or a failed Status. Reading the value of a failure is a bug (assertion).
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}                                  // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) { assert(!status_.ok()); }  // NOLINT: implicit by intent

  bool ok() const { return value_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Status& status() const { return status_; }

  T& operator*() & {
    assert(ok());
    return *value_;
  }
  const T& operator*() const& {
    assert(ok());
    return *value_;
  }
  T operator*() && {  // by value, so that a loop over `*call()` does not dangle
    assert(ok());
    return *std::move(value_);
  }
  T* operator->() {
    assert(ok());
    return &*value_;
  }
  const T* operator->() const {
    assert(ok());
    return &*value_;
  }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace assay
