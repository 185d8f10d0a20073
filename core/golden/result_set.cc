#include <algorithm>

#include "assay/golden.h"

namespace assay {
namespace {

bool is_number(std::string_view id) {
  return !id.empty() && std::all_of(id.begin(), id.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string_view to_string(GoldenForm form) {
  switch (form) {
    case GoldenForm::kStatic:
      return "S";
    case GoldenForm::kDynamic:
      return "D";
    case GoldenForm::kApi:
      return "A";
    case GoldenForm::kCoordinator:
      return "C";
    case GoldenForm::kTextOnly:
      return "T";
    case GoldenForm::kTokensOnly:
      return "K";
    case GoldenForm::kOther:
      break;
  }
  return "other";
}

bool request_id_less(std::string_view a, std::string_view b) {
  const bool number_a = is_number(a);
  const bool number_b = is_number(b);
  if (number_a != number_b) return number_a;
  if (!number_a) return a < b;
  const std::string_view digits_a = a.substr(std::min(a.find_first_not_of('0'), a.size()));
  const std::string_view digits_b = b.substr(std::min(b.find_first_not_of('0'), b.size()));
  if (digits_a.size() != digits_b.size()) return digits_a.size() < digits_b.size();
  if (digits_a != digits_b) return digits_a < digits_b;
  return a < b;  // leading zeros alone
}

const RequestRecord* ResultSet::find(std::string_view id) const {
  const auto at =
      std::lower_bound(requests.begin(), requests.end(), id,
                       [](const RequestRecord& r, std::string_view key) { return request_id_less(r.id, key); });
  return at != requests.end() && at->id == id ? &*at : nullptr;
}

}  // namespace assay
