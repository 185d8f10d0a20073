// The report of a self-test as text and as JSON. Pure functions.
#pragma once

#include <string>

#include "tools/self_test/campaign.h"

namespace assay::self_test {

// The kill table in Markdown, which is as well read on a terminal: a row a fault, a row a control, then what went
// wrong with its place and the command that shows it again, then one line of totals.
std::string table_text(const SelfTestReport& report);

// One JSON object: passed, trials, killed, alarms, seconds, faults (each with its counts, verdicts and every trial that
// was not a kill), controls.
std::string table_json(const SelfTestReport& report);

}  // namespace assay::self_test
