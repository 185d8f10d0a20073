// Vocabulary files of tokenizers: the input alone, and as further entries behind the 256 bytes that must be there.
#include "backends/model/tokenizer/tik_vocab.h"
#include "tools/fuzz/fuzz.h"

namespace {

std::string base64_of(unsigned char byte) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  return {kDigits[byte >> 2], kDigits[(byte & 3) << 4], '=', '='};
}

std::string single_bytes() {
  std::string text = "[";
  for (int i = 0; i < 256; ++i) {
    text += R"({"rank":)" + std::to_string(i) + R"(,"token_bytes":")" + base64_of(static_cast<unsigned char>(i)) +
            R"(","token_str":"x"},)";
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const assay::fuzz::Folder kFolder;
  static const std::string kBytes = single_bytes();
  const std::string text(assay::fuzz::text_of(data, size));
  for (const std::string& file : {text, kBytes + text + "]"}) {
    const auto path = kFolder.write("vocab.json", file);
    for (const int64_t count : {256, 258}) {
      const auto table = assay::model::read_tik_vocab(path, count);
      if (!table) assay::fuzz::require_message(table.status().message());
    }
  }
  assay::model::decode_base64(text);
  return 0;
}
