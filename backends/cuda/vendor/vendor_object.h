// Opens the shared object around one of NVIDIA's libraries, or says why it cannot be used.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "assay/status.h"
#include "backends/cuda/vendor/vendor_table.h"

namespace assay::cuda::vendor {

struct WantedObject {
  const char* file = "";     // "assay_cublaslt.so"
  const char* library = "";  // "cuBLASLt": what the object must call itself
  uint64_t least = 0;        // version of the library
};

inline constexpr WantedObject kCublasLt{"assay_cublaslt.so", "cuBLASLt", 120300};
inline constexpr WantedObject kCudnn{"assay_cudnn.so", "cuDNN", 91400};

// Where this build keeps the objects, in the order in which they are looked for: `vendor` beside the file that holds
// this code (the backend), and ../lib/assay/plugins/vendor (for programs that have the backend in themselves).
std::vector<std::filesystem::path> object_folders();

// The table of the first file of that name; the object stays loaded to the end of the process. kUnsupported with a line
// that names the library when there is no such file, it or a library that it needs cannot be loaded, it is none of
// ours, or the library is older than `least`.
Result<const TableHead*> open_object(const WantedObject& wanted, const std::vector<std::filesystem::path>& folders);

// "13.1.0"
std::string version_text(uint64_t version);

}  // namespace assay::cuda::vendor
