// HTTP over libcurl, which is used in this folder only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "assay/status.h"

namespace assay::engines::openai {

struct HttpLimits {
  double connect_seconds = 10;
  double first_byte_seconds = 300;  // from the start to the first byte of the answer, connecting included
  double between_seconds = 60;      // from one byte to the next
  double whole_seconds = 600;
  size_t body_bytes = size_t{64} << 20;  // of one answer
  std::string ca_file = {};              // PEM; empty: the system's certificates
  // Of all transfers together, those included that begin later.
  std::chrono::steady_clock::time_point ends = std::chrono::steady_clock::time_point::max();
  std::string ends_text = {};  // what has come to its end then, for messages
};

struct HttpRequest {
  std::string url = {};
  std::string body = {};                  // JSON; empty: a GET
  std::vector<std::string> headers = {};  // "Name: value"
  // Told about the body as it comes, of answers with code 200 only; false ends the transfer. Empty: the body is
  // gathered in HttpAnswer::body.
  std::function<bool(std::string_view)> sink = {};
};

struct HttpAnswer {
  uint64_t id = 0;
  Status transport = {};          // ok: an answer came whole; else one line that names method, URL and failure
  bool before_any_byte = false;   // the failure is one of name, connection or reset, and no byte of an answer had come
  bool stopped = false;           // the sink ended it
  long code = 0;                  // HTTP
  std::string content_type = {};  // lower case, without parameters
  std::string server = {};        // header Server
  std::optional<double> retry_after = {};  // seconds
  std::string retry_after_text = {};       // as it was sent; "": it was not
  std::string body = {};
};

// Transfers that run side by side over kept connections. No redirect is followed, no proxy used, nothing decompressed,
// TLS always verified. For one thread.
class HttpClient {
 public:
  // kInfra without a working libcurl; kNotFound for a ca_file that does not exist.
  static Result<std::unique_ptr<HttpClient>> open(HttpLimits limits);
  virtual ~HttpClient() = default;

  // Begins a transfer; its id.
  virtual uint64_t start(HttpRequest request) = 0;
  // Drops a transfer; unknown ids are no error.
  virtual void drop(uint64_t id) = 0;
  // Moves all transfers, waits at most `seconds` for the network, and returns those that ended.
  virtual std::vector<HttpAnswer> poll(double seconds) = 0;
  virtual size_t running() const = 0;
};

}  // namespace assay::engines::openai
