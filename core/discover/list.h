// What `assay list` prints, and the digest of a MODEL_ARGS mapping.
#pragma once

#include <string>
#include <vector>

#include "assay/case.h"

namespace assay::discover {

// Engine of a case as far as its config alone says: ASSAY.engine, else static_legacy with --use-legacy-static-engine,
// else buffered; empty for a MODE other than inference.
std::string engine_of(const TestCase& test_case);

// Canonical form of MODEL_ARGS: a JSON array of [key, value] pairs in order, value a string (the scalar's text) or an
// array of strings, written like Python's json.dumps(pairs, ensure_ascii=False, separators=(",", ":")).
// An absent or null MODEL_ARGS is [].
std::string canonical_model_args(const ModelArgs& args);

// SHA-256 of the canonical form, lower-case hex. testdata/model_args_digest.py computes the same with PyYAML.
std::string model_args_digest(const ModelArgs& args);

// One JSON array; each case has name, path, model, mode, test_type, metrics (null: none named), engine (null: none),
// goldens (file names), error (null when fine), metamorphic (names of the relations that judge it instead of a golden;
// null: none), workers_per_device, model_args_sha256, notes.
std::string list_json(const std::vector<TestCase>& cases);

// A line a case: name, mode, TEST_TYPE, engine, metrics or relations, number of goldens, workers per device where the
// case says how many; then one a bad case with its error, then a total.
std::string list_text(const std::vector<TestCase>& cases);

}  // namespace assay::discover
