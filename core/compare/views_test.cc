#include "core/compare/views.h"

#include <gtest/gtest.h>

namespace assay::compare {
namespace {

RequestRecord routed() {
  RequestRecord record;
  record.routing = Routing{.experts = {0, 1, 2, 3}, .tokens = 2, .layers = 1, .topk = 2, .positions = {4, 9}};
  return record;
}

TEST(RecordView, CarriesTimesAndMargins) {
  RequestRecord record = routed();
  record.routing->margins = {0.5F, 0.25F};
  record.tpot = {0.5, 0.25};
  record.latency = 0.75;
  const RecordView view(record);
  EXPECT_EQ(view.record().has,
            uint32_t{ASSAY_HAS_ROUTING | ASSAY_HAS_ROUTING_MARGINS | ASSAY_HAS_TPOT | ASSAY_HAS_LATENCY});
  EXPECT_EQ(view.record().routing_margins[1], 0.25F);
  EXPECT_EQ(view.record().tpot.size, 2U);
  EXPECT_EQ(view.record().latency, 0.75);
  EXPECT_EQ(view.record().routing_positions.data[1], 9);
}

TEST(RecordView, HasWhatTheRecordHolds) {
  const RequestRecord nothing;
  const RecordView empty(nothing);
  EXPECT_EQ(empty.record().has, 0U);
  RequestRecord record = routed();
  EXPECT_EQ(RecordView(record).record().has, uint32_t{ASSAY_HAS_ROUTING});
  record.routing->margins = {0.5F};  // not (tokens, layers)
  EXPECT_EQ(RecordView(record).record().has, uint32_t{ASSAY_HAS_ROUTING});
}

}  // namespace
}  // namespace assay::compare
