// The buffered engine on a toy model.
#pragma once

#include <nlohmann/json.hpp>

#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/toy_backend/engine_fixture.h"

namespace assay::engines {

class Buffered : public EngineFixture<BufferedEngine> {
 protected:
  // A number of engine_counters, of all results together.
  static int64_t counted(const Outcome& outcome, const char* name) {
    int64_t sum = 0;
    for (const auto& [id, result] : outcome.finished) sum += counter(result, name);
    return sum;
  }
  // Nobody holds a block any more.
  void expect_all_blocks_free() const { EXPECT_EQ(engine_->scheduler().available(), engine_->scheduler().blocks()); }
};

}  // namespace assay::engines
