#include "core/run/device_slots.h"

#include <gmock/gmock.h>

namespace assay::run {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(VisibleDevices, AreTheIndicesWhereTheVariableIsUnset) {
  EXPECT_THAT(visible_devices("0,2", nullptr), ElementsAre("0", "2"));
  EXPECT_THAT(visible_devices("", nullptr), IsEmpty());
}

TEST(VisibleDevices, AreTakenOutOfTheVariable) {
  const std::string shown = "5, GPU-8a2f ,7";
  EXPECT_THAT(visible_devices("0,1,2", &shown), ElementsAre("5", "GPU-8a2f", "7"));
  EXPECT_THAT(visible_devices("1", &shown), ElementsAre("GPU-8a2f"));
  const std::string one = "3";
  EXPECT_THAT(visible_devices("0,1", &one), ElementsAre("3"));
  const std::string none;
  EXPECT_THAT(visible_devices("0", &none), IsEmpty());
  EXPECT_THAT(visible_devices("0,x,,1x", nullptr), ElementsAre("0"));
}

TEST(DeviceSlots, OneWorkerADevice) {
  DeviceSlots slots(2);
  EXPECT_EQ(slots.take(1), 0u);
  EXPECT_EQ(slots.take(1), 1u);
  EXPECT_EQ(slots.take(1), std::nullopt);
  EXPECT_EQ(slots.take(4), std::nullopt);  // those who are there want to be alone
  slots.give_back(1, 1);
  EXPECT_EQ(slots.take(1), 1u);
  EXPECT_EQ(DeviceSlots(0).take(1), std::nullopt);
}

TEST(DeviceSlots, SharingIsSpreadAndEveryWorkerAgrees) {
  DeviceSlots slots(2);
  EXPECT_EQ(slots.take(3), 0u);
  EXPECT_EQ(slots.take(2), 1u);
  EXPECT_EQ(slots.take(3), 0u);
  EXPECT_EQ(slots.take(2), 1u);
  EXPECT_EQ(slots.take(2), std::nullopt);  // two there already
  EXPECT_EQ(slots.take(3), 0u);
  EXPECT_EQ(slots.take(9), std::nullopt);
  slots.give_back(1, 2);
  slots.give_back(1, 2);
  EXPECT_EQ(slots.take(1), 1u);  // alone on an empty one
  EXPECT_EQ(slots.take(9), std::nullopt);
}

}  // namespace
}  // namespace assay::run
