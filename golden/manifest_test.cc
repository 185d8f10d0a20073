// Every file below golden/ is listed in MANIFEST with its size and SHA-256, and nothing else is.
#include <gmock/gmock.h>
#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backends/model/checkpoint/checkpoint.h"

namespace assay {
namespace {

namespace fs = std::filesystem;

const fs::path kGolden = fs::path(ASSAY_SOURCE_DIR) / "golden";

struct Entry {
  std::string sha256;  // lower-case hex
  uint64_t bytes = 0;
};

// By path relative to golden/.
std::map<std::string, Entry> read_manifest() {
  std::map<std::string, Entry> entries;
  std::ifstream file(kGolden / "MANIFEST");
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Entry entry;
    std::string path;
    words >> entry.sha256 >> entry.bytes >> path;
    EXPECT_TRUE(entries.emplace(path, entry).second) << path << " is listed twice";
  }
  return entries;
}

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string sha256(const std::string& bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EXPECT_EQ(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr), 1);
  std::string text;
  for (unsigned i = 0; i < size; ++i) {
    constexpr const char* kHex = "0123456789abcdef";
    text += kHex[digest[i] >> 4];
    text += kHex[digest[i] & 15];
  }
  return text;
}

TEST(Manifest, EveryListedFileHasItsSizeAndSha256) {
  const std::map<std::string, Entry> entries = read_manifest();
  EXPECT_GE(entries.size(), 9U);
  for (const auto& [path, entry] : entries) {
    const std::string bytes = read_file(kGolden / path);
    EXPECT_EQ(bytes.size(), entry.bytes) << path;
    EXPECT_EQ(sha256(bytes), entry.sha256) << path;
  }
}

TEST(Manifest, EveryFileInAFolderIsListed) {
  const std::map<std::string, Entry> entries = read_manifest();
  for (const auto& file : fs::recursive_directory_iterator(kGolden)) {
    const fs::path path = fs::relative(file.path(), kGolden);
    if (!file.is_regular_file() || !path.has_parent_path()) continue;  // MANIFEST itself and this test lie at the top
    EXPECT_EQ(entries.count(path.string()), 1U) << path << " is not in golden/MANIFEST";
  }
}

TEST(Manifest, LicenceTextsAreThoseOfTheCorpus) {
  std::map<std::string, std::string> corpus;
  std::ifstream file(kGolden / "moe_10m_licences" / "corpus.jsonl");
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json entry = nlohmann::json::parse(line);
    corpus[entry.at("id").get<std::string>()] = entry.at("text").get<std::string>();
  }
  EXPECT_EQ(corpus.size(), 32U);
  EXPECT_EQ(read_file(kGolden / "licences" / "gpl-3.0.txt"), corpus["GPL-3.0-only"]);
  EXPECT_EQ(read_file(kGolden / "licences" / "cc-by-sa-4.0.txt"), corpus["CC-BY-SA-4.0"]);
}

TEST(Manifest, TheGoldCheckpointIsWhole) {
  const auto checkpoint = model::Checkpoint::open((kGolden / "moe_10m_licences" / "checkpoint").string());
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.status().message();
  int64_t parameters = 0;
  for (const model::TensorInfo& tensor : (*checkpoint)->contents().tensors) parameters += tensor.elements();
  EXPECT_EQ(parameters, 9701632);
  const Status status = (*checkpoint)->verify();
  EXPECT_TRUE(status.ok()) << status.message();
}

}  // namespace
}  // namespace assay
