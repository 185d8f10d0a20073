// The static engine on a toy model.
#pragma once

#include "plugins/engines/static_legacy/engine.h"
#include "plugins/engines/toy_backend/engine_fixture.h"

namespace assay::engines {

class StaticLegacy : public EngineFixture<StaticEngine> {};

}  // namespace assay::engines
