// Damaged and hostile checkpoints: always a Status that names the file, never a crash, never a wrong weight.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "backends/model/checkpoint/args_import.h"
#include "backends/model/checkpoint/checkpoint.h"
#include "backends/model/checkpoint/crc32.h"
#include "backends/model/checkpoint/describe.h"
#include "backends/model/checkpoint/model_writer.h"
#include "backends/model/checkpoint/pickle_writer.h"

namespace assay::model {
namespace {

using ::testing::HasSubstr;

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

class Damage : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = fs::path(ASSAY_BINARY_DIR) / "tests" / "scratch" / (std::string("damage_") + info->name());
    fs::remove_all(folder_);
    CheckpointSpec spec;
    spec.model.num_layers = 2;
    spec.model.hidden_size = 16;
    spec.model.ffn_hidden_size = 16;
    spec.model.num_attention_heads = 2;
    spec.model.num_query_groups = 2;
    spec.model.kv_channels = 8;
    spec.model.vocab_size = 20;
    spec.model.max_position_embeddings = 16;
    spec.model.moe_layers = {false, false};
    spec.write = {.files = 2, .common_pt = common_pt()};
    ASSERT_TRUE(write_checkpoint(spec, folder_.string()).ok());
    iteration_ = folder_ / "iter_0000001";
  }
  void TearDown() override { fs::remove_all(folder_); }

  static bool common_pt() {
    return std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()).ends_with("CommonPt");
  }

  std::string open_message() const { return Checkpoint::open(folder_.string()).status().message(); }

  // Everything that a run does with a checkpoint; the first failure. `sum` becomes the CRC of all weights.
  Status use_all(uint32_t* sum = nullptr) const {
    Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(folder_.string());
    if (!opened.ok()) return opened.status();
    const Checkpoint& checkpoint = **opened;
    for (const TensorInfo& tensor : checkpoint.contents().tensors) {
      if (tensor.elements() > 1 << 20) return invalid("a size that the original does not have");
      std::vector<float> values(static_cast<size_t>(tensor.elements()));
      if (Status s = checkpoint.read(tensor.key, {}, Dtype::kFloat32, values.data()); !s.ok()) return s;
      if (sum != nullptr) *sum = crc32(std::as_bytes(std::span(values)), *sum);
    }
    if (Result<std::string> text = render_checkpoint_text(checkpoint); !text.ok()) return text.status();
    if (Result<std::string> json = render_checkpoint_json(checkpoint); !json.ok()) return json.status();
    return checkpoint.verify();
  }

  // Cuts `name` at many lengths; each must be refused with a message that names a file.
  void truncate_everywhere(const std::string& name) {
    const std::string whole = read_file(iteration_ / name);
    const size_t step = std::max<size_t>(1, whole.size() / 400);
    for (size_t size = 0; size < whole.size(); size += step) {
      write_file(iteration_ / name, whole.substr(0, size));
      const Status status = use_all();
      ASSERT_FALSE(status.ok()) << name << " cut to " << size;
      ASSERT_THAT(status.message(), HasSubstr(folder_.string()));
      ASSERT_EQ(status.message().find('\n'), std::string::npos);
    }
    write_file(iteration_ / name, whole);
    EXPECT_TRUE(use_all().ok());
  }

  // Flips single bits; returns how many of them were noticed. Those that were not may not have changed a weight where
  // the file has CRCs (padding, names and dates are not covered); .metadata has none.
  int flip_bits(const std::string& name, int trials) {
    const std::string whole = read_file(iteration_ / name);
    std::mt19937 engine(11);
    uint32_t expected = 0;
    EXPECT_TRUE(use_all(&expected).ok());
    int noticed = 0;
    for (int i = 0; i < trials; ++i) {
      std::string bytes = whole;
      const size_t at = engine() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (engine() % 8)));
      write_file(iteration_ / name, bytes);
      uint32_t sum = 0;
      const bool ok = use_all(&sum).ok();
      EXPECT_TRUE(!ok || sum == expected || name == ".metadata") << name << " at " << at;
      noticed += ok ? 0 : 1;
    }
    write_file(iteration_ / name, whole);
    return noticed;
  }

  // Replaces .metadata by one whose text `from` is `to`, of the same length.
  void edit_metadata(const std::string& from, const std::string& to) {
    ASSERT_EQ(from.size(), to.size());
    std::string bytes = read_file(iteration_ / ".metadata");
    const size_t at = bytes.find(from);
    ASSERT_NE(at, std::string::npos);
    write_file(iteration_ / ".metadata", bytes.replace(at, from.size(), to));
  }

  fs::path folder_;
  fs::path iteration_;
};

