// Faults in what the engine reads: prompts that arrive changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "assay/plugin_abi.h"
#include "plugins/engines/faulty/fault.h"
#include "plugins/engines/faulty/places.h"

namespace assay::engines {

// Changes the ids of a prompt and says where; nullopt and untouched where the prompt offers no place, or for a fault of
// another family.
std::optional<std::string> change_prompt(Fault fault, const Places& places, std::vector<int32_t>* ids);

// A request with everything that it points to. Not copyable: `request` points into it.
class OwnedRequest {
 public:
  explicit OwnedRequest(const assay_request& from);
  OwnedRequest(const OwnedRequest&) = delete;
  OwnedRequest& operator=(const OwnedRequest&) = delete;

  const assay_request& request() const { return request_; }
  bool has_ids() const { return request_.ids.data != nullptr; }
  const std::string& text() const { return text_; }
  const std::vector<int32_t>& ids() const { return ids_; }
  // The prompt is `ids` from now on, and no text.
  void set_ids(std::vector<int32_t> ids);

 private:
  std::string text_;
  std::vector<int32_t> ids_;
  std::vector<int32_t> forced_;
  assay_request request_;
};

}  // namespace assay::engines
