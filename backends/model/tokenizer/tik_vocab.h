// Reader of a TikTokenizer vocabulary: a JSON list of {"rank": index, "token_bytes": base64, "token_str": text}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "backends/model/tokenizer/bpe.h"
#include "core/include/assay/status.h"

namespace assay::model {

// The first `count` entries. Later entries must be JSON, and are not looked at otherwise.
// kNotFound without the file; else kInvalid, naming the file and the rank: not JSON, not a list, keys other than the
// three, ranks that are not 0, 1, 2, ..., broken base64, an empty or repeated token, the first 256 not the single
// bytes, fewer than `count` entries, `count` below 256. token_str is not used and may be anything.
Result<BytePairTable> read_tik_vocab(const std::filesystem::path& file, int64_t count);

// Standard alphabet with padding, nothing else; nullopt when broken.
std::optional<std::string> decode_base64(std::string_view text);

}  // namespace assay::model
