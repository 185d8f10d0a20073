#include "core/golden/digest.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "core/golden/file.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIterationFile = "latest_checkpointed_iteration.txt";
constexpr size_t kPiece = size_t{1} << 20;  // bytes read at once

class Sha256 {
 public:
  Sha256() : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    good_ = context_ && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1;
  }
  void add(const void* bytes, size_t size) { good_ = good_ && EVP_DigestUpdate(context_.get(), bytes, size) == 1; }
  Result<std::string> hex() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
    unsigned int size = 0;
    if (!good_ || EVP_DigestFinal_ex(context_.get(), digest.data(), &size) != 1) return infra("SHA-256 failed");
    std::string text;
    for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", digest[i]);
    return text;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
  bool good_ = false;
};

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int number() const { return number_; }

 private:
  int number_;
};

// Digest and size of one file.
Result<std::string> digest_file(const std::string& path, uint64_t* size) {
  const auto failed = [&](const char* what) { return infra(fmt::format("{}: {}: {}", path, what, strerror(errno))); };
  // Non-blocking: opening a pipe without a writer must not hang.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found(path + ": no such file");
    return failed("cannot be opened");
  }
  struct stat info = {};
  if (::fstat(file.number(), &info) != 0) return failed("cannot be examined");
  if (!S_ISREG(info.st_mode)) return invalid(path + " is no regular file; only files have a digest");
  Sha256 digest;
  std::vector<char> piece(kPiece);
  *size = 0;
  for (;;) {
    const ssize_t got = ::read(file.number(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("cannot be read");
    if (got == 0) break;
    digest.add(piece.data(), static_cast<size_t>(got));
    *size += static_cast<uint64_t>(got);
  }
  return digest.hex();
}

struct FileDigest {
  Status content;
  std::string hex;
  uint64_t size = 0;
};

// Of each file, as many at a time as there are processors: a large checkpoint is a matter of half a minute otherwise.
std::vector<FileDigest> digest_files(const fs::path& folder, const std::vector<std::string>& names) {
  std::vector<FileDigest> digests(names.size());
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    for (size_t i = next++; i < names.size(); i = next++) {
      const auto hex = digest_file((folder / names[i]).string(), &digests[i].size);
      if (hex) {
        digests[i].hex = *hex;
      } else {
        digests[i].content = hex.status();
      }
    }
  };
  const size_t processors = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (size_t i = 1; i < std::min(processors, names.size()); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();  // waits for them
  return digests;
}

// The folder whose files count.
Result<fs::path> folder_of(const std::string& path) {
  const fs::path root(path);
  std::error_code error;
  if (!fs::exists(root, error)) return not_found(path + ": no such folder");
  if (!fs::is_directory(root, error)) return invalid(path + " is no folder");
  const fs::path tracker = root / kIterationFile;
  if (!fs::exists(tracker, error)) return root;
  auto word = read_file(tracker.string());
  if (!word) return word.status();
  const size_t first = word->find_first_not_of(" \t\r\n");
  const size_t last = word->find_last_not_of(" \t\r\n");
  const std::string name = first == std::string::npos ? "" : word->substr(first, last - first + 1);
  const bool number = !name.empty() && name.size() <= 18 && name.find_first_not_of("0123456789") == std::string::npos;
  if (!number && name != "release") {
    return invalid(tracker.string() + ": expected an iteration number or \"release\"");
  }
  const fs::path chosen = root / (number ? fmt::format("iter_{:07}", std::stoll(name)) : name);
  if (!fs::is_directory(chosen, error)) {
    return invalid(fmt::format("{}: no such folder, though {} names it", chosen.string(), tracker.string()));
  }
  return chosen;
}

}  // namespace

Result<std::string> digest_of_file(const std::string& path) {
  uint64_t size = 0;
  return digest_file(path, &size);
}

Result<std::string> digest_of_text(std::string_view text) {
  Sha256 digest;
  digest.add(text.data(), text.size());
  return digest.hex();
}

Result<std::string> digest_of_folder(const std::string& path) {
  const auto folder = folder_of(path);
  if (!folder) return folder.status();
  std::vector<std::string> names;
  std::error_code error;
  for (fs::recursive_directory_iterator at(*folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code unknown;
    if (at->is_regular_file(unknown)) names.push_back(at->path().lexically_relative(*folder).generic_string());
  }
  if (error) return infra(fmt::format("{}: cannot be listed: {}", folder->string(), error.message()));
  if (names.empty()) return invalid(folder->string() + " holds no file");
  std::sort(names.begin(), names.end());
  const std::vector<FileDigest> digests = digest_files(*folder, names);
  std::string listing;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!digests[i].content.ok()) return digests[i].content;
    listing += fmt::format("{} {} {}\n", digests[i].hex, digests[i].size, names[i]);
  }
  return digest_of_text(listing);
}

}  // namespace assay
