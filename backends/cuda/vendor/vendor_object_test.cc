// What happens where NVIDIA's libraries are not, or not the right ones; these need no device.
#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "backends/cuda/vendor/fast_prefill.h"

namespace assay::cuda::vendor {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

const fs::path kFakes = fs::path(ASSAY_BINARY_DIR) / "backends/cuda/vendor/fakes";

// A folder of its own with a file of that name and text.
class FolderWith {
 public:
  FolderWith(const std::string& name, const std::string& text)
      : path_(fs::temp_directory_path() / ("assay_vendor_" + std::to_string(getpid()))) {
    fs::create_directories(path_);
    std::ofstream(path_ / name) << text;
  }
  ~FolderWith() { fs::remove_all(path_); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string refusal(const WantedObject& wanted, const std::vector<fs::path>& folders) {
  const Result<const TableHead*> head = open_object(wanted, folders);
  if (head.ok()) return "it was taken";
  EXPECT_EQ(head.status().code(), StatusCode::kUnsupported);
  return head.status().message();
}

TEST(VendorObject, AMissingFileNamesTheFoldersAndTheRemedy) {
  EXPECT_THAT(
      refusal(kCudnn, {"/nowhere/a", "/nowhere/b"}),
      AllOf(HasSubstr("cuDNN: no file assay_cudnn.so in /nowhere/a, /nowhere/b"), HasSubstr("ASSAY_CUDA_VENDOR")));
}

TEST(VendorObject, AFileThatTheLoaderRefusesGivesTheLoadersWords) {
  const FolderWith folder("assay_cudnn.so", "no object");
  EXPECT_THAT(refusal(kCudnn, {folder.path()}),
              AllOf(HasSubstr("cuDNN: "), HasSubstr("assay_cudnn.so: file too short"), HasSubstr("LD_LIBRARY_PATH")));
}

TEST(VendorObject, ALibraryThatIsTooOldIsRefusedWithBothVersions) {
  EXPECT_THAT(refusal(kCudnn, {kFakes}), HasSubstr("cuDNN: version 9.13.1 is loaded, 9.14.0 or later is needed"));
}

TEST(VendorObject, AnObjectOfAnotherBuildIsRefused) {
  EXPECT_THAT(refusal(kCublasLt, {kFakes}), HasSubstr("is of another build of assay"));
}

TEST(VendorObject, AnObjectAroundAnotherLibraryIsRefused) {
  const WantedObject wanted{"assay_cudnn.so", "cuBLASLt", 0};
  EXPECT_THAT(refusal(wanted, {kFakes}), HasSubstr("around another library"));
}

TEST(VendorObject, AStrangersObjectIsRefused) {
  const WantedObject wanted{"stranger.so", "cuDNN", 0};
  EXPECT_THAT(refusal(wanted, {kFakes}), AllOf(HasSubstr("is none of assay's"), HasSubstr("assay_vendor_query")));
}

TEST(VendorObject, ThoseOfThisBuildAreTakenWhereTheirLibrariesAre) {
  int built = 0;
  for (const WantedObject& wanted : {kCublasLt, kCudnn}) {
    if (!fs::exists(object_folders()[1] / wanted.file)) continue;
    ++built;
    const Result<const TableHead*> head = open_object(wanted, object_folders());
    ASSERT_TRUE(head.ok()) << head.status().message();
    EXPECT_GE((*head)->loaded(), wanted.least);
    std::printf("%s %s\n", wanted.library, version_text((*head)->loaded()).c_str());
  }
  if (built == 0) GTEST_SKIP() << "this build has none: neither cuBLASLt nor cuDNN was found";
}

TEST(VendorObject, AreLookedForBesideTheProgram) {
  const std::vector<fs::path> folders = object_folders();
  ASSERT_EQ(folders.size(), 2u);
  EXPECT_EQ(folders[0], fs::canonical("/proc/self/exe").parent_path() / "vendor");
  EXPECT_EQ(folders[1], fs::canonical("/proc/self/exe").parent_path().parent_path() / "lib/assay/plugins/vendor");
}

TEST(FastPrefill, WithoutCublasLtTheOptionIsRefused) {
  EXPECT_EQ(FastPrefill::usable(true, {"/nowhere"}).code(), StatusCode::kUnsupported);
  EXPECT_TRUE(FastPrefill::usable(false, {"/nowhere"}).ok());
  const auto fast = FastPrefill::open({.bf16 = true, .most_tokens = 64}, {"/nowhere"});
  ASSERT_FALSE(fast.ok());
  EXPECT_EQ(fast.status().code(), StatusCode::kUnsupported);
  EXPECT_THAT(fast.status().message(),
              HasSubstr("backend option 'prefill': fast cannot be used; take exact: cuBLASLt: no file"));
}

TEST(FastPrefill, LeavesFp32ModelsToTheOwnKernels) {
  const auto fast = FastPrefill::open({.bf16 = false}, {"/nowhere"});
  ASSERT_TRUE(fast.ok()) << fast.status().message();
  ASSERT_EQ((*fast)->notes().size(), 1u);
  EXPECT_THAT((*fast)->notes()[0], HasSubstr("fp32 arithmetic has no fast kernels"));
  EXPECT_TRUE((*fast)->equal_rows());
  EXPECT_FALSE((*fast)->linear({}, nullptr));
  EXPECT_FALSE((*fast)->attend({}, {}, nullptr));
}

TEST(FastAttention, RefusesShapesAndLibrariesBeforeItTouchesADevice) {
  AttentionShape heads{.heads = 16, .groups = 16, .channels = 96};
  EXPECT_THAT(FastAttention::open({kFakes}, heads, {1, 1024}).status().message(),
              HasSubstr("cuDNN: heads of 96 channels, expected 64 or 128"));
  heads.channels = 128;
  EXPECT_THAT(FastAttention::open({kFakes}, heads, {1, 1024}).status().message(),
              HasSubstr("9.14.0 or later is needed"));
  EXPECT_THAT(FastAttention::open({"/nowhere"}, heads, {1, 1024}).status().message(),
              HasSubstr("no file assay_cudnn.so"));
}

}  // namespace
}  // namespace assay::cuda::vendor
