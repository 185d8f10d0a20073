// Every kernel of the table holds the level that it declares: its bits depend on its own inputs alone.
#include "backends/cpu/kernels/kernel_info.h"

#include <gmock/gmock.h>

#include <cstring>
#include <string>

#include "backends/cpu/kernels/kernel_probes.h"

namespace assay::cpu {
namespace {

using ::testing::HasSubstr;

constexpr size_t kItems = 19;  // more than are packed, with a last tile that is not full

ProbeSpec spec_of(const KernelInfo& info, size_t form) {
  return {.kernel = info.name,
          .shape = {.rows = 21, .cols = 300, .tokens = 67, .number = static_cast<Number>(form)},
          .items = kItems};
}

struct Cut {
  size_t items = kItems;      // a call
  size_t outputs = SIZE_MAX;  // a call: what one thread gets
  size_t shift = 0;           // where the vectors lie
  uint32_t neighbours = 0;    // what the second half of them holds
};

// Results of the first half of the items; empty: there is no problem for the kernel.
std::vector<std::vector<float>> results(const Kernels& kernels, ProbeSpec spec, const Cut& cut) {
  spec.shift = cut.shift;
  spec.neighbours = cut.neighbours;
  const std::optional<Probe> probe = make_probe(spec);
  if (!probe) return {};
  if (probe->prepare) probe->prepare();
  const size_t step = std::min(cut.outputs, probe->outputs);
  for (size_t i = 0; i < kItems; i += cut.items) {
    for (size_t o = 0; o < probe->outputs; o += step) {
      probe->run(kernels, {i, std::min(kItems, i + cut.items)}, {o, std::min(probe->outputs, o + step)});
    }
  }
  std::vector<std::vector<float>> all;
  for (size_t i = 0; i < kItems / 2; ++i) all.push_back(probe->result(i));
  return all;
}

bool same_bits(const std::vector<std::vector<float>>& a, const std::vector<std::vector<float>>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].size() != b[i].size() || std::memcmp(a[i].data(), b[i].data(), a[i].size() * sizeof(float)) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

// What breaks the claim, or "".
std::string broken_claim(const Kernels& kernels, const KernelInfo& info, size_t form) {
  const std::string name = std::string(info.name) + ", form " + std::to_string(form) + ": ";
  const ProbeSpec spec = spec_of(info, form);
  const auto whole = results(kernels, spec, {});
  if (whole.empty()) return name + "nothing tests it; add a probe";
  if (same_bits(whole, {kItems / 2, std::vector<float>(whole[0].size())})) return name + "computes nothing";
  const auto differs = [&](const Cut& cut) { return !same_bits(results(kernels, spec, cut), whole); };
  if (differs({})) return name + "L1, run to run";
  for (const size_t outputs : {1u, 3u, 8u, 16u}) {
    if (differs({.outputs = outputs})) return name + "L1, threads with " + std::to_string(outputs) + " outputs each";
  }
  if (info.level < 2) return "";
  if (differs({.neighbours = 7})) return name + "L2, other neighbours";
  if (differs({.items = 1})) return name + "L2, alone";
  for (const size_t shift : {1u, 5u, 16u}) {
    if (differs({.shift = shift})) return name + "L2, another slot";
  }
  if (info.level < 3) return "";
  for (const size_t items : {2u, 3u, 7u, 16u, 17u}) {
    if (differs({.items = items})) return name + "L3, chunks of " + std::to_string(items);
  }
  return "";
}

class EveryIsasKernels : public ::testing::TestWithParam<std::string_view> {};

TEST_P(EveryIsasKernels, HoldTheLevelsThatTheyDeclare) {
  if (!can_run(GetParam())) GTEST_SKIP() << "this processor cannot run " << GetParam();
  const Kernels& kernels = **select_kernels(GetParam());
  for (const KernelInfo& info : kernel_table()) {
    ASSERT_GE(info.level, 1) << info.name;
    for (size_t form = 0; form < info.forms; ++form) EXPECT_EQ(broken_claim(kernels, info, form), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, EveryIsasKernels, ::testing::ValuesIn(built_isas()),
                         [](const auto& isa) { return std::string(isa.param); });

// The checks above can fail: kernels with one fault each.
const Kernels& sound() { return **select_kernels("auto"); }

TEST(KernelClaims, AResultThatDependsOnTheSizeOfTheBatchIsFound) {
  Kernels faulty = sound();
  faulty.matmul[0] = [](const MatmulArgs& args) {
    sound().matmul[0](args);
    if (args.tokens > 1 && args.begin == 0) args.y[0][0] += 1;
  };
  EXPECT_EQ(broken_claim(faulty, *find_kernel("matmul"), 0), "matmul, form 0: L2, alone");
  faulty.matmul[0] = [](const MatmulArgs& args) {
    sound().matmul[0](args);
    if (args.tokens > 1 && args.tokens < kItems && args.begin == 0) args.y[0][0] += 1;
  };
  EXPECT_EQ(broken_claim(faulty, *find_kernel("matmul"), 0), "matmul, form 0: L3, chunks of 2");
}

TEST(KernelClaims, AResultThatLooksAtItsNeighboursIsFound) {
  Kernels faulty = sound();
  faulty.attend[1] = [](const AttendArgs& args) {
    sound().attend[1](args);
    if (args.queries > 1) args.result[0][0] += args.query[args.queries - 1][0];
  };
  EXPECT_EQ(broken_claim(faulty, *find_kernel("attend"), 1), "attend, form 1: L2, other neighbours");
  KernelInfo modest = *find_kernel("attend");
  modest.level = 1;
  EXPECT_EQ(broken_claim(faulty, modest, 1), "") << "who claims less is asked less";
}

TEST(KernelClaims, AResultThatDependsOnCutsRunsOrPlacesIsFound) {
  Kernels faulty = sound();
  faulty.add = [](const float* x, float* y, size_t count) {
    sound().add(x, y, count);
    if (count < 16) y[0] += 1;
  };
  EXPECT_THAT(broken_claim(faulty, *find_kernel("add"), 0), HasSubstr("add, form 0: L1, threads with 1 outputs each"));
  faulty.normalise = [](const NormArgs& args) {
    static int calls = 0;
    sound().normalise(args);
    args.y[0] += static_cast<float>(++calls);
  };
  EXPECT_EQ(broken_claim(faulty, *find_kernel("normalise"), 0), "normalise, form 0: L1, run to run");
  faulty.activate = [](const ActivateArgs& args) {
    sound().activate(args);
    if (args.count == 300 && reinterpret_cast<uintptr_t>(args.y) % 16 != 0) args.y[0] += 1;
  };
  EXPECT_EQ(broken_claim(faulty, *find_kernel("activate"), 0), "activate, form 0: L2, another slot");
}

TEST(KernelClaims, AKernelThatNobodyTestsIsFound) {
  EXPECT_THAT(broken_claim(sound(), {.name = "new_kernel"}, 0), HasSubstr("nothing tests it; add a probe"));
}

TEST(KernelWork, IsThatOfTheShape) {
  const auto work = [](const char* name, const KernelShape& shape) { return find_kernel(name)->work(shape); };
  const Work decode = work("matmul", {.rows = 100, .cols = 50, .tokens = 1, .number = Number::kBfloat16});
  EXPECT_EQ(decode.bytes, 2 * 100 * 50 + 4 * (100 + 50));
  EXPECT_EQ(decode.flops, 2 * 100 * 50);
  EXPECT_EQ(work("attend", {.rows = 4, .cols = 64, .tokens = 256}).bytes, 2 * 256 * 64 * 4 + 2 * 4 * 64 * 4);
  EXPECT_EQ(work("add", {.cols = 10}).bytes, 120);
  for (const KernelInfo& info : kernel_table()) {
    const KernelShape small = {.rows = 3, .cols = 16, .tokens = 4};
    const KernelShape large = {.rows = 6, .cols = 512, .tokens = 8};
    EXPECT_GT(info.work(small).bytes, 0) << info.name;
    EXPECT_GT(info.work(large).bytes, info.work(small).bytes) << info.name;
    EXPECT_GE(info.work(large).flops, info.work(small).flops) << info.name;
  }
}

}  // namespace
}  // namespace assay::cpu
