// Whether wgmma gives the bits of the chain of mma.sync that docs/determinism.md defines, for numbers of every kind.
#include <gtest/gtest.h>

#include <random>

#include "backends/cuda/kernels/hopper/wgmma_chain.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/testing/on_device.h"

namespace assay::cuda {
namespace {

// One random bf16.
using Draw = uint16_t (*)(std::mt19937_64& random);

uint16_t bf16(uint64_t random, uint64_t exponent) { return static_cast<uint16_t>((random & 0x807fu) | exponent << 7); }
uint16_t ordinary(std::mt19937_64& random) { return bf16(random(), 118 + random() % 12); }
uint16_t of_forty_binades(std::mt19937_64& random) { return bf16(random(), 107 + random() % 40); }
uint16_t of_any_exponent(std::mt19937_64& random) { return bf16(random(), random() % 255); }
uint16_t cancelling(std::mt19937_64& random) {  // mostly 1 or -1, a few far away
  const uint64_t bits = random();
  return bits % 4 != 0 ? static_cast<uint16_t>((bits >> 8 & 0x8000u) | 0x3f80u) : bf16(bits >> 8, 115 + bits % 24);
}
uint16_t with_tiny_products(std::mt19937_64& random) { return bf16(random(), 55 + random() % 10); }
uint16_t tiny(std::mt19937_64& random) { return bf16(random(), random() % 20); }
uint16_t with_infinities(std::mt19937_64& random) {
  const uint64_t bits = random();
  return bits % 2000 == 0 ? static_cast<uint16_t>((bits >> 16 & 0x8000u) | 0x7f80u) : bf16(bits >> 16, 100 + bits % 40);
}
uint16_t with_nans(std::mt19937_64& random) {
  const uint64_t bits = random();
  return bits % 2000 == 0 ? uint16_t{0x7fc1} : bf16(bits >> 16, 100 + bits % 40);
}
uint16_t signed_zero(std::mt19937_64& random) { return static_cast<uint16_t>(random() & 0x8000u); }
uint16_t mostly_zero(std::mt19937_64& random) {
  const uint64_t bits = random();
  return bits % 8 != 0 ? static_cast<uint16_t>(bits >> 8 & 0x8000u) : bf16(bits >> 8, 120 + bits % 8);
}

struct Kind {
  const char* name;
  Draw weight;
  Draw x;
};
constexpr Kind kKinds[] = {
    {"ordinary", ordinary, ordinary},
    {"forty binades", of_forty_binades, of_forty_binades},
    {"any exponent against tiny", of_any_exponent, tiny},
    {"cancelling", cancelling, cancelling},
    {"products below the normal range", with_tiny_products, with_tiny_products},
    {"tiny against forty binades", tiny, of_forty_binades},
    {"infinities", with_infinities, ordinary},
    {"NaN", ordinary, with_nans},
    {"zeros of both signs", signed_zero, signed_zero},
    {"mostly zeros", mostly_zero, mostly_zero},
};

class Wgmma : public OnDevice {
 protected:
  void SetUp() override {
    OnDevice::SetUp();
    if (IsSkipped()) return;
    int major = 0;
    int minor = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "cudaDeviceGetAttribute");
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "cudaDeviceGetAttribute");
    if (major != 9 || minor != 0) GTEST_SKIP() << "compute capability " << major << "." << minor << ", wgmma is of 9.0";
  }
};

TEST_F(Wgmma, GivesTheBitsOfTheChainOfMma) {
  std::mt19937_64 random(5);
  constexpr int kBlocks = 64;
  for (const Kind& kind : kKinds) {
    for (const int tokens : kChainTokens) {
      for (const int k_tiles : {4, 16}) {
        std::vector<uint16_t> weights(static_cast<size_t>(kBlocks * 4 * k_tiles * 256));
        std::vector<uint16_t> x(static_cast<size_t>(kBlocks * tokens * k_tiles * 16));
        for (uint16_t& w : weights) w = kind.weight(random);
        for (uint16_t& v : x) v = kind.x(random);
        const auto device_weights = upload(weights);
        const auto device_x = upload(x);
        const auto wide = upload(std::vector<float>(static_cast<size_t>(kBlocks * tokens * 64), 7.0f));
        const auto narrow = upload(std::vector<float>(static_cast<size_t>(kBlocks * tokens * 64), 9.0f));
        ChainArgs args;
        args.weights = device_weights.data();
        args.x = device_x.data();
        args.wide = wide.data();
        args.narrow = narrow.data();
        args.blocks = kBlocks;
        args.tokens = tokens;
        args.k_tiles = k_tiles;
        chain(args, nullptr);
        EXPECT_TRUE(same_bits(download(wide), download(narrow)))
            << kind.name << ", " << tokens << " tokens, " << k_tiles << " steps";
      }
    }
  }
}

}  // namespace
}  // namespace assay::cuda