TEST_F(Damage, TruncatedDataFilesAreRefused) { truncate_everywhere("__0_0.distcp"); }
TEST_F(Damage, TruncatedMetadataIsRefused) { truncate_everywhere(".metadata"); }
TEST_F(Damage, TruncatedMetadataJsonIsRefused) { truncate_everywhere("metadata.json"); }
TEST_F(Damage, TruncationIsNoticedInCommonPt) { truncate_everywhere("common.pt"); }

TEST_F(Damage, EveryFlippedBitOfTensorDataIsNoticed) {
  Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(folder_.string());
  ASSERT_TRUE(opened.ok());
  const TensorInfo* tensor = (*opened)->contents().find("embedding.word_embeddings.weight");
  ASSERT_NE(tensor, nullptr);
  std::string data(tensor->bytes(), '\0');
  ASSERT_TRUE((*opened)->read(tensor->key, {}, Dtype::kBfloat16, data.data()).ok());
  const std::string name = (*opened)->contents().files[tensor->places[0].file];
  const std::string bytes = read_file(iteration_ / name);
  const size_t first = bytes.find(data);
  ASSERT_NE(first, std::string::npos);
  for (size_t at = first; at < first + data.size(); at += 7) {
    std::string broken = bytes;
    broken[at] = static_cast<char>(broken[at] ^ 4);
    write_file(iteration_ / name, broken);
    const Status status = use_all();
    ASSERT_FALSE(status.ok()) << at;
    ASSERT_THAT(status.message(), HasSubstr(name));
    ASSERT_THAT(status.message(), HasSubstr("'embedding.word_embeddings.weight': CRC-32"));
  }
}

TEST_F(Damage, FlippedBitsNeverCrashADataFile) { EXPECT_GT(flip_bits("__0_0.distcp", 1500), 300); }
TEST_F(Damage, FlippedBitsNeverCrashMetadata) { EXPECT_GT(flip_bits(".metadata", 1500), 500); }
TEST_F(Damage, FlippedBitsNeverCrashInCommonPt) { EXPECT_GT(flip_bits("common.pt", 1000), 500); }

TEST_F(Damage, RandomBytesNeverCrashThePickleReader) {
  std::mt19937 engine(5);
  const std::string whole = read_file(iteration_ / ".metadata");
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole.substr(0, 200 + engine() % 400);
    for (int k = 0; k < 8; ++k) bytes[engine() % bytes.size()] = static_cast<char>(engine());
    const Result<Pickle> pickle = Pickle::read(std::as_bytes(std::span(bytes)), "file", 0);
    ASSERT_TRUE(pickle.ok() || pickle.status().message().starts_with("file: byte ")) << pickle.status().message();
  }
}

TEST_F(Damage, StoragePathsThatLeaveTheFolderAreRefused) {
  edit_metadata("__0_0.distcp", "../x0.distcp");
  EXPECT_THAT(open_message(), HasSubstr("leaves the checkpoint folder"));
  edit_metadata("../x0.distcp", "/etc//passwd");
  EXPECT_THAT(open_message(), HasSubstr("storage path '/etc//passwd' leaves the checkpoint folder"));
  edit_metadata("/etc//passwd", "a/../../../b");
  EXPECT_THAT(open_message(), HasSubstr("leaves the checkpoint folder"));
  edit_metadata("a/../../../b", "__9_0.distcp");
  EXPECT_THAT(open_message(), HasSubstr("__9_0.distcp: data file is missing"));
}

