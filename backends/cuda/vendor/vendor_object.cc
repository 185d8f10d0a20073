#include "backends/cuda/vendor/vendor_object.h"

#include <dlfcn.h>

#include <cstring>

namespace assay::cuda::vendor {
namespace {

namespace fs = std::filesystem;

constexpr char kHere = 0;  // an address of the file that holds this code

std::string words_of_loader() {
  const char* text = dlerror();
  return text != nullptr ? text : "no reason given";
}

Status refused(const WantedObject& wanted, const std::string& why) {
  return unsupported(std::string(wanted.library) + ": " + why);
}

Result<const TableHead*> query(const WantedObject& wanted, const fs::path& file) {
  void* const object = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) {
    return refused(wanted, words_of_loader() + "; install the library or name its folder in LD_LIBRARY_PATH");
  }
  const auto function = reinterpret_cast<Query>(dlsym(object, kQuery));
  if (function == nullptr) return refused(wanted, file.string() + " is none of assay's: " + words_of_loader());
  const TableHead* const head = function();
  if (head == nullptr || head->version != kTableVersion || std::strcmp(head->library, wanted.library) != 0) {
    return refused(wanted, file.string() + " is of another build of assay, or around another library; install it anew");
  }
  const uint64_t loaded = head->loaded();
  if (loaded < wanted.least) {
    return refused(wanted, "version " + version_text(loaded) + " is loaded, " + version_text(wanted.least) +
                               " or later is needed; update it");
  }
  return head;
}

}  // namespace

std::string version_text(uint64_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::vector<fs::path> object_folders() {
  Dl_info info{};
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code failed;
  const fs::path file = fs::canonical(info.dli_fname, failed);
  if (failed) return {};
  return {file.parent_path() / "vendor", file.parent_path().parent_path() / "lib/assay/plugins/vendor"};
}

Result<const TableHead*> open_object(const WantedObject& wanted, const std::vector<fs::path>& folders) {
  std::string looked;
  for (const fs::path& folder : folders) {
    std::error_code failed;
    const fs::path file = folder / wanted.file;
    if (fs::exists(file, failed)) return query(wanted, file);
    looked += (looked.empty() ? "" : ", ") + folder.string();
  }
  return refused(wanted, std::string("no file ") + wanted.file + " in " + looked +
                             "; it is built where the library's headers are found (cmake -DASSAY_CUDA_VENDOR=ON)");
}

}  // namespace assay::cuda::vendor
