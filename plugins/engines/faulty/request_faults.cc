#include "plugins/engines/faulty/request_faults.h"

#include <algorithm>
#include <span>
#include <utility>

#include "assay/sdk.hpp"

namespace assay::engines {

std::optional<std::string> change_prompt(Fault fault, const Places& places, std::vector<int32_t>* ids) {
  if (ids->empty()) return std::nullopt;
  const size_t size = ids->size();
  const size_t some = size > 1 ? 1 + places.pick(size - 1) : 0;  // 1 .. size - 1
  switch (fault) {
    case Fault::kDoubledFirstToken:
      ids->insert(ids->begin(), ids->front());
      return "token 0 twice";
    case Fault::kPromptHeadTruncated:
      if (some == 0) return std::nullopt;
      ids->erase(ids->begin(), ids->begin() + static_cast<ptrdiff_t>(some));
      return std::to_string(some) + " tokens missing";
    case Fault::kPromptTailTruncated:
      if (some == 0) return std::nullopt;
      ids->resize(size - some);
      return std::to_string(some) + " tokens missing";
    case Fault::kPromptTokenChanged: {
      const size_t index = places.pick(size);
      const auto other =
          std::find_if(ids->begin(), ids->end(), [id = (*ids)[index]](int32_t candidate) { return candidate != id; });
      if (other == ids->end()) return std::nullopt;
      (*ids)[index] = *other;
      return "token " + std::to_string(index) + " is " + std::to_string(*other);
    }
    default:
      return std::nullopt;
  }
}

OwnedRequest::OwnedRequest(const assay_request& from) : text_(sdk::text(from.text)), request_(from) {
  if (from.ids.data != nullptr) ids_.assign(from.ids.data, from.ids.data + from.ids.size);
  if (from.forced.size > 0) forced_.assign(from.forced.data, from.forced.data + from.forced.size);
  request_.text = sdk::view(text_);
  if (from.ids.data != nullptr) request_.ids = sdk::view(std::span<const int32_t>(ids_));
  request_.forced = sdk::view(std::span<const int32_t>(forced_));
}

void OwnedRequest::set_ids(std::vector<int32_t> ids) {
  ids_ = std::move(ids);
  request_.ids = sdk::view(std::span<const int32_t>(ids_));
}

}  // namespace assay::engines