TEST_F(Damage, SymbolicLinksThatLeaveTheFolderAreRefused) {
  fs::rename(iteration_ / "__0_0.distcp", folder_ / "outside");
  fs::create_symlink(folder_ / "outside", iteration_ / "__0_0.distcp");
  EXPECT_THAT(open_message(), HasSubstr("leaves the checkpoint folder"));
  fs::remove(iteration_ / "__0_0.distcp");
  fs::rename(folder_ / "outside", iteration_ / "inside");
  fs::create_symlink("inside", iteration_ / "__0_0.distcp");
  EXPECT_TRUE(use_all().ok()) << use_all().message();  // a link within the folder is fine
}

TEST_F(Damage, ADataFileThatIsNoFileIsRefused) {
  fs::remove(iteration_ / "__0_0.distcp");
  fs::create_directory(iteration_ / "__0_0.distcp");
  EXPECT_THAT(open_message(), HasSubstr("not a regular file"));
}

TEST_F(Damage, DisagreementBetweenMetadataAndArchiveNamesBoth) {
  edit_metadata("bfloat16", "xfloat16");
  EXPECT_THAT(use_all().message(), HasSubstr("xfloat16"));
  edit_metadata("xfloat16", "bfloat16");
  const std::string name = "__0_0.distcp";
  std::string bytes = read_file(iteration_ / name);
  for (size_t at = bytes.find("BFloat16"); at != std::string::npos; at = bytes.find("BFloat16", at + 1))
    bytes[at] = 'X';
  write_file(iteration_ / name, bytes);
  EXPECT_THAT(use_all().message(), HasSubstr("data.pkl does not have its CRC-32"));
}

TEST_F(Damage, OtherDtypesAreListedButNotRead) {
  std::string bytes = read_file(iteration_ / ".metadata");
  const size_t at = bytes.find("ctorch\nbfloat16\n");
  ASSERT_NE(at, std::string::npos);
  write_file(iteration_ / ".metadata", bytes.replace(at, 16, "ctorch\nfloat8_e5m2\n"));
  Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(folder_.string());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const TensorInfo* tensor = (*opened)->contents().find("embedding.word_embeddings.weight");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->torch_dtype, "float8_e5m2");
  EXPECT_EQ(tensor->bytes(), 320U);
  float value = 0;
  const Status status = (*opened)->read(tensor->key, {}, Dtype::kFloat32, &value);
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_THAT(status.message(), HasSubstr("'embedding.word_embeddings.weight' is float8_e5m2"));
}

TEST_F(Damage, ChunksThatDoNotTileTheirTensorSpoilThatTensorAlone) {
  // The first chunk of [2, 16] begins at 0, 0; a chunk of another size leaves a gap.
  std::string bytes = read_file(iteration_ / ".metadata");
  const size_t key = bytes.find("linear_qkv.layer_norm_weight");
  ASSERT_NE(key, std::string::npos);
  const size_t size = bytes.find(std::string("(K\x01K\x10t", 6), key);  // (1, 16)
  ASSERT_NE(size, std::string::npos);
  bytes[size + 4] = 8;
  write_file(iteration_ / ".metadata", bytes);
  Result<std::unique_ptr<Checkpoint>> opened = Checkpoint::open(folder_.string());
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  std::vector<float> values(20 * 16);
  EXPECT_TRUE((*opened)->read("embedding.word_embeddings.weight", {}, Dtype::kFloat32, values.data()).ok());
  const std::string norm = "decoder.layers.self_attention.linear_qkv.layer_norm_weight";
  const Status status = (*opened)->read(norm, {}, Dtype::kFloat32, values.data());
  EXPECT_THAT(status.message(), HasSubstr("tensor '" + norm + "' of shape [2, 16]: its 2 chunks leave a gap"));
  EXPECT_THAT(*render_checkpoint_text(**opened), HasSubstr("unreadable: "));
  EXPECT_FALSE((*opened)->verify().ok());
}

