#include "core/run/device_slots.h"

#include <algorithm>
#include <charconv>

namespace assay::run {
namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const size_t end = text.find_last_not_of(" \t") + 1;
  return text.substr(begin, end < begin ? 0 : end - begin);
}

// The entries of a list separated by commas; none for an empty text.
std::vector<std::string_view> entries_of(std::string_view text) {
  std::vector<std::string_view> entries;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    entries.push_back(trimmed(text.substr(0, comma)));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return entries;
}

}  // namespace

std::vector<std::string> visible_devices(std::string_view indices, const std::string* shown) {
  const std::vector<std::string_view> names = shown == nullptr ? std::vector<std::string_view>() : entries_of(*shown);
  std::vector<std::string> devices;
  for (const std::string_view entry : entries_of(indices)) {
    size_t index = 0;
    const auto [stop, error] = std::from_chars(entry.data(), entry.data() + entry.size(), index);
    if (error != std::errc() || stop != entry.data() + entry.size()) continue;
    if (shown == nullptr) {
      devices.emplace_back(entry);
    } else if (index < names.size()) {
      devices.emplace_back(names[index]);
    }
  }
  return devices;
}

std::optional<size_t> DeviceSlots::take(int limit) {
  std::optional<size_t> best;
  for (size_t device = 0; device < limits_.size(); ++device) {
    const std::vector<int>& others = limits_[device];
    const int after = static_cast<int>(others.size()) + 1;
    if (after > limit || std::any_of(others.begin(), others.end(), [&](int other) { return after > other; })) continue;
    if (!best || others.size() < limits_[*best].size()) best = device;
  }
  if (best) limits_[*best].push_back(limit);
  return best;
}

void DeviceSlots::give_back(size_t device, int limit) {
  std::vector<int>& others = limits_.at(device);
  const auto found = std::find(others.begin(), others.end(), limit);
  if (found != others.end()) others.erase(found);
}

}  // namespace assay::run
