#include "plugins/engines/faulty/inner_engine.h"

#include <utility>

#include "plugins/engines/buffered/engine.h"
#include "plugins/engines/static_legacy/engine.h"

namespace assay::engines {
namespace {

template <class Engine>
class Of final : public InnerEngine {
 public:
  static Result<std::unique_ptr<InnerEngine>> open(const assay_engine_config& config, const Host& host) {
    Result<std::unique_ptr<Engine>> engine = Engine::open(config, host);
    if (!engine) return engine.status();
    return std::unique_ptr<InnerEngine>(new Of(*std::move(engine)));
  }

  Status submit(const assay_request& request) override { return engine_->submit(request); }
  Status cancel(uint64_t id) override { return engine_->cancel(id); }
  Status step(std::vector<EngineEvent>* events) override { return engine_->step(events); }
  size_t pending() const override { return engine_->pending(); }
  Status reset() override { return engine_->reset(); }

 private:
  explicit Of(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<std::unique_ptr<InnerEngine>> open_inner(Inner inner, const assay_engine_config& config, const Host& host) {
  return inner == Inner::kBuffered ? Of<BufferedEngine>::open(config, host) : Of<StaticEngine>::open(config, host);
}

}  // namespace assay::engines
