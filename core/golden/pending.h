// Recorded results that wait for a person: golden_values_<environment>_<platform>.pending.json, beside the golden that
// they may become. A pending file is never read as a golden.
#pragma once

#include <string>
#include <vector>

#include "assay/golden.h"
#include "assay/provenance.h"
#include "core/golden/golden_name.h"

namespace assay {

// Member "pending" of the object "assay" of the file.
struct PendingInfo {
  std::string recorded_at;  // UTC
  std::string run_id;
  std::string command;        // that recorded it
  std::string golden_sha256;  // golden_digest of the golden that judged at that time; empty: there was none
};

struct PendingGolden {
  std::string path;
  std::string golden_path;  // of the golden it may become
  GoldenName name;
  ResultSet results;  // `extra` is empty: it is in the members below
  GoldenMeta meta;    // without "pending"
  PendingInfo info;
};

// Paths of the pending files in a folder, ascending; a folder that does not exist holds none. Fails with kInfra.
Result<std::vector<std::string>> list_pending(const std::string& folder);

// `path` names a pending file, `case_dir` the folder of its case. Fails like read_results, and with kInvalid when the
// name or the object "assay" is not that of a pending file.
Result<PendingGolden> read_pending(const std::string& path, const std::string& case_dir);

// The file's text in the stable layout.
std::string pending_text(const PendingGolden& pending);

// The golden that judges now what `pending` was recorded for: its own, else that of any platform; "" where there is
// none. Fails with kInvalid when it is there and no file.
Result<std::string> judging_golden(const PendingGolden& pending);

// SHA-256 of what a golden says, whatever its layout; "" where there is no such file or no name. Fails like
// read_results.
Result<std::string> golden_digest(const std::string& path);

}  // namespace assay
