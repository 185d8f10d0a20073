// Opening and describing the CUDA backend; these need no device.
#include <gmock/gmock.h>

#include "backends/cuda/cuda_model.h"
#include "backends/cuda/runtime/buffer.h"
#include "backends/cuda/runtime/device.h"
#include "backends/cuda/vendor/fast_prefill.h"
#include "backends/cuda/weight_upload.h"

namespace assay::cuda {
namespace {

using ::testing::HasSubstr;

TEST(CudaModel, WrongOptionsAreNamed) {
  const model::ModelConfig config;
  EXPECT_THAT(open_cuda(config, "/nowhere", R"({"prefil":"fast"})").status().message(),
              HasSubstr("'prefil' is unknown; known are: threads, slice"));
  EXPECT_THAT(open_cuda(config, "/nowhere", R"({"weights":"some"})").status().message(), HasSubstr("'weights': some"));
}

// On a machine without a GPU the reason is the driver's or the device's, elsewhere the checkpoint's.
TEST(CudaModel, OpeningFailsWithAReasonAndNeverACrash) {
  const Result<Device> device = find_device();
  const auto opened = open_cuda(model::ModelConfig(), "/nowhere", "{}");
  ASSERT_FALSE(opened.ok());
  if (device.ok()) {
    EXPECT_EQ(opened.status().code(), StatusCode::kNotFound);
    EXPECT_GE(device->multiprocessors, 1);
  } else {
    EXPECT_EQ(opened.status().code(), StatusCode::kInfra);
    EXPECT_EQ(opened.status().message(), device.status().message());
    EXPECT_THAT(opened.status().message(), HasSubstr("no CUDA device"));
  }
}

// The libraries of prefill=fast are looked for before a checkpoint is.
TEST(CudaModel, FastPrefillWithoutADeviceOrALibraryIsAReasonToo) {
  model::ModelConfig config;
  config.arithmetic = model::Arithmetic::kBf16;
  const auto opened = open_cuda(config, "/nowhere", R"({"prefill":"fast"})");
  ASSERT_FALSE(opened.ok());
  const Result<Device> device = find_device();
  const Status usable = vendor::FastPrefill::usable(true);
  EXPECT_EQ(opened.status().code(), !device.ok()   ? StatusCode::kInfra
                                    : !usable.ok() ? StatusCode::kUnsupported
                                                   : StatusCode::kNotFound);
  if (!device.ok()) {
    EXPECT_EQ(opened.status().message(), device.status().message());
  }
}

TEST(CudaError, BecomesAStatusAtOnePlace) {
  const Status memory = on_device([]() -> Status { throw CudaError("cudaMalloc", cudaErrorMemoryAllocation); });
  EXPECT_EQ(memory.code(), StatusCode::kExhausted);
  EXPECT_THAT(memory.message(), HasSubstr("cudaMalloc: out of memory"));
  const Status fault = on_device([]() -> Status { throw CudaError("a kernel", cudaErrorIllegalAddress); });
  EXPECT_EQ(fault.code(), StatusCode::kInfra);
  EXPECT_THAT(fault.message(), HasSubstr("a kernel: an illegal memory access was encountered"));
  EXPECT_TRUE(on_device([]() -> Status { return {}; }).ok());
}

TEST(WeightUpload, JobsOfAWeightAreEqualPartsOfAboutFourMegabytes) {
  EXPECT_EQ(rows_a_job(2048, 1408 * 2), 1024);      // 5.8 MB: two
  EXPECT_EQ(rows_a_job(2816, 2048 * 2), 939);       // 11.5 MB: three
  EXPECT_EQ(rows_a_job(131072, 2048 * 2), 1024);    // 128 of exactly 4 MiB
  EXPECT_EQ(rows_a_job(7, 16), 7);                  // one
  EXPECT_EQ(rows_a_job(3, int64_t{100} << 20), 1);  // a row cannot be cut
}

}  // namespace
}  // namespace assay::cuda
