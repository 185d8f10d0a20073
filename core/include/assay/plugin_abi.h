/* The C border between assay and its plugins: what both sides must read alike, a file for each kind in abi/.
 *
 * A plugin is a shared object that exports one function, assay_plugin_query. It returns a descriptor whose `table` is
 * the function table of its kind. Rules that hold everywhere:
 *  - No exception and no C++ type crosses. Strings are UTF-8, pointer + length, not NUL-terminated unless said so.
 *  - The side that allocates frees. What a call receives is borrowed for that call alone; what a call hands out stays
 *    valid until the time named at its declaration.
 *  - Every struct that may grow begins with `size`, set by its writer to sizeof; a reader looks at a member only if
 *    `size` covers it. Structs and tables are append-only. A struct that travels in arrays never grows, whatever its
 *    `size`: the other side steps by its own sizeof. A table entry may be null only where the comment says so.
 *  - Functions that return int32_t return an assay_code; on failure they fill `error` (never null), outputs untouched.
 *  - One thread at a time per handle; different handles may be used by different threads.
 * Versions: the major number changes when an old plugin cannot be read; the minor when a table or struct grew.
 */
#ifndef ASSAY_PLUGIN_ABI_H
#define ASSAY_PLUGIN_ABI_H

#include "assay/abi/backend.h"
#include "assay/abi/comparator.h"
#include "assay/abi/engine.h"
#include "assay/abi/launcher.h"

#endif /* ASSAY_PLUGIN_ABI_H */
