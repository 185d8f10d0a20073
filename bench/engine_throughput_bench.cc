// Tokens a second of the buffered engine with one request and with sixteen at the same time, through the shared objects
// of engine and backend as a worker uses them.
//   engine_throughput_bench [rounds]      5 rounds unless told; writes its checkpoints (1 to 1.5 GB each) once
// Every round runs both in turn. `decode` counts from the step that gave the last request its first token on, `whole`
// from submission on.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "assay/sdk.hpp"
#include "backends/cpu/pool/thread_pool.h"
#include "bench/bench_model.h"
#include "bench/fma_peak.h"
#include "bench/statistics.h"
#include "core/plugin/host.h"
#include "core/plugin/plugin.h"
#include "tools/bandwidth/read_bandwidth.h"

namespace assay::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMany = 16;           // requests
constexpr size_t kPrompt = 32;           // tokens of each
constexpr int32_t kNew = 64;             // tokens that each generates
constexpr size_t kReadBytes = 1u << 30;  // of one pass of the measured read rate

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

plugin::Plugin load(const std::string& name) {
  plugin::Plugin loaded;
  const auto failure =
      plugin::load(ASSAY_BINARY_DIR "/lib/assay/plugins/" + name + ".so", plugin::silent_host(), &loaded);
  if (failure) give_up(invalid(failure->message));
  return loaded;
}

// Tokens a second.
struct Rate {
  double decode = 0;
  double whole = 0;
};

// Engine buffered on backend cpu with one model.
class Engine {
 public:
  Engine(const model::ModelConfig& config, const std::string& checkpoint)
      : engine_plugin_(load("engine_buffered")),
        backend_plugin_(load("backend_cpu")),
        table_(engine_plugin_.engine()),
        backend_(backend_plugin_.backend()),
        vocab_(config.vocab_size) {
    const std::string text = model::to_json(config);
    auto source = sdk::sized<assay_model_source>();
    source.config_json = sdk::view(text);
    source.checkpoint = sdk::view(checkpoint);
    check(sdk::call(backend_->open, &source, &model_));
    auto settings = sdk::sized<assay_engine_config>();
    settings.backend = backend_;
    settings.model = model_;
    settings.model_config_json = sdk::view(text);
    settings.options = sdk::view(std::string_view(R"({"buffer_size_gb": 1})"));
    check(sdk::call(table_->open, &settings, &engine_));
  }
  ~Engine() {
    table_->close(engine_);
    backend_->close(model_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  Rate run(uint64_t requests) {
    check(sdk::call(table_->reset, engine_));
    const auto start = Clock::now();
    for (uint64_t id = 0; id < requests; ++id) submit(id);
    uint64_t tokens = 0;
    uint64_t finished = 0;
    uint64_t tokens_before = 0;  // decoding
    double seconds_before = 0;
    while (finished < requests) {
      const assay_event* events = nullptr;
      size_t count = 0;
      size_t pending = 0;
      check(sdk::call(table_->step, engine_, &events, &count, &pending));
      for (size_t i = 0; i < count; ++i) {
        if (events[i].kind == ASSAY_EVENT_TOKEN) ++tokens;
        if (events[i].kind == ASSAY_EVENT_FINISHED) ++finished;
        if (events[i].kind == ASSAY_EVENT_FAILED)
          give_up(invalid("request " + std::to_string(events[i].id) + " failed"));
      }
      if (tokens_before == 0 && tokens >= requests) {
        tokens_before = tokens;
        seconds_before = seconds_since(start);
      }
    }
    const double seconds = seconds_since(start);
    if (tokens != requests * kNew) give_up(internal("not every request generated its tokens"));
    return {static_cast<double>(tokens - tokens_before) / (seconds - seconds_before),
            static_cast<double>(tokens) / seconds};
  }

 private:
  static void check(const Status& status) {
    if (!status.ok()) give_up(status);
  }

  void submit(uint64_t id) {
    std::vector<int32_t> prompt;
    for (size_t i = 0; i < kPrompt; ++i) {
      prompt.push_back(static_cast<int32_t>((i * 7919 + id * 104729 + 13) % static_cast<size_t>(vocab_)));
    }
    auto request = sdk::sized<assay_request>();
    request.id = id;
    request.ids = sdk::view(std::span<const int32_t>(prompt));
    request.max_new_tokens = kNew;
    request.want = ASSAY_WANT_LOGPROBS;
    request.sampling.temperature = 1;
    request.sampling.top_k = 1;
    check(sdk::call(table_->submit, engine_, &request));
  }

  plugin::Plugin engine_plugin_;
  plugin::Plugin backend_plugin_;
  const assay_engine_table* table_;
  const assay_backend_table* backend_;
  int32_t vocab_;
  void* model_ = nullptr;
  void* engine_ = nullptr;
};

void run(const std::string& name, const model::ModelConfig& config, model::Dtype dtype, int rounds) {
  const int threads = cpu::available_cores();
  const std::string folder = checkpoint_of(config.any_moe() ? "moe_" : "", config, dtype);
  const Work work = work_of(config, dtype);
  Engine engine(config, folder);
  engine.run(kMany);
  std::vector<double> one, many, decode_ratio, whole_one, whole_many, whole_ratio, read_rate, fma_rate;
  for (int round = 0; round < rounds; ++round) {
    const Rate alone = engine.run(1);
    const Rate together = engine.run(kMany);
    one.push_back(alone.decode);
    many.push_back(together.decode);
    decode_ratio.push_back(together.decode / alone.decode);
    whole_one.push_back(alone.whole);
    whole_many.push_back(together.whole);
    whole_ratio.push_back(together.whole / alone.whole);
    read_rate.push_back(tools::measure_read_bandwidth(kReadBytes, threads, 3).best_gb_per_s);
    fma_rate.push_back(measure_fma_rate(threads));
  }
  std::printf("%s: %llu requests together, prompts of %zu tokens, %d new ones each; %d rounds, medians\n", name.c_str(),
              static_cast<unsigned long long>(kMany), kPrompt, kNew, rounds);
  std::printf("  decode  one request %7.1f tokens/s, together %7.1f: %5.2f times\n", median(one), median(many),
              median(decode_ratio));
  std::printf("  whole   one request %7.1f tokens/s, together %7.1f: %5.2f times\n", median(whole_one),
              median(whole_many), median(whole_ratio));
  std::printf("  one request reads %.1f GB/s, %.0f %% of the read rate; together %.0f GFLOP/s, %.0f %% of the peak\n",
              median(one) * work.bytes_a_token / 1e9, 100 * median(one) * work.bytes_a_token / 1e9 / median(read_rate),
              2 * median(many) * work.multiply_adds / 1e9, 100 * median(many) * work.multiply_adds / median(fma_rate));
  std::fflush(stdout);
}

}  // namespace
}  // namespace assay::bench

int main(int argc, char** argv) {
  using namespace assay;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  if (rounds < 1 || argc > 2) {
    std::fprintf(stderr, "usage: engine_throughput_bench [rounds >= 1]\n");
    return 2;
  }
  bench::run("dense bf16", bench::dense_config(model::Dtype::kBfloat16), model::Dtype::kBfloat16, rounds);
  bench::run("mixture bf16", bench::moe_config(model::Dtype::kBfloat16), model::Dtype::kBfloat16, rounds);
  return 0;
}