TEST_F(Damage, TheTrackerIsChecked) {
  const fs::path tracker = folder_ / "latest_checkpointed_iteration.txt";
  write_file(tracker, " 1\n");
  EXPECT_TRUE(use_all().ok());
  write_file(tracker, "7");
  EXPECT_THAT(open_message(), HasSubstr("iter_0000007: no such folder"));
  write_file(tracker, "../etc");
  EXPECT_THAT(open_message(), HasSubstr("holds '../etc'; expected an iteration number or \"release\""));
  write_file(tracker, "");
  EXPECT_THAT(open_message(), HasSubstr("holds ''"));
  write_file(tracker, "99999999999999999999");
  EXPECT_THAT(open_message(), HasSubstr("expected an iteration number"));
  write_file(tracker, "release");
  EXPECT_THAT(open_message(), HasSubstr("release: no such folder"));
  fs::rename(iteration_, folder_ / "release");
  EXPECT_TRUE(use_all().ok());
  fs::remove(tracker);
  EXPECT_THAT(open_message(), HasSubstr("no latest_checkpointed_iteration.txt"));
  EXPECT_THAT(Checkpoint::open((folder_ / "none").string()).status().message(), HasSubstr("no such checkpoint folder"));
  EXPECT_EQ(Checkpoint::open((folder_ / "none").string()).status().code(), StatusCode::kNotFound);
}

TEST_F(Damage, OtherFormatsAreNamed) {
  write_file(iteration_ / "metadata.json", R"({"sharded_backend": "zarr", "sharded_backend_version": 1})");
  EXPECT_THAT(open_message(), HasSubstr("format 'zarr'; expected torch_dist"));
  write_file(iteration_ / "metadata.json", R"({"sharded_backend": "torch_dist", "sharded_backend_version": 2})");
  EXPECT_THAT(open_message(), HasSubstr("torch_dist version 2"));
  fs::remove(iteration_ / "metadata.json");
  EXPECT_THAT(open_message(), HasSubstr("no distributed checkpoint"));
}

TEST_F(Damage, AMissingMetadataFileIsNamed) {
  fs::remove(iteration_ / ".metadata");
  EXPECT_THAT(open_message(), HasSubstr("iter_0000001/.metadata: cannot open"));
}

// What a hostile writer may put in .metadata.
std::string pickled(const std::function<void(PickleWriter&)>& body) {
  PickleWriter out;
  body(out);
  return out.finish();
}

TEST_F(Damage, HostileMetadataIsRefused) {
  const auto refusal = [&](const std::string& pickle) {
    write_file(iteration_ / ".metadata", pickle);
    return open_message();
  };
  EXPECT_THAT(refusal(pickled([](PickleWriter& out) {
                out.global("os", "system");
                out.text("true");
                out.tuple1();
                out.reduce();
              })),
              HasSubstr("holds a 'os.system'; expected torch.distributed.checkpoint.metadata.Metadata"));
  EXPECT_THAT(refusal("\x80\x02N."), HasSubstr("holds a ''"));
  EXPECT_THAT(refusal("\x80\x02" + std::string(1 << 20, ']') + "."), HasSubstr("holds a ''"));
  EXPECT_THAT(refusal(pickled([](PickleWriter& out) {
                out.global("torch.distributed.checkpoint.metadata", "Metadata");
                out.empty_tuple();
                out.new_object();
              })),
              HasSubstr("'storage_data': expected a dict"));
}

TEST_F(Damage, ArgumentsThatHoldThemselvesAreRefusedInCommonPt) {
  // {'args': Namespace(a=L)} with L = [L, L]: copying it would never end.
  const std::string pickle = std::string("\x80\x02}X\x04\0\0\0args", 12) + "cargparse\nNamespace\n)\x81}" +
                             std::string("X\x01\0\0\0a]q\0(h\0h\0esbs.", 19);
  const Result<Pickle> read = Pickle::read(std::as_bytes(std::span(pickle)), "file", 0);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_THAT(import_args(*read, "file").status().message(), HasSubstr("lists nested more than 16 deep"));
}

}  // namespace
}  // namespace assay::model
