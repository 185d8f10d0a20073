// Which device a worker gets: one worker a device, unless the cases say that more may share it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace assay::run {

// Devices of one backend as the environment variable names them: entry i of `indices` ("0,2": positions among the
// devices that a process may see) is taken out of `shown`, the variable's present value ("4,5,6"); the index itself
// where the variable is unset. Positions beyond the end of `shown`, and what is no number, are left out.
std::vector<std::string> visible_devices(std::string_view indices, const std::string* shown);

// Counts the workers on each device. A worker brings the number of workers that may be on its device while it is there,
// itself included; all of them must agree to one more. For one thread.
class DeviceSlots {
 public:
  // `count` devices.
  explicit DeviceSlots(size_t count) : limits_(count) {}

  // A device for one more worker: the one with the fewest workers that have room for it, of these the first. nullopt:
  // none has room now. Always a device again when all were given back.
  std::optional<size_t> take(int limit);

  // The worker that took the device with this limit is gone.
  void give_back(size_t device, int limit);

 private:
  std::vector<std::vector<int>> limits_;  // of the workers on each device
};

}  // namespace assay::run
